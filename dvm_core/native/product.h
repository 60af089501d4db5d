// Products: their geometry, B in packed panels, and the tile instruction MatMul.
#pragma once
#include "core.h"

namespace dvm {

// The product of instruction i; its slots, and where B is packed, are still open.
Product make_product(const ProgramCode& code, const Resolved& resolved, int i);

// UB bytes for what tiles do with B themselves: pack it, if no part of it is used by two of them and it fits the cache; or, if B has one
// column, multiply row by row. 0: B is packed before the tiles (or not at all, float64).
int64_t product_ub_bytes(const Product& p, const Geometry& g);

// Before the tiles: halves widened to float32, B packed where all tiles share it.
void prepare_product(const Run& run, const Product& p);

void do_matmul(Core& c, const uint64_t* w);

}  // namespace dvm

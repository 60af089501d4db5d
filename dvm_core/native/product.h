// Products: their geometry, B in packed panels, and the tile instruction MatMul.
#pragma once
#include "core.h"

namespace dvm {

// The product of instruction i; its slots, and where B is packed, are still open.
Product make_product(const ProgramCode& code, const Resolved& resolved, int i);

// Whether the tiles pack B themselves: no part of it is used by two of them, and it fits the cache. Returns the bytes they need, or 0.
int64_t packed_by_tiles(const Product& p, const Geometry& g);

// Before the tiles: halves widened to float32, B packed where all tiles share it.
void prepare_product(const Run& run, const Product& p);

void do_matmul(Core& c, const uint64_t* w);

}  // namespace dvm

// Products: their geometry, B in packed panels, and the tile instruction MatMul.
#pragma once
#include "core.h"

namespace dvm {

// The product of instruction i; its slots, and where B is packed, are still open.
Product make_product(const ProgramCode& code, const Resolved& resolved, int i);

// Decides whether B is packed before the tiles. Returns the UB bytes a tile needs besides its operands.
int64_t plan_product(Product* p, const Geometry& g);

// Products with one B that cannot be read where it lies (an unrolled recurrent network): the first packs it for all.
struct SharedPanels {
  const Product* packs;
  std::vector<Product*> others;
  int last_area;  // that reads them
};
std::vector<SharedPanels> share_panels(std::vector<AreaCode>* areas);

// Before the tiles: B packed, if that was decided.
void prepare_product(const Run& run, const Product& p);

// Matrix number `number` of B.
const uint8_t* matrix_of_b(const Run& run, const Product& p, int64_t number);

void do_matmul(Core& c, const uint64_t* w);

}  // namespace dvm

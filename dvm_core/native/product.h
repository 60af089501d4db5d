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

// Before the tiles: B packed, if that was decided and no panels of it are kept.
void prepare_product(const Run& run, const Product& p, bool kept);

// Whether panels that are there make a product faster, and the bytes of those of one matrix of B.
bool gains_from_panels(const Product& p);
int64_t panel_bytes(const Kernels& k, const Product& p);
// Packs every matrix of B, each panel_bytes after the one before.
void pack_matrices(const Run& run, const Product& p, uint8_t* to);

// Matrix number `number` of B.
const uint8_t* matrix_of_b(const Run& run, const Product& p, int64_t number);

void do_matmul(Core& c, const uint64_t* w);

}  // namespace dvm

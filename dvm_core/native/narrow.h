// Tiles of an area whose mask hides the columns beyond some column (a causal mask): the tile shrinks to the columns that are seen, and one
// hidden column stays to tell what the others hold.
#pragma once
#include "core.h"

namespace dvm {

// The tile takes the columns that mask `a` shows in some row, and one more; b: the value of the mask that hides.
void do_narrow(Core& c, const uint64_t* w);

// If the hidden columns of `a` are not all 0, the tile begins anew with all its columns.
void do_tail(Core& c, const uint64_t* w);

// Before the tiles: whether every element of B is finite, so that 0 times it is 0.
void check_finite(const Run& run, const Product& p);

// Rows of a product over the seen columns alone, [rows, p.n]: a sum that is -0 may be +0 over all columns.
void settle_zeros(Core& c, const Product& p, const GemmArgs& narrow);

}  // namespace dvm

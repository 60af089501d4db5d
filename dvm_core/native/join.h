// Reductions over more than one tile: partial results by the tiles, joined in order after them.
#pragma once
#include "core.h"

namespace dvm {

void do_join_x(Core& c, const uint64_t* w);
void do_join_y(Core& c, const uint64_t* w);

// Partial results joined in order, divided (MEAN), rounded to the result's dtype.
void finish_join(const Run& run, const Join& join);

}  // namespace dvm

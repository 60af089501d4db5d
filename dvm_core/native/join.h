// Reductions over more than one tile: partial results by the tiles, joined in order after them.
#pragma once
#include "core.h"

namespace dvm {

void do_join_x(Core& c, const uint64_t* w);
void do_join_y(Core& c, const uint64_t* w);

// Where a join's partial results lie, [outer, parts, width].
uint8_t* partials(const Run& run, const Join& join);

// Sums of `cols` columns, divided (MEAN) in place and rounded to the result's dtype at `to`.
void finish_sum(const Run& run, const Join& join, uint8_t* sum, uint8_t* to, int64_t cols);

// Partial results joined in order, divided (MEAN), rounded to the result's dtype.
void finish_join(const Run& run, const Join& join);

}  // namespace dvm

// Where values that live between areas lie in the segment's workspace.
#pragma once
#include <utility>
#include <vector>

#include "areacode.h"

namespace dvm {

// A value of the workspace before it has a place.
struct Lifetime {
  int32_t value;
  int64_t bytes;
  int first_area, last_area;
};

// Gives every lifetime an offset (first fit, 128-byte aligned; in place of an operand that dies in the instruction that makes the value),
// scratch memory of each area too, and writes the offsets into the areas' slots. Areas of a stack run together: nothing is free before the
// end of it (stack_end: see stack.h). Returns the workspace's size.
int64_t plan_workspace(const std::vector<Lifetime>& lifetimes, const std::vector<int>& stack_end, std::vector<AreaCode>* areas, std::vector<SlotInfo>* slots,
                       std::vector<SlotInfo>* scratch);

// (kept result, input): if they are the same bytes, the result may be written there while the segment runs.
std::vector<std::pair<int32_t, int32_t>> results_over_inputs(const std::vector<AreaCode>& areas, const std::vector<int>& stack_end, int inputs);

}  // namespace dvm

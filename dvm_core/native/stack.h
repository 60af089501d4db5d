// Small areas side by side: neighbours of which none needs another are one piece of work, with one start and one end for all.
#pragma once
#include <vector>

#include "areacode.h"

namespace dvm {

inline constexpr int kLongestStack = 64;

// By area: the area after the last one of its stack.
std::vector<int> stack(const std::vector<AreaCode>& areas);

}  // namespace dvm

// A run of an area in which some tiles are timed instruction by instruction.
#pragma once
#include <algorithm>
#include <cstdint>

#include "spent.h"

namespace dvm {

struct Sample {
  int64_t begun;                // when the area was
  int64_t set_up = 0;           // from there to the first product or tile
  int64_t tiles = 0, instructions = 0;
  int64_t tile_ns = 0, kernel_ns = 0;
  static constexpr int64_t kTiles = 4;

  bool wanted() const { return tiles < kTiles; }
  // Of `worked` nanoseconds of the launching thread, the part that no kernel took; readings of the clock are left out of both.
  double dispatch_share(int64_t worked) const {
    const int64_t clock = clock_cost_ns();
    const auto kernels = static_cast<double>(std::max<int64_t>(0, kernel_ns - instructions * clock));
    const auto in_tiles = static_cast<double>(std::max<int64_t>(1, tile_ns - 2 * instructions * clock));
    const auto all = static_cast<double>(std::max<int64_t>(1, worked - 2 * instructions * clock)), set = static_cast<double>(set_up);
    const double between = tiles ? std::clamp(1 - kernels / in_tiles, 0.0, 1.0) : 0;
    return std::clamp((set + std::max(0.0, all - set) * between) / all, 0.0, 1.0);
  }
};

}  // namespace dvm

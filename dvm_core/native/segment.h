// A compiled range of a program: areas in the order they run, their tile code in read-only pages, and the plan of the workspace.
#pragma once
#include <memory>
#include <vector>

#include "areacode.h"
#include "codepages.h"

namespace dvm {

// How an area's time is shared between the kernels and what calls them, from the last sampled run.
struct Pace {
  int64_t runs = 0;
  double dispatch = 0;  // of one
};

// An area that did not fit a device's UB even in its smallest tile, and was cut: what it would have held at its fullest.
struct Overflow {
  std::vector<int> instrs;
  int64_t bytes = 0, room = 0, tile_rows = 0, tile_cols = 0;
  std::vector<UbBuffer> held;
};

struct Segment {
  SegmentView view;
  std::vector<Overflow> overflows;
  std::vector<AreaCode> areas;
  std::shared_ptr<const CodePages> pages;  // near shapes share them
  std::vector<Pace> paces;  // by area
  std::vector<int> stack_end;  // by area: the area after the last one of its stack
  // Views nobody keeps whose root stays in memory: handed out as views.
  struct ViewOf {
    int32_t value, root;
    int64_t offset;  // elements
    Dims shape, strides;
  };
  std::vector<ViewOf> views;
};

}  // namespace dvm

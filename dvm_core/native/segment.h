// A compiled range of a program: areas in the order they run, their tile code in read-only pages, and the plan of the workspace.
#pragma once
#include <vector>

#include "areacode.h"
#include "codepages.h"

namespace dvm {

struct Segment {
  SegmentView view;
  std::vector<AreaCode> areas;
  CodePages pages;
  // Views nobody keeps whose root stays in memory: handed out as views.
  struct ViewOf {
    int32_t value, root;
    int64_t offset;  // elements
    Dims shape, strides;
  };
  std::vector<ViewOf> views;
};

}  // namespace dvm

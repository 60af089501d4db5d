// What the handlers of tile instructions see: a run of an area, and a core at one of its tiles.
#pragma once
#include "areacode.h"

namespace dvm {

// One run of one area, shared by its cores.
struct Run {
  const AreaCode& area;
  const Kernels& k;
  RunIO& io;
  void** base;               // addresses by slot
  Stats* stats = nullptr;    // [hook][unit]
  int64_t units = 0;

  uint8_t* workspace(int64_t offset) const { return static_cast<uint8_t*>(io.workspace) + offset; }
};

struct Core {
  const Run& run;
  uint8_t* ub;
  void** at;                 // addresses by slot, at this tile
  int64_t row = 0, col = 0, rows = 0, cols = 0, full = 0;
  int64_t unit = 0, group = 0, block = 0;
  bool first_of_block = false;

  void* pointer(uint32_t operand) const { return operand & kGlobal ? at[operand & (kGlobal - 1)] : ub + int64_t(operand) * kUbUnit; }
  int64_t count(Span s) const { return s == Span::kFull ? full : s == Span::kRow ? rows : s == Span::kCols ? cols : 1; }
};

using Handler = void (*)(Core& c, const uint64_t* w);

}  // namespace dvm

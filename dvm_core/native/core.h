// What the handlers of tile instructions see: a run of an area, and a core at one of its tiles.
#pragma once
#include "areacode.h"
#include "coverage.h"

namespace dvm {

// One run of one area, shared by its cores.
struct Run {
  const AreaCode& area;
  const Kernels& k;
  RunIO& io;
  void** base;               // addresses by slot
  Stats* stats = nullptr;    // [hook][unit]
  int64_t units = 0;
  Coverage* coverage = nullptr;  // simulated devices: what has been written of each result
  mutable int infinite = 0;  // a product of the tile has NaN or Inf in B: no column may be left out
  const uint8_t* const* kept = nullptr;  // panels of constant right sides, by product; null: none has them
  uint64_t number = 0;       // no two runs in the process have the same; 0: it has no prologue

  uint8_t* workspace(int64_t offset) const { return static_cast<uint8_t*>(io.workspace) + offset; }
};

struct Core {
  const Run& run;
  uint8_t* ub;
  void** at;                 // addresses by slot, at this tile
  int64_t row = 0, col = 0, rows = 0, cols = 0, full = 0;
  int64_t unit = 0, group = 0, block = 0;
  bool first_of_block = false;
  bool whole = false;        // the tile has all its columns, whatever a mask hides

  void* pointer(uint32_t operand) const { return is_global(operand) ? at[operand & (kGlobal - 1)] : ub + int64_t(operand) * kUbUnit; }
  int64_t count(Span s) const { return s == Span::kFull ? full : s == Span::kRow ? rows : s == Span::kCols ? cols : 1; }
};

// The tiles of one unit: rows [first, last) in steps of tile_rows, columns [col, col + cols).
struct UnitTiles {
  int64_t first = 0, last = 0, col = 0, cols = 0;
};

inline UnitTiles enter_unit(Core& c, int64_t unit) {
  const Geometry& g = c.run.area.space;
  const int64_t row_units = g.groups * g.blocks;
  const int64_t chunk = g.chunk_outer ? unit / row_units : unit % g.chunks, rest = g.chunk_outer ? unit % row_units : unit / g.chunks;
  c.unit = unit;
  c.group = rest / g.blocks;
  c.block = rest % g.blocks;
  UnitTiles t;
  t.col = chunk * g.tile_cols;
  t.cols = g.tile_cols < g.cols - t.col ? g.tile_cols : g.cols - t.col;
  t.first = c.group * g.group_rows + c.block * g.block_rows;
  const int64_t group_end = (c.group + 1) * g.group_rows;
  t.last = t.first + g.block_rows < group_end ? t.first + g.block_rows : group_end;
  return t;
}

inline void enter_tile(Core& c, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  c.row = row;
  c.rows = rows;
  c.col = col;
  c.cols = cols;
  c.full = rows * cols;
  c.whole = false;
  const std::vector<GlobalSlot>& slots = c.run.area.slots;
  for (size_t s = 0; s < slots.size(); ++s) c.at[s] = static_cast<uint8_t*>(c.run.base[s]) + row * slots[s].row_step + col * slots[s].col_step;
}

using Handler = void (*)(Core& c, const uint64_t* w);

}  // namespace dvm

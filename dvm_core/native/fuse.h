// Instructions grouped into areas: what one pass over memory computes together.
#pragma once
#include <string>
#include <vector>

#include "access.h"

namespace dvm {

// Rows longer than this are reduced in pieces over several tiles (an area of kind "reduce").
inline constexpr int64_t kLongestRow = 32768;
// Column reductions go over fixed blocks of this many rows: partial results per block, joined in order.
inline constexpr int64_t kRowBlock = 256;

// An iteration space by its suffix products: [8, 4, 16] is {16, 64, 512}, extents of 1 do not count. Spaces with the same number of
// elements are compatible if the union of their boundaries divides evenly: [8, 64] and [8, 4, 16] are, [4, 6] and [6, 4] are not.
struct Bounds {
  static constexpr int kMax = 24;
  int count = 0;
  int64_t at[kMax];
  // Adds the boundaries of `shape`, whose innermost axis covers `scale` elements. False (and unchanged) if they are not compatible.
  bool merge(const Dims& shape, int64_t scale = 1);
};

// What of a tile an instruction's result is.
enum class Extent : uint8_t {
  kFull,    // an element for every element of the tile
  kRow,     // one per row
  kJoined,  // complete only after all tiles
  kChained, // rows of another width, in memory only: a product of the tile's whole rows
};

enum class AreaKind : uint8_t { kVector, kCube, kMove, kReduce };

struct Area {
  AreaKind kind = AreaKind::kVector;
  std::vector<int> instrs;
  int64_t elements = 0;    // of the iteration space
  Bounds bounds;
  const Dims* merged = nullptr;  // the shape that was merged last, and its scale
  int64_t merged_scale = 0;
  int64_t inner = 0;       // of its first product: terms of a sum
  int64_t cols = 0;        // elements of a row; 0: nothing depends on rows
  int64_t block_axis = 0;  // column reductions: rows that are reduced together; 0: none
  bool rows_whole = false; // a tile must hold whole rows (it has per-row results)
  bool row_joins = false;  // rows are longer than a tile: row reductions are joined after the tiles
  std::string cut;         // why it ended

  // Adds the boundaries of a shape of the program, as Bounds::merge does; the same shape again costs a comparison.
  bool merge(const Dims& shape, int64_t scale = 1);
};

struct Fusing {
  Resolved resolved;
  std::vector<Area> areas;
  std::vector<int> area_of;       // by instruction; -1: in none
  std::vector<Extent> extent;     // by instruction
  std::vector<int> folded_into;   // by instruction: its first consumer for a view, itself if dead, -1 otherwise
};

struct FuseLimits {
  bool unfused = false;               // every instruction an area of its own
  int64_t longest_row = kLongestRow;
  size_t longest_area = 192;          // instructions
};

// kept and hooked: by local value and by instruction.
Fusing fuse(const ProgramCode& code, int begin, int end, const std::vector<uint8_t>& keep, const std::vector<uint8_t>& hooked, const FuseLimits& limits);

}  // namespace dvm

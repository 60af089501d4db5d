// Why an instruction could not join an area.
#pragma once
#include <string>

#include "fuse.h"

namespace dvm {

enum class Cut : uint8_t {
  kNone,
  kMove,     // moves data
  kMatMul,   // a product whose operands must be in memory
  kRight,    // a product of the tile with something of the same area
  kTurned,   // a product of the tile, transposed
  kBatches,  // a product of the tile with other rows than it has
  kVector,   // a product of tiles too small for it
  kWide,     // a product of the tile with too large a matrix
  kChained,  // reads a product of the tile
  kSpace,    // another iteration space
  kOrder,    // reads the tile in another order
  kJoined,   // needs what is complete after all tiles
  kLongRow,  // a row longer than a tile
  kRows,     // reduces other rows
  kBlocks,   // reduces other blocks of rows
  kFull,     // the area is long enough
};

// The reason as the areas list has it; i: the instruction that could not join.
std::string cut_words(Cut cut, const ProgramCode& code, const Resolved& resolved, const Area& area, int i);

}  // namespace dvm

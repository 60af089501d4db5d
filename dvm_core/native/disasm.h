// Tile code as text.
#pragma once
#include <string>

#include "areacode.h"
#include "tile.h"

namespace dvm {

// One instruction a line, `; %<instruction index>` at its end.
std::string disassemble(const AreaCode& area);

// One of its lines: the instruction at `word`, without its pipes.
std::string instruction_text(const AreaCode& area, const uint64_t* word);

// Rows, columns, tiles and units of an area.
std::string tiling_text(int area, const AreaCode& code);

// Tile instructions before registers have addresses: `r5`, or `g2` for what is used where it lies.
std::string lowered_text(int area, const std::vector<TileOp>& prologue, const std::vector<TileOp>& ops, const std::vector<Register>& registers,
                         const AreaCode& code);

}  // namespace dvm

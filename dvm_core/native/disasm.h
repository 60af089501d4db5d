// Tile code as text.
#pragma once
#include <string>

#include "areacode.h"

namespace dvm {

// One instruction a line, `; %<instruction index>` at its end.
std::string disassemble(const AreaCode& area);

}  // namespace dvm

// What can be wrong in the tile code of a simulated device besides a missing wait: bytes of the UB that two values share, instructions that
// write over what they still read, results that nothing stores. All from the code that is in force, not from what the encoder meant.
#pragma once
#include <vector>

#include "areacode.h"

namespace dvm {

// What the area's instructions touch by the addresses in their words; sizes are the encoder's.
std::vector<UbUse> uses_in_force(const AreaCode& area);

// Two values in one place: `made` wrote a value that `reader` takes, and `over` wrote there in between. -1: before the tiles; `over` -1:
// nothing was ever written there.
struct Overwrite {
  int made, over, reader;  // indices into the uses
  UbUse::Range bytes;
};
std::vector<Overwrite> find_overwrites(const AreaCode& area, const std::vector<UbUse>& uses);

// An instruction whose result lies over part of an operand: elements are written before others are read.
struct Alias {
  int use;
  UbUse::Range bytes;
};
std::vector<Alias> find_aliases(const std::vector<UbUse>& uses);

// Slots of results that no instruction of the area writes.
std::vector<int> find_unstored(const AreaCode& area);

// The buffers that hold something when use `at` runs, and the use where they need most.
std::vector<int> live_at(const AreaCode& area, int at);
int fullest(const AreaCode& area);

}  // namespace dvm

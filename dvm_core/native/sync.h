// The pipes of a simulated NPU core: who waits for whom, and whether every pair that must be ordered is.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "isa.h"

namespace dvm {

// What one tile instruction touches in the UB. Ranges in bytes, empty where there is none.
struct UbUse {
  struct Range {
    int64_t from = 0, to = 0;
    bool meets(const Range& o) const { return from < o.to && o.from < to; }
  };
  Pipe pipe = Pipe::kSimd;
  int32_t instr = -1;   // tensor instruction
  int32_t word = -1;    // of its head in the area's code
  Range write, read[3];
  int32_t makes = -1, takes[3] = {-1, -1, -1};  // the buffers these are, see AreaCode
  bool conflicts(const UbUse& later) const;
};

// The sync word of each instruction of a tile, 0 for one that takes no part. At most kEvents events are used for a pair of pipes, one of
// them for the order between tiles. Loaded and stored buffers must not be shared with anything else, see allocate_ub.
std::vector<uint64_t> order_pipes(const std::vector<UbUse>& uses);

// Two instructions of one core that touch the same bytes, one of them writing, with nothing between that makes the second wait.
struct Race {
  const char* kind;     // "read after write", "write after read", "write after write"
  int first, second;    // indices into `uses`
  int tiles_apart;      // 0: of one tile; 1: `second` belongs to the next tile
  UbUse::Range bytes;
};
// sync: by instruction, as the words have it.
std::vector<Race> find_races(const std::vector<UbUse>& uses, const std::vector<uint64_t>& sync);

}  // namespace dvm

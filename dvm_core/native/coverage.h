// Whether every byte of an area's results is written, and only once: what a simulated device checks of its own code.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "areacode.h"

namespace dvm {

// In the message of every error it finds, which `dvm check` tells by it from others.
inline constexpr const char* kCoverageFault = " of its result are ";

class Coverage {
 public:
  // Results of the area that its tiles store; those a join or a product completes are written whole by construction.
  Coverage(const AreaCode& area, const ProgramCode& code, void* const* base);

  // rows runs of `bytes` bytes, `stride` apart, from `to` on, which belongs to global slot `slot`. Threads mark different bytes.
  void mark(uint32_t slot, const void* to, int64_t rows, int64_t bytes, int64_t stride);

  // "" if all is well, else what is not, of the first result with a fault. `instr`: the instruction of that result.
  std::string fault(int32_t* instr) const;

 private:
  struct Result {
    uint32_t slot;
    int32_t instr;
    const uint8_t* from;
    std::vector<uint8_t> times;  // by byte: 0 never, 1 once, 3 more than once
  };
  std::vector<Result> results_;
};

}  // namespace dvm

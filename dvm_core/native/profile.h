// Devices as data: what the compiler and a launch have to respect. `cpu` is the processor itself; others simulate an Ascend NPU: memory
// apart from the host's, tiles that are copied into the UB and out of it, pipes that are ordered by events. What is reached through a
// vendor's library is added at run time, and has no tile code.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "types.h"

namespace dvm {

struct ProgramCode;
struct Value;

// Runs instructions [begin, end) one by one, reading and writing host memory: what is kept lies in `values` (by local id), allocated.
using Elsewhere = std::function<void(const ProgramCode& code, int begin, int end, const std::vector<uint8_t>& keep, const std::vector<Value>& values)>;

struct Profile {
  const char* name;              // as dvm.set_device takes it
  const char* arch;              // DVM's name of the architecture
  bool simulated;                // false: cpu, and nothing below applies
  bool faithful;                 // does what the hardware does where that differs from the exact result (casts through other dtypes)
  int64_t ub_bytes, ub_reserve;  // of one vector core; the reserve holds the code
  int vector_cores, cube_cores;
  int64_t longest_row;           // elements: a longer row is reduced in parts
  int64_t memory_bytes;          // of the device
  double copy_us, copy_bytes_per_us;  // host to device and back: latency of one copy, and bandwidth
  const Elsewhere* elsewhere = nullptr;  // null: tile code, run here

  bool plain() const { return !simulated && !elsewhere; }  // tile code on the host's own memory
};

inline constexpr int kEvents = 8;  // per pair of pipes, on every simulated device

// The device of later launches. Never ends: profiles are constants.
const Profile& current_profile();
// Throws UserError with the names there are.
const Profile& find_profile(const std::string& name);
void use_profile(const Profile& profile);
// A device that `run` runs instructions on. Throws UserError if there is one of that name.
void add_profile(const std::string& name, const std::string& arch, Elsewhere run);
// The cpu's first, then the simulated ones, then what was added.
inline constexpr int kFixedProfiles = 5;
int profile_count();
const Profile& profile_at(int index);

// Bytes of the UB that values may take. For tests: less than the profile says; 0: what it says.
int64_t ub_room(const Profile& profile);
void set_ub_room(int64_t bytes);

// The dtype a cast goes to next on its way, see docs/devices.md; `to` itself on the last step.
DType next_cast(const Profile& profile, DType from, DType to);

}  // namespace dvm

#include "profile.h"

#include <atomic>
#include <deque>
#include <mutex>
#include <utility>

#include "program.h"

namespace dvm {
namespace {

constexpr int64_t kKiB = 1024, kGiB = kKiB * kKiB * kKiB;

// UB, reserve and cores as published for Ascend 910B (c220) and 950 (c310). Copies: a PCIe 4.0 x16 link, rounded.
constexpr Profile kProfiles[kFixedProfiles] = {
    {"cpu", "CPU", false, false, 0, 0, 0, 0, 0, 0, 0, 0},
    {"npu-sim:910b", "AscendC220", true, false, 192 * kKiB, 512, 48, 24, 4096, 64 * kGiB, 10, 20'000},
    {"npu-sim:950", "AscendC310", true, false, 256 * kKiB, 256, 64, 32, 4096, 128 * kGiB, 10, 20'000},
    {"npu-sim:910b:faithful", "AscendC220", true, true, 192 * kKiB, 512, 48, 24, 4096, 64 * kGiB, 10, 20'000},
    {"npu-sim:950:faithful", "AscendC310", true, true, 256 * kKiB, 256, 64, 32, 4096, 128 * kGiB, 10, 20'000},
};

std::atomic<int64_t> room_for_tests{0};
std::atomic<const Profile*> current{&kProfiles[0]};

// Devices added at run time; a launch may hold one for ever.
struct Added {
  struct Device {
    std::string name, arch;
    Elsewhere run;
    Profile profile;
  };
  std::mutex mutex;
  std::deque<Device> devices;
};
Added& added() {
  static Added* a = new Added;
  return *a;
}

constexpr DType kBool = DType::kBool, kF16 = DType::kF16, kBF16 = DType::kBF16, kF32 = DType::kF32, kI32 = DType::kI32, kI64 = DType::kI64;

// Of DVM's six dtypes, by row (from) and column (to): where a cast goes next.
constexpr DType kStaged[] = {kBool, kF16, kBF16, kF32, kI32, kI64};
constexpr DType kNext[6][6] = {
    {kBool, kF16, kF16, kF16, kF16, kF16},  // bool
    {kBool, kF16, kF32, kF32, kI32, kF32},  // float16
    {kF32, kF32, kBF16, kF32, kI32, kF32},  // bfloat16
    {kF16, kF16, kBF16, kF32, kI32, kI64},  // float32
    {kF16, kF16, kF32, kF32, kI32, kI64},   // int32
    {kBool, kF32, kF32, kF32, kI32, kI64},  // int64
};

int staged(DType t) {
  for (int i = 0; i < 6; ++i)
    if (kStaged[i] == t) return i;
  return -1;
}

}  // namespace

const Profile& current_profile() { return *current.load(std::memory_order_relaxed); }
void use_profile(const Profile& profile) { current.store(&profile); }
int profile_count() {
  std::lock_guard lock(added().mutex);
  return kFixedProfiles + static_cast<int>(added().devices.size());
}
const Profile& profile_at(int index) {
  if (index < kFixedProfiles) return kProfiles[index];
  std::lock_guard lock(added().mutex);
  return added().devices[static_cast<size_t>(index - kFixedProfiles)].profile;
}

const Profile& find_profile(const std::string& name) {
  std::string names;
  for (const Profile& p : kProfiles) {
    if (name == p.name) return p;
    names += std::string(names.empty() ? "" : ", ") + p.name;
  }
  std::lock_guard lock(added().mutex);
  for (const Added::Device& d : added().devices) {
    if (name == d.name) return d.profile;
    names += ", " + d.name;
  }
  throw UserError("there is no device \"" + name + "\"; there are " + names);
}

void add_profile(const std::string& name, const std::string& arch, Elsewhere run) {
  for (const Profile& p : kProfiles)
    if (name == p.name) throw UserError("there is a device \"" + name + "\" already");
  std::lock_guard lock(added().mutex);
  for (const Added::Device& d : added().devices)
    if (name == d.name) throw UserError("there is a device \"" + name + "\" already");
  Added::Device& d = added().devices.emplace_back(Added::Device{name, arch, std::move(run), {}});
  d.profile = Profile{d.name.c_str(), d.arch.c_str(), false, false, 0, 0, 0, 0, 0, 0, 0, 0, &d.run};
}

int64_t ub_room(const Profile& profile) {
  const int64_t room = room_for_tests.load(std::memory_order_relaxed);
  return room ? room : profile.ub_bytes - profile.ub_reserve;
}
void set_ub_room(int64_t bytes) { room_for_tests.store(bytes); }

DType next_cast(const Profile& profile, DType from, DType to) {
  const int row = staged(from), column = staged(to);
  return profile.faithful && row >= 0 && column >= 0 ? kNext[row][column] : to;
}

}  // namespace dvm

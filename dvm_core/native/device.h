// A launch's values on a simulated device.
#pragma once
#include <memory>
#include <vector>

#include "memory.h"
#include "profile.h"
#include "program.h"

namespace dvm {

struct Segment;

// Host memory is never read or written by the device itself: everything goes through the copy engine.
class DeviceValues {
 public:
  DeviceValues(const Profile& profile, size_t count) : profile_(profile), values_(count) {}

  std::vector<Value>& values() { return values_; }

  // Brings what the segment reads, unless it is on the device already, and makes room for what it writes. `wanted`: the launch's values,
  // those it keeps on the device by their addresses. Throws UserError if a copy fails or takes too long, or the device has no room.
  void prepare(const Segment& segment, const std::vector<Value>& wanted);
  // The segment has run: copies results that are wanted in the caller's memory there. Throws UserError as above; then no result has been
  // touched.
  void fetch(const Segment& segment, const std::vector<Value>& wanted);

 private:
  const Profile& profile_;
  std::vector<Value> values_;
};

// What was left on a device instead of being copied, for stats.
struct ResidentStats {
  int64_t inputs = 0, results = 0, bytes = 0;  // inputs found there, results that stayed there; bytes of both
};
ResidentStats resident_stats();

}  // namespace dvm

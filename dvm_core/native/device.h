// The memory of a simulated device and the engine that copies between it and the host's.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "memory.h"
#include "profile.h"
#include "program.h"

namespace dvm {

struct Segment;

// A launch's values on the device. Host memory is never read or written by the device itself: everything goes through the copy engine.
class DeviceValues {
 public:
  DeviceValues(const Profile& profile, size_t count) : profile_(profile), values_(count) {}

  std::vector<Value>& values() { return values_; }

  // Copies in what the segment reads and makes room for what it writes. Throws UserError if a copy fails or takes too long, or the device
  // has no room.
  void prepare(const Segment& segment, const std::vector<Value>& host);
  // Copies results back to where the host wants them. Throws UserError as above; then no result has been touched.
  void fetch(const Segment& segment, std::vector<Value>* host);

 private:
  const Profile& profile_;
  std::vector<Value> values_;
};

struct DeviceStats {
  int64_t copies_in = 0, copies_out = 0, bytes_in = 0, bytes_out = 0, faults = 0;
  double copy_us = 0;  // what the copies would have taken on the device's link
};
DeviceStats device_stats();

// How long a copy may take before the launch gives up, in milliseconds; 5000 at first. Throws UserError outside of 1..600000.
void set_copy_timeout(int64_t milliseconds);

// For tests: what goes wrong, once, after `after` more copies (or allocations). "fail": the copy reports an error. "stall": it takes
// `milliseconds` longer. "lose": it is done and its event never comes. "memory": the device has no room. Throws UserError for another word.
void plant_fault(const std::string& kind, int64_t after, int64_t milliseconds);

}  // namespace dvm

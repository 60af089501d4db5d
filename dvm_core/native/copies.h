// The engine that copies between a device's memory and the host's: two queues with a thread each, events, and the faults tests plant.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "profile.h"

namespace dvm {

// What a copy is for. Snapshots and results leave the device, the rest of a move and inputs go to it or come back.
enum class CopyFor : uint8_t { kIn, kOut, kSnapshot, kMoveIn, kMoveOut };
constexpr bool to_device(CopyFor what) { return what == CopyFor::kIn || what == CopyFor::kMoveIn; }

class Event {
 public:
  enum State : uint8_t { kPending, kDone, kFailed };
  void set(State to);
  // Waits at most until `deadline` on the clock of now_ns(). What happened only after it is still pending, however late one looks.
  State wait_until(int64_t deadline);
  State state();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = kPending;
  int64_t at_ = 0;
};

// Both ends are held until the copy is done, also by the engine itself, which has let go when the event comes: whoever has given up may
// let go of them.
struct Copy {
  const Profile* device = nullptr;
  std::shared_ptr<void> to, from;
  size_t bytes = 0;
  CopyFor what = CopyFor::kIn;
  std::shared_ptr<Event> event = std::make_shared<Event>();
};
using CopyPtr = std::shared_ptr<Copy>;

// In order with the copies of the same direction.
CopyPtr start_copy(const Profile& device, CopyFor what, std::shared_ptr<void> to, std::shared_ptr<void> from, size_t bytes);
// Waits for it. Throws UserError if it failed or takes too long.
void finish_copy(const Copy& copy);

struct CopyEngineStats {
  int64_t copies_in = 0, copies_out = 0, bytes_in = 0, bytes_out = 0, faults = 0;
  double copy_us = 0;  // what the copies would have taken on the device's link
};
CopyEngineStats copy_engine_stats();

// How long a copy may take before whoever needs it gives up, in milliseconds; 5000 at first. Throws UserError outside of 1..600000.
void set_copy_timeout(int64_t milliseconds);
// The link instead of the profile's (negative: the profile's own). paced: a copy takes that long, else it is only counted.
void set_link(double latency_us, double bytes_per_us, bool paced);

// For tests: what goes wrong. "fail": half of the bytes arrive and the copy reports an error. "stall": it takes `milliseconds` longer.
// "lose": it is done and its event never comes. "memory": the device has no room. `of`: "in", "out", "snapshot", "move" or "" for any.
// With a rate, it happens to that share of all copies, chosen by `seed`, until clear_faults; without, once, after `after` more of them.
// Throws UserError for another word.
struct PlantedFault {
  std::string kind, of;
  int64_t after = 0, milliseconds = 0;
  double rate = 0;
  uint64_t seed = 0;
};
void plant_fault(const PlantedFault& fault);
void clear_faults();
// Whether an allocation is to fail now.
bool room_is_planted_to_fail(bool in_move);

}  // namespace dvm

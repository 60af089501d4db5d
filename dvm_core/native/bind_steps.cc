#include "steps.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "bind_common.h"
#include "fork.h"

namespace dvm {
namespace {

// With the GIL.
int64_t running = 0;
bool closed = false;
int64_t waiting = 0;  // threads that found it closed
int64_t owed = 0;     // of them, those that have the way before it closes again: or one that switches without end would hold them back for good
thread_local int depth = 0;  // of this thread: more than one if what a person evaluates at a stop is captured too

std::atomic<int64_t> abandoned{0};

// For those that wait, without the GIL: what they wait for may have come to be, look again. A forked child, which has none of them, has its own.
struct Turns {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t number = 0;
};
Turns*& turns_pointer() {
  static Turns* turns = [] {
    in_child_after_fork([] {
      turns_pointer() = new Turns;
      running = depth > 0;
      closed = false;
      waiting = owed = 0;
      abandoned.store(0);
    });
    return new Turns;
  }();
  return turns;
}

uint64_t turn() {
  Turns& t = *turns_pointer();
  std::lock_guard lock(t.mutex);
  return t.number;
}

void next_turn() {
  Turns& t = *turns_pointer();
  {
    std::lock_guard lock(t.mutex);
    ++t.number;
  }
  t.changed.notify_all();
}

// Until something has changed since `seen`, or it is too late: false.
bool wait_for_turn(uint64_t seen, std::chrono::steady_clock::time_point end) {
  nb::gil_scoped_release unlocked;
  Turns& t = *turns_pointer();
  std::unique_lock lock(t.mutex);
  return t.changed.wait_until(lock, end, [&] { return t.number != seen; });
}

constexpr auto kLong = std::chrono::hours(1);

void wait_while_closed() {
  if (!closed) return;
  ++waiting;
  while (closed) {
    const uint64_t seen = turn();
    wait_for_turn(seen, std::chrono::steady_clock::now() + kLong);
  }
  --waiting;
  if (owed > 0 && --owed == 0) next_turn();
}

}  // namespace

void begin_step() {
  if (depth == 0) {
    if (closed) wait_while_closed();
    ++running;
  }
  ++depth;
}

void end_step() {
  if (--depth > 0) return;
  --running;
  if (closed) next_turn();
}

void abandon_step() {
  abandoned.fetch_add(1);
  next_turn();
}

BetweenSteps::BetweenSteps(int64_t milliseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  for (bool patient = true;;) {
    wait_while_closed();
    if (owed <= 0 || !patient) break;
    const uint64_t seen = turn();
    patient = wait_for_turn(seen, end);
  }
  closed = true;
  for (bool in_time = true;;) {
    const uint64_t seen = turn();
    reached_ = running - abandoned.load() <= (depth > 0);
    if (reached_ || !in_time) return;
    in_time = wait_for_turn(seen, end);
  }
}

BetweenSteps::~BetweenSteps() {
  closed = false;
  owed = waiting;
  next_turn();
}

}  // namespace dvm

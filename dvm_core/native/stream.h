// A stream: one thread that runs what it is given, in order. The copy stream takes snapshots off the training thread.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "hooks.h"
#include "program.h"

namespace dvm {

class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();  // finishes what was submitted

  // Tasks run in order on the stream's thread, which starts with the first; they must not throw.
  void submit(std::function<void()> task);
  // Waits until what has been submitted is done.
  void synchronize();

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::mutex start_;
  std::shared_ptr<State> state();
};

// Copies `value` (its storage is held until then) into `event.data` and publishes the event. A value above `limit` bytes, one still
// queued after the timeout, and one that finds too many bytes queued before it, is published as a placeholder with the reason.
inline constexpr int64_t kSnapshotQueueBytes = int64_t{64} << 20;
void snapshot(Value value, HookEvent event, int64_t limit);
// How long a copy may wait in the queue, for snapshots taken from now on; 100 at first. Throws UserError outside of 1..60000.
void set_snapshot_timeout(int64_t milliseconds);
// Waits until all snapshots so far are published.
void synchronize_snapshots();
// For tests: keeps the copy stream busy that long.
void delay_snapshots(int milliseconds);

// Elements of any strides to contiguous memory. Regions must not overlap.
void copy_contiguous(void* to, const Value& from);

}  // namespace dvm

#include "hooks.h"

#include <atomic>
#include <cerrno>
#include <deque>
#include <mutex>
#include <system_error>
#include <utility>

#ifdef __linux__
#include <sys/eventfd.h>
#include <unistd.h>
#endif

#include "fork.h"
#include "memory.h"

namespace dvm {
namespace {

constexpr size_t kMaxEvents = 10'000, kMaxBytes = size_t{256} << 20;

class Queue {
 public:
  void push(HookEvent event) {
    event.time_ns = now_ns();
    std::lock_guard lock(mutex_);
    parents_.clear();
    bytes_ += event.bytes();
    events_.push_back(std::move(event));
    while (events_.size() > kMaxEvents || (bytes_ > kMaxBytes && events_.size() > 1)) {
      bytes_ -= events_.front().bytes();
      log_freed(events_.front().log_id);
      events_.pop_front();
      ++dropped_;
    }
    signal();
  }

  std::vector<HookEvent> take(int64_t limit, int64_t* dropped) {
    std::lock_guard lock(mutex_);
    std::vector<HookEvent> out;
    while (!events_.empty() && static_cast<int64_t>(out.size()) < limit) {
      bytes_ -= events_.front().bytes();
      log_freed(events_.front().log_id);
      out.push_back(std::move(events_.front()));
      events_.pop_front();
    }
    *dropped = std::exchange(dropped_, 0);
    if (events_.empty()) clear_signal();
    return out;
  }

  int fd() {
    std::lock_guard lock(mutex_);
#ifdef __linux__
    if (fd_ < 0) {
      fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
      if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
      if (!events_.empty()) signal();
    }
#endif
    return fd_;
  }

  std::mutex& mutex() { return mutex_; }

  // In a forked child, under every lock: the parent's events and its descriptor are not ours. What the events hold goes with the next one,
  // since memory cannot be given back under the lock of those who give it out.
  void forget() {
    parents_.swap(events_);
    bytes_ = 0;
    dropped_ = 0;
#ifdef __linux__
    if (fd_ >= 0) close(fd_);
#endif
    fd_ = -1;
  }

 private:
  void signal() {
#ifdef __linux__
    const uint64_t one = 1;
    if (fd_ >= 0 && write(fd_, &one, sizeof one) < 0 && errno != EAGAIN) fd_ = -1;
#endif
  }
  void clear_signal() {
#ifdef __linux__
    uint64_t count;
    if (fd_ >= 0 && read(fd_, &count, sizeof count) < 0 && errno != EAGAIN) fd_ = -1;
#endif
  }

  std::mutex mutex_;
  std::deque<HookEvent> events_, parents_;
  size_t bytes_ = 0;
  int64_t dropped_ = 0;
  int fd_ = -1;
};

Queue& queue() {
  static Queue* q = [] {
    auto* made = new Queue;
    guard_at_fork(ForkRank::events, made->mutex(), [] { queue().forget(); });
    return made;
  }();
  return *q;
}
[[maybe_unused]] const Queue& at_load = queue();  // made before any thread: none may be at it when another forks

std::atomic<int> mask{0};
std::atomic<int64_t> measured_every{0};

}  // namespace

void publish(HookEvent event) { queue().push(std::move(event)); }
std::vector<HookEvent> take_events(int64_t limit, int64_t* dropped) { return queue().take(limit, dropped); }
int events_fd() { return queue().fd(); }
void set_check_mask(int bits) { mask.store(bits & 3); }
int check_mask() { return mask.load(std::memory_order_relaxed); }
void set_measure(int64_t every) { measured_every.store(every); }
int64_t measure_every() { return measured_every.load(std::memory_order_relaxed); }

}  // namespace dvm

// fork() with other threads at work: the child must not inherit a lock that nobody will release, nor a half-written table.
#pragma once
#include <cstdint>
#include <mutex>
#include <shared_mutex>

namespace dvm {

// fork() takes these locks in this order and releases them in both processes; code that takes several takes them in this order too.
enum class ForkRank { events, device, addresses, log, memory, code, count };

// Once per rank, before the first use of the lock. `child` (may be null) runs in the child with the locks held.
void guard_at_fork(ForkRank rank, std::mutex& lock, void (*child)() = nullptr);

// Runs in each forked child, which has none of the parent's threads but the one that forked.
void in_child_after_fork(void (*child)());

// How many forks lie between this process and the first: what another thread was at before the last of them goes on in the parent alone.
uint64_t forks();

// Held (shared) while a segment is looked up, compiled and run: fork() waits for the end of what runs.
class WhileRunning {
 public:
  WhileRunning();
  ~WhileRunning();
  WhileRunning(const WhileRunning&) = delete;
};

}  // namespace dvm

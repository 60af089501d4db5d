#include "steps.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "fork.h"

namespace dvm {
namespace {

struct Gate {
  std::atomic<int64_t> running{0};
  std::atomic<bool> closed{false};
  std::mutex mutex, switching;
  std::condition_variable changed;

  void notify() {
    { std::lock_guard lock(mutex); }
    changed.notify_all();
  }
};

thread_local bool in_step = false;

// A forked child has a gate of its own: whoever ran or waited in the parent does so there alone.
Gate*& gate_pointer() {
  static Gate* gate = [] {
    in_child_after_fork([] {
      auto* fresh = new Gate;
      fresh->running.store(in_step);
      gate_pointer() = fresh;
    });
    return new Gate;
  }();
  return gate;
}
Gate& gate() { return *gate_pointer(); }

}  // namespace

bool try_begin_step() {
  Gate& g = gate();
  g.running.fetch_add(1);
  if (g.closed.load()) {
    g.running.fetch_sub(1);
    g.notify();
    return false;
  }
  in_step = true;
  return true;
}

void end_step() noexcept {
  Gate& g = gate();
  in_step = false;
  g.running.fetch_sub(1);
  if (g.closed.load()) g.notify();
}

void wait_for_switch() {
  Gate& g = gate();
  std::unique_lock lock(g.mutex);
  g.changed.wait(lock, [&] { return !g.closed.load(); });
}

BetweenSteps::BetweenSteps(int64_t milliseconds) {
  Gate& g = gate();
  g.switching.lock();
  g.closed.store(true);
  std::unique_lock lock(g.mutex);
  const int64_t mine = in_step;
  reached_ = g.changed.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] { return g.running.load() <= mine; });
}

BetweenSteps::~BetweenSteps() {
  Gate& g = gate();
  g.closed.store(false);
  g.notify();
  g.switching.unlock();
}

}  // namespace dvm

#include "fork.h"

#include <array>
#include <atomic>
#include <new>

#ifdef __linux__
#include <pthread.h>
#endif

namespace dvm {
namespace {

struct Guard {
  std::mutex* lock = nullptr;
  void (*child)() = nullptr;
};

// glibc's read-write lock prefers readers, so the stop handler's thread may flush again while a fork waits.
std::shared_mutex& running() {
  static auto* lock = new std::shared_mutex;
  return *lock;
}

std::array<Guard, static_cast<size_t>(ForkRank::count)>& guards() {
  static auto* all = new std::array<Guard, static_cast<size_t>(ForkRank::count)>;
  return *all;
}

// What runs in a child, the newest first. Whole whenever a fork comes.
struct Child {
  void (*run)();
  Child* next;
};
std::atomic<Child*> children{nullptr};

std::atomic<uint64_t> generation{0};

void before() {
  running().lock();
  for (Guard& g : guards())
    if (g.lock) g.lock->lock();
}

void unlock_guards() {
  for (auto g = guards().rbegin(); g != guards().rend(); ++g)
    if (g->lock) g->lock->unlock();
}

void in_parent() {
  unlock_guards();
  running().unlock();
}

void in_child() {
  generation.fetch_add(1, std::memory_order_relaxed);
  for (Guard& g : guards())
    if (g.child) g.child();
  for (const Child* c = children.load(); c; c = c->next) c->run();
  unlock_guards();
  // A read-write lock remembers its writer's thread id, which is another in the child: it is made anew.
  new (&running()) std::shared_mutex;
}

void install() {
#ifdef __linux__
  static const int done = pthread_atfork(before, in_parent, in_child);
  (void)done;
#endif
}

}  // namespace

void guard_at_fork(ForkRank rank, std::mutex& lock, void (*child)()) {
  install();
  guards()[static_cast<size_t>(rank)] = {&lock, child};
}

void in_child_after_fork(void (*child)()) {
  install();
  auto* made = new Child{child, children.load()};
  while (!children.compare_exchange_weak(made->next, made)) {}
}

uint64_t forks() {
  install();
  return generation.load(std::memory_order_relaxed);
}

WhileRunning::WhileRunning() {
  install();
  running().lock_shared();
}
WhileRunning::~WhileRunning() { running().unlock_shared(); }

}  // namespace dvm

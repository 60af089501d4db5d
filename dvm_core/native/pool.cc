#include "pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

#include "fork.h"

namespace dvm {
namespace {

constexpr int kMaxWorkers = 64;
// A helper that spins finds work in 0.3 us; one that parked takes about 50 us to wake, and waking it costs the caller about 20 us.
constexpr int64_t kSpinNs = 50'000, kShareFromNs = 4'000, kWakeFromNs = 150'000;
// What helpers cost without helping (their processor has other work: one was left in the middle of a unit, or came too late) is paid back by
// working alone for so many times as long: 2 % at most are lost. Waiting is no loss up to this and a quarter of the job.
constexpr int64_t kPayBack = 64, kPatienceNs = 10'000, kLongestRestNs = 1'000'000'000;

void pause() {
#if defined(__x86_64__) || defined(_M_X64)
  __builtin_ia32_pause();
#endif
}

int64_t now() { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::vector<int> usable_cpus() {
  std::vector<int> cpus;
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int c = 0; c < CPU_SETSIZE; ++c)
      if (CPU_ISSET(c, &set)) cpus.push_back(c);
#endif
  if (cpus.empty())
    for (unsigned c = 0; c < std::max(1u, std::thread::hardware_concurrency()); ++c) cpus.push_back(static_cast<int>(c));
  return cpus;
}

// The number of the worker this thread is at the moment, -1 outside a parallel_for.
thread_local int worker_here = -1;

thread_local int64_t waited_ns = 0;

class Pool {
 public:
  explicit Pool(int workers) : cpus_(usable_cpus()) {
    for (int i = 1; i < workers; ++i) helpers_.push_back(std::make_unique<Helper>());
    for (size_t i = 0; i < helpers_.size(); ++i) {
      helpers_[i]->thread = std::thread([this, i] { help(static_cast<int>(i) + 1); });
      // Pinned away from the caller; an unpinned helper was seen to share the caller's processor and add nothing.
      pin(*helpers_[i], cpus_[(i + 1) % cpus_.size()]);
    }
  }

  ~Pool() {
    quit_.store(true);
    wake();
    for (auto& h : helpers_) h->thread.join();
  }

  int workers() const { return static_cast<int>(helpers_.size()) + 1; }

  // Helpers are left alone at this time.
  bool rests(int64_t time) const { return time < rest_until_; }

  // What to do about helpers that are parked: `nobody`: all are, and waking one does not pay. Opening a job for nobody is not free.
  enum class Parked { nobody, wake, as_they_are };
  Parked parked(double cost_ns, int64_t time) {
    const int n = parked_.load(std::memory_order_relaxed);
    if (n > 0 && worth_waking(cost_ns, time)) return Parked::wake;
    return n == static_cast<int>(helpers_.size()) ? Parked::nobody : Parked::as_they_are;
  }

  // start: now.
  void run(int64_t units, UnitFn fn, void* context, bool wakes, int64_t start) {
    fn_ = fn;
    context_ = context;
    units_ = units;
    next_.store(0, std::memory_order_relaxed);
    failed_.store(false, std::memory_order_relaxed);
    error_ = nullptr;
    avoid_my_cpu();
    const uint64_t epoch = (gate_.load(std::memory_order_relaxed) & ~(kOpen | kJoined)) + kEpoch;
    gate_.store(epoch | kOpen);
    if (wakes) wake_for_job();
    worker_here = 0;
    drain(0);
    worker_here = -1;
    // Closed: whoever has not joined by now is not waited for; whoever has is in its last unit.
    if (gate_.fetch_and(~kOpen) & kJoined) {
      const int64_t drained = now();
      while (gate_.load(std::memory_order_acquire) & kJoined) pause();
      const int64_t end = now(), waited = end - drained;
      waited_ns += waited;
      if (waited > kPatienceNs + (drained - start) / 4) rest(end, waited);
    }
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  // gate_: the number of the job, whether helpers may join, and how many have.
  static constexpr uint64_t kJoined = 0xff, kOpen = 0x100, kEpoch = 0x200;

  struct Helper {
    std::thread thread;
    int cpu = -1;
  };

  void drain(int worker) {
    for (;;) {
      const int64_t unit = next_.fetch_add(1, std::memory_order_relaxed);
      if (unit >= units_) return;
      if (failed_.load(std::memory_order_relaxed)) continue;
      try {
        fn_(context_, unit, worker);
      } catch (...) {
        if (!failed_.exchange(true)) error_ = std::current_exception();
      }
    }
  }

  bool join(uint64_t* last_epoch) {
    uint64_t g = gate_.load(std::memory_order_acquire);
    while ((g & kOpen) && (g & ~(kOpen | kJoined)) != *last_epoch)
      if (gate_.compare_exchange_weak(g, g + 1, std::memory_order_acq_rel)) {
        *last_epoch = g & ~(kOpen | kJoined);
        joins_.fetch_add(1, std::memory_order_relaxed);
        return true;
      }
    return false;
  }

  void help(int worker) {
    worker_here = worker;
    uint64_t last_epoch = 0;
    int64_t idle_since = now();
    for (int spins = 0; !quit_.load(std::memory_order_relaxed);) {
      if (join(&last_epoch)) {
        drain(worker);
        gate_.fetch_sub(1, std::memory_order_acq_rel);
        idle_since = now();
        spins = 0;
        continue;
      }
      pause();
      if (++spins % 64 == 0 && now() - idle_since > kSpinNs) {
        park();
        idle_since = now();
      }
    }
  }

  void park() {
    const uint32_t ticket = wakes_.load();
    parked_.fetch_add(1);
    // A job opened between the last look and parked_ would not have woken us: look once more.
    if (!(gate_.load() & kOpen) && !quit_.load()) wakes_.wait(ticket);
    parked_.fetch_sub(1);
  }

  void wake() {
    wakes_.fetch_add(1);
    wakes_.notify_all();
  }

  // Waking costs the caller a system call. If nobody came of the last one, it was for nothing.
  void wake_for_job() {
    const int64_t joins = joins_.load(std::memory_order_relaxed), before = now();
    const bool in_vain = joins == joins_at_wake_;
    wake();
    const int64_t after = now();
    joins_at_wake_ = joins;
    if (in_vain) rest(after, after - before);
  }

  void rest(int64_t from, int64_t lost_ns) { rest_until_ = from + std::min(kPayBack * lost_ns, kLongestRestNs); }

  // Small jobs in quick succession are worth a wake-up together: their costs add up, and fade when they come seldom.
  bool worth_waking(double cost_ns, int64_t t) {
    if (cost_ns <= 0) return true;
    if (t - last_job_ns_ > 1'000'000) debt_ns_ = 0;
    last_job_ns_ = t;
    debt_ns_ += cost_ns;
    if (debt_ns_ < kWakeFromNs) return false;
    debt_ns_ = 0;
    return true;
  }

  void pin(Helper& h, int cpu) {
    h.cpu = cpu;
#ifdef __linux__
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(h.thread.native_handle(), sizeof set, &set);
#endif
  }

  // The caller may have been moved onto a helper's processor: that helper takes one nobody uses.
  void avoid_my_cpu() {
#ifdef __linux__
    const int here = sched_getcpu();
    for (auto& h : helpers_) {
      if (h->cpu != here) continue;
      for (int cpu : cpus_) {
        bool used = cpu == here;
        for (auto& other : helpers_) used = used || other->cpu == cpu;
        if (!used) {
          pin(*h, cpu);
          return;
        }
      }
    }
#endif
  }

  std::vector<int> cpus_;
  std::vector<std::unique_ptr<Helper>> helpers_;
  UnitFn fn_ = nullptr;
  void* context_ = nullptr;
  int64_t units_ = 0;
  std::exception_ptr error_;
  double debt_ns_ = 0;
  int64_t last_job_ns_ = 0, rest_until_ = 0, joins_at_wake_ = -1;
  std::atomic<bool> failed_{false}, quit_{false};
  std::atomic<int> parked_{0};
  std::atomic<uint32_t> wakes_{0};
  std::atomic<int64_t> joins_{0};  // of all jobs
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<uint64_t> gate_{0};
};

int default_workers() {
  if (const char* text = std::getenv("DVM_THREADS"))
    if (const int n = std::atoi(text); n > 0) return std::min(n, kMaxWorkers);
  return std::clamp(static_cast<int>(usable_cpus().size()), 1, kMaxWorkers);
}

// The pool in use. `busy` is held by the thread that uses it; the others work alone meanwhile.
struct Shared {
  std::mutex busy;
  std::unique_ptr<Pool> pool;
  std::atomic<int> wanted{default_workers()};
};

Shared* make_shared_pool();
Shared*& instance() {
  static Shared* s = make_shared_pool();
  return s;
}

Shared* make_shared_pool() {
  // The child has none of the threads: it forgets the parent's pool (whose locks may be held) and makes its own when needed.
  in_child_after_fork([] {
    const int wanted = instance()->wanted.load();
    instance() = new Shared;
    instance()->wanted.store(wanted);
    worker_here = -1;
  });
  return new Shared;
}

void run_alone(int64_t units, UnitFn fn, void* context) {
  const int worker = std::max(worker_here, 0);
  for (int64_t unit = 0; unit < units; ++unit) fn(context, unit, worker);
}

}  // namespace

int64_t pool_waited_ns() { return waited_ns; }

int pool_threads() { return instance()->wanted.load(); }

void set_pool_threads(int n) { instance()->wanted.store(n <= 0 ? default_workers() : std::min(n, kMaxWorkers)); }

void parallel_for(int64_t units, UnitFn fn, void* context, double cost_ns) {
  Shared& shared = *instance();
  if (units <= 1 || worker_here >= 0 || shared.wanted.load(std::memory_order_relaxed) <= 1 || (cost_ns > 0 && cost_ns < kShareFromNs))
    return run_alone(units, fn, context);
  std::unique_lock lock(shared.busy, std::try_to_lock);
  if (!lock) return run_alone(units, fn, context);
  const int wanted = shared.wanted.load();
  if (!shared.pool || shared.pool->workers() != wanted) {
    shared.pool.reset();
    shared.pool = std::make_unique<Pool>(wanted);
  }
  const int64_t start = now();
  if (shared.pool->rests(start)) return run_alone(units, fn, context);
  const Pool::Parked parked = shared.pool->parked(cost_ns, start);
  if (parked == Pool::Parked::nobody) return run_alone(units, fn, context);
  shared.pool->run(units, fn, context, parked == Pool::Parked::wake, start);
}

void* thread_scratch(int64_t bytes) {
  struct Scratch {
    void* data = nullptr;
    int64_t bytes = 0;
    ~Scratch() { release(); }
    void release() {
      if (data) ::operator delete(data, std::align_val_t{128});
    }
  };
  thread_local Scratch scratch;
  if (bytes > scratch.bytes) {
    scratch.release();
    scratch.data = nullptr;
    scratch.bytes = 0;
    scratch.data = ::operator new(static_cast<size_t>(bytes), std::align_val_t{128});
    scratch.bytes = bytes;
  }
  return scratch.data;
}

}  // namespace dvm

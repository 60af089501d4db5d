#include "copies.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "fork.h"
#include "memory.h"
#include "program.h"
#include "splitmix.h"
#include "stream.h"

namespace dvm {
namespace {

std::atomic<int64_t> timeout_ms{5000};

// ---- planted faults -----------------------------------------------------------------------------------------------------------------

enum class Fault : uint8_t { kNone, kFail, kStall, kLose, kMemory };
constexpr std::array<const char*, 5> kFaultNames = {"", "fail", "stall", "lose", "memory"};
constexpr std::array<const char*, 5> kCopyNames = {"in", "out", "snapshot", "move", "move"};  // by CopyFor

struct Rule {
  Fault fault;
  PlantedFault is;

  // The next of a fixed sequence of numbers in [0, 1).
  double draw() { return static_cast<double>(splitmix(&is.seed) >> 11) * 0x1p-53; }
};

struct Engine {
  std::mutex mutex;
  std::vector<Rule> rules;
  CopyEngineStats stats;
  double latency_us = -1, bytes_per_us = -1;
  bool paced = false;

  // What happens to this copy (or allocation). Under the lock.
  Fault take(bool of_copy, const char* what, int64_t* milliseconds) {
    for (size_t i = 0; i < rules.size(); ++i) {
      Rule& rule = rules[i];
      if ((rule.fault != Fault::kMemory) != of_copy || !(rule.is.of.empty() || rule.is.of == what)) continue;
      if (rule.is.rate > 0 ? rule.draw() >= rule.is.rate : rule.is.after-- > 0) continue;
      const Fault fault = rule.fault;
      *milliseconds = rule.is.milliseconds;
      if (!(rule.is.rate > 0)) rules.erase(rules.begin() + static_cast<std::ptrdiff_t>(i));
      ++stats.faults;
      return fault;
    }
    return Fault::kNone;
  }
};
Engine& engine() {
  static Engine* e = [] {
    auto* made = new Engine;
    guard_at_fork(ForkRank::device, made->mutex);
    return made;
  }();
  return *e;
}
[[maybe_unused]] const Engine& at_load = engine();  // made before any thread: none may be at it when another forks

// By direction. Never destroyed: a copy that stalls does not hold up the end of the process. A forked child starts its own.
Stream& queue(bool in) {
  static std::array<Stream*, 2> queues = {new Stream, new Stream};
  static const bool forks = [] {
    in_child_after_fork([] { queues = {new Stream, new Stream}; });
    return true;
  }();
  (void)forks;
  return *queues[in];
}
[[maybe_unused]] const Stream& queue_at_load = queue(true);

void sleep_us(double us) { std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(us)); }

}  // namespace

void Event::set(State to) {
  {
    std::lock_guard lock(mutex_);
    state_ = to;
    at_ = now_ns();
  }
  changed_.notify_all();
}

Event::State Event::wait_until(int64_t deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::nanoseconds(deadline - now_ns()), [this] { return state_ != kPending; });
  return at_ > deadline ? kPending : state_;
}

Event::State Event::state() {
  std::lock_guard lock(mutex_);
  return state_;
}

CopyPtr start_copy(const Profile& device, CopyFor what, std::shared_ptr<void> to, std::shared_ptr<void> from, size_t bytes) {
  auto copy = std::make_shared<Copy>();
  copy->device = &device;
  copy->to = std::move(to);
  copy->from = std::move(from);
  copy->bytes = bytes;
  copy->what = what;
  const bool in = to_device(what);
  Fault fault;
  int64_t stall_ms = 0;
  double paced_us = 0;
  {
    Engine& e = engine();
    std::lock_guard lock(e.mutex);
    ++(in ? e.stats.copies_in : e.stats.copies_out);
    (in ? e.stats.bytes_in : e.stats.bytes_out) += static_cast<int64_t>(bytes);
    const double latency = e.latency_us < 0 ? device.copy_us : e.latency_us, rate = e.bytes_per_us < 0 ? device.copy_bytes_per_us : e.bytes_per_us;
    const double us = latency + static_cast<double>(bytes) / rate;
    e.stats.copy_us += us;
    if (e.paced) paced_us = us;
    fault = e.take(true, kCopyNames[static_cast<size_t>(what)], &stall_ms);
  }
  queue(in).submit([held = copy, fault, stall_ms, paced_us]() mutable {
    if (paced_us > 0) sleep_us(paced_us);
    if (fault == Fault::kStall) sleep_us(static_cast<double>(stall_ms) * 1e3);
    const size_t arrive = fault == Fault::kFail ? held->bytes / 2 : held->bytes;
    if (arrive) std::memcpy(held->to.get(), held->from.get(), arrive);
    const auto event = held->event;
    held.reset();
    if (fault != Fault::kLose) event->set(fault == Fault::kFail ? Event::kFailed : Event::kDone);
  });
  return copy;
}

void finish_copy(const Copy& copy) {
  const int64_t limit = timeout_ms.load();
  const auto what = [&] { return "a copy of " + std::to_string(copy.bytes) + " bytes " + (to_device(copy.what) ? "to " : "from ") + copy.device->name; };
  switch (copy.event->wait_until(now_ns() + limit * 1'000'000)) {
    case Event::kDone: return;
    case Event::kFailed: throw UserError(what() + " failed; the call can be made again");
    case Event::kPending: throw UserError(what() + " was not done after " + std::to_string(limit) + " ms; the call can be made again");
  }
}

CopyEngineStats copy_engine_stats() {
  std::lock_guard lock(engine().mutex);
  return engine().stats;
}

void set_copy_timeout(int64_t milliseconds) {
  if (milliseconds < 1 || milliseconds > 600'000) throw UserError("set_copy_timeout: " + std::to_string(milliseconds) + " ms is not within 1..600000");
  timeout_ms.store(milliseconds);
}

void set_link(double latency_us, double bytes_per_us, bool paced) {
  if (latency_us > 1e7 || bytes_per_us == 0) throw UserError("set_link: a latency above ten seconds, or no bytes per microsecond");
  std::lock_guard lock(engine().mutex);
  engine().latency_us = latency_us;
  engine().bytes_per_us = bytes_per_us;
  engine().paced = paced;
}

void plant_fault(const PlantedFault& planted) {
  size_t kind = 1, of = 0;
  while (kind < kFaultNames.size() && planted.kind != kFaultNames[kind]) ++kind;
  while (of < kCopyNames.size() && planted.of != kCopyNames[of]) ++of;
  if (kind == kFaultNames.size()) throw UserError("there is no fault \"" + planted.kind + "\"; there are fail, stall, lose and memory");
  if (of == kCopyNames.size() && !planted.of.empty())
    throw UserError("there are no copies \"" + planted.of + "\"; there are in, out, snapshot, move, and \"\" for all");
  std::lock_guard lock(engine().mutex);
  engine().rules.push_back({static_cast<Fault>(kind), planted});
}

void clear_faults() {
  std::lock_guard lock(engine().mutex);
  engine().rules.clear();
}

bool room_is_planted_to_fail(bool in_move) {
  int64_t unused = 0;
  std::lock_guard lock(engine().mutex);
  return engine().take(false, in_move ? "move" : "in", &unused) == Fault::kMemory;
}

}  // namespace dvm

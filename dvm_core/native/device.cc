#include "device.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "fork.h"
#include "segment.h"
#include "stream.h"

namespace dvm {
namespace {

std::atomic<int64_t> timeout_ms{5000};

// ---- planted faults -----------------------------------------------------------------------------------------------------------------

enum class Fault : uint8_t { kNone, kFail, kStall, kLose, kMemory };
constexpr const char* kFaultNames[] = {"", "fail", "stall", "lose", "memory"};

struct Planted {
  std::mutex mutex;
  Fault fault = Fault::kNone;
  int64_t after = 0, milliseconds = 0;

  // Whether it happens now; `of_copy`: what is going on is a copy, else an allocation.
  Fault take(bool of_copy, int64_t* for_ms) {
    std::lock_guard lock(mutex);
    if (fault == Fault::kNone || (fault != Fault::kMemory) != of_copy || after-- > 0) return Fault::kNone;
    *for_ms = milliseconds;
    return std::exchange(fault, Fault::kNone);
  }
};
Planted& planted() {
  static Planted* p = new Planted;
  return *p;
}

// ---- the copy engine ----------------------------------------------------------------------------------------------------------------

struct Counters {
  std::mutex mutex;
  DeviceStats stats;
};
Counters& counters() {
  static Counters* c = new Counters;
  return *c;
}

struct Event {
  enum State : uint8_t { kPending, kDone, kFailed };
  std::mutex mutex;
  std::condition_variable changed;
  State state = kPending;

  void set(State to) {
    {
      std::lock_guard lock(mutex);
      state = to;
    }
    changed.notify_all();
  }
  State wait(int64_t ms) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::milliseconds(ms), [this] { return state != kPending; });
    return state;
  }
};

// Never destroyed: a copy that stalls does not hold up the end of the process.
Stream*& engine() {
  static Stream* stream = [] {
    in_child_after_fork([] { engine() = new Stream; });
    return new Stream;
  }();
  return stream;
}

// One copy, and what it keeps alive until it is done: a caller that has given up may let go of both ends.
struct Copy {
  std::shared_ptr<Storage> to, from;
  size_t bytes = 0;
  Event event;
};
using CopyPtr = std::shared_ptr<Copy>;

CopyPtr start_copy(const Profile& profile, std::shared_ptr<Storage> to, std::shared_ptr<Storage> from, size_t bytes, bool in) {
  auto copy = std::make_shared<Copy>();
  copy->to = std::move(to);
  copy->from = std::move(from);
  copy->bytes = bytes;
  {
    std::lock_guard lock(counters().mutex);
    DeviceStats& s = counters().stats;
    ++(in ? s.copies_in : s.copies_out);
    (in ? s.bytes_in : s.bytes_out) += static_cast<int64_t>(bytes);
    s.copy_us += profile.copy_us + static_cast<double>(bytes) / profile.copy_bytes_per_us;
  }
  engine()->submit([copy] {
    int64_t ms = 0;
    const Fault fault = planted().take(true, &ms);
    if (fault != Fault::kNone) {
      std::lock_guard lock(counters().mutex);
      ++counters().stats.faults;
    }
    if (fault == Fault::kFail) return copy->event.set(Event::kFailed);
    if (fault == Fault::kStall) std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    std::memcpy(copy->to->data, copy->from->data, copy->bytes);
    if (fault != Fault::kLose) copy->event.set(Event::kDone);
  });
  return copy;
}

void finish_copy(const Profile& profile, const CopyPtr& copy, bool in) {
  const int64_t limit = timeout_ms.load();
  const std::string what = "a copy of " + std::to_string(copy->bytes) + " bytes " + (in ? "to " : "from ") + profile.name;
  switch (copy->event.wait(limit)) {
    case Event::kDone: return;
    case Event::kFailed: throw UserError(what + " failed; the call can be made again");
    case Event::kPending: throw UserError(what + " was not done after " + std::to_string(limit) + " ms; the call can be made again");
  }
}

std::shared_ptr<Storage> device_room(const Profile& profile, size_t bytes) {
  int64_t ms = 0;
  if (planted().take(false, &ms) == Fault::kMemory) throw UserError(std::string(profile.name) + " has no room for " + std::to_string(bytes) + " bytes more");
  return allocate_unlogged(bytes);
}

// The bytes a value's elements lie in: from `low` to `high`, relative to its data.
struct Region {
  int64_t low = 0, high = 0;
  size_t bytes() const { return static_cast<size_t>(high - low); }
};
Region region_of(const Value& v) {
  const int item = item_size(v.dtype);
  if (v.shape.size() == 0) return {};
  Region r{0, item};
  for (int a = 0; a < v.shape.rank; ++a) {
    const int64_t reach = (v.shape[a] - 1) * v.strides[a] * item;
    (reach < 0 ? r.low : r.high) += reach;
  }
  return r;
}

template <class F>
void each_value(const Segment& segment, bool written, F&& fn) {
  for (const AreaCode& area : segment.areas)
    for (const GlobalSlot& slot : area.slots)
      if (slot.kind == GlobalSlot::kValue && slot.written == written) fn(static_cast<size_t>(slot.value));
}

}  // namespace

void DeviceValues::prepare(const Segment& segment, const std::vector<Value>& host) {
  // What a segment writes is made there; the rest of what it reads is brought.
  each_value(segment, true, [&](size_t v) {
    if (values_[v].data) return;
    Value& d = values_[v] = host[v];
    d.owner = device_room(profile_, static_cast<size_t>(d.shape.size() * item_size(d.dtype)));
    d.data = d.owner->data;
  });
  std::vector<CopyPtr> copies;
  each_value(segment, false, [&](size_t v) {
    if (values_[v].data || !host[v].data) return;
    const Region region = region_of(host[v]);
    Value d = host[v];
    d.owner = device_room(profile_, region.bytes());
    d.data = static_cast<char*>(d.owner->data) - region.low;
    // The program's memory may go away while a copy is under way: the engine reads a buffer of its own.
    auto staged = allocate_unlogged(region.bytes());
    std::memcpy(staged->data, static_cast<const char*>(host[v].data) + region.low, region.bytes());
    copies.push_back(start_copy(profile_, d.owner, std::move(staged), region.bytes(), true));
    values_[v] = std::move(d);
  });
  for (const CopyPtr& copy : copies) finish_copy(profile_, copy, true);
}

void DeviceValues::fetch(const Segment& segment, std::vector<Value>* host) {
  std::vector<std::pair<size_t, CopyPtr>> copies;
  each_value(segment, true, [&](size_t v) {
    const size_t bytes = static_cast<size_t>(values_[v].shape.size() * item_size(values_[v].dtype));
    if (!(*host)[v].data || bytes == 0) return;
    for (const auto& [seen, copy] : copies)
      if (seen == v) return;
    copies.emplace_back(v, start_copy(profile_, allocate_unlogged(bytes), values_[v].owner, bytes, false));
  });
  for (const auto& [v, copy] : copies) finish_copy(profile_, copy, false);
  for (const auto& [v, copy] : copies) std::memcpy((*host)[v].data, copy->to->data, copy->bytes);
}

DeviceStats device_stats() {
  std::lock_guard lock(counters().mutex);
  return counters().stats;
}

void set_copy_timeout(int64_t milliseconds) {
  if (milliseconds < 1 || milliseconds > 600'000) throw UserError("set_copy_timeout: " + std::to_string(milliseconds) + " ms is not within 1..600000");
  timeout_ms.store(milliseconds);
}

void plant_fault(const std::string& kind, int64_t after, int64_t milliseconds) {
  for (int f = 1; f < 5; ++f)
    if (kind == kFaultNames[f]) {
      std::lock_guard lock(planted().mutex);
      planted().fault = static_cast<Fault>(f);
      planted().after = after;
      planted().milliseconds = milliseconds;
      return;
    }
  throw UserError("there is no fault \"" + kind + "\"; there are fail, stall, lose and memory");
}

}  // namespace dvm

// The memory log: a bounded list of buffers with their birth, death and origin.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "fork.h"
#include "memory.h"

namespace dvm {
namespace {

constexpr size_t kKept = 65536;

struct Log {
  std::mutex mutex;
  std::deque<BufferEvent> events;
  int64_t first = 0;  // id of events.front()
  std::unordered_map<uintptr_t, uint32_t> handed_out;  // per address, how often
  struct External {
    int64_t id, bytes, users;
    bool replaced = false;                             // nobody will see it again but those who use it now
  };
  std::unordered_map<uintptr_t, External> externals;   // the framework's buffers that are live, by address
  std::unordered_map<uintptr_t, std::string> expected; // classes of results that are not there yet, by address

  int64_t add(BufferEvent e) {
    e.id = first + static_cast<int64_t>(events.size());
    const uint32_t times = handed_out[e.address]++;
    e.reuse = times;
    const int64_t id = e.id;
    events.push_back(std::move(e));
    if (events.size() > kKept) {
      forget(events.front());
      events.pop_front();
      ++first;
    }
    return id;
  }

  // What is known about an address goes with its last event, so that both tables stay as small as the log.
  void forget(const BufferEvent& e) {
    const auto times = handed_out.find(e.address);
    if (times != handed_out.end() && times->second == e.reuse + 1) handed_out.erase(times);
    const auto external = externals.find(e.address);
    if (external != externals.end() && external->second.id == e.id) externals.erase(external);
  }

  BufferEvent* find(int64_t id) {
    const int64_t index = id - first;
    return index < 0 || index >= static_cast<int64_t>(events.size()) ? nullptr : &events[static_cast<size_t>(index)];
  }

  void free(int64_t id) { end(id, instructions_run(), now_ns()); }

  void end(int64_t id, int64_t freed, int64_t freed_ns) {
    BufferEvent* e = find(id);
    if (!e || e->freed >= 0) return;
    e->freed = freed;
    e->freed_ns = freed_ns;
  }

  // Whose bytes another buffer takes over ends with that one's birth: the bytes are there once.
  void take_over(int64_t id, int64_t born, int64_t born_ns) {
    BufferEvent* e = find(id);
    if (!e) return;
    e->freed = std::max(e->born, std::min(e->freed, born));
    e->freed_ns = std::max(e->born_ns, std::min(e->freed_ns, born_ns));
  }
};

Log& log() {
  static Log* l = [] {
    auto* made = new Log;
    guard_at_fork(ForkRank::log, made->mutex);
    return made;
  }();
  return *l;
}
[[maybe_unused]] const Log& at_load = log();  // made before any thread: none may be at it when another forks

std::atomic<bool> enabled{false};
std::atomic<int64_t> instructions{0}, step_now{0};

// Seen again in every call, whoever holds it between two.
bool outlives_a_call(const std::string& cls) { return cls == "parameter" || cls == "optimizer"; }

BufferEvent make_event(const void* address, int64_t bytes, const BufferTag& tag) {
  BufferEvent e;
  e.bytes = bytes;
  e.tag = tag;
  e.address = reinterpret_cast<uintptr_t>(address);
  e.step = current_step();
  return e;
}

}  // namespace

int64_t now_ns() { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Switching on starts a new log; ids go on counting so that a reader's `since` stays valid.
void memory_log(bool enable) {
  Log& l = log();
  std::lock_guard lock(l.mutex);
  if (enable && !enabled.load()) {
    l.first += static_cast<int64_t>(l.events.size());
    l.events.clear();
    l.handed_out.clear();
    l.externals.clear();
    l.expected.clear();
  }
  enabled.store(enable);
}

bool memory_log_on() { return enabled.load(std::memory_order_relaxed); }

int64_t log_buffer(const void* address, int64_t bytes, const BufferTag& tag) {
  if (!memory_log_on()) return -1;
  BufferEvent e = make_event(address, bytes, tag);
  e.born = tag.born >= 0 ? tag.born : instructions_run();
  e.born_ns = now_ns();
  std::lock_guard lock(log().mutex);
  return log().add(std::move(e));
}

int64_t log_span(const void* address, int64_t bytes, const BufferTag& tag, int64_t born, int64_t freed, int64_t born_ns, int64_t freed_ns) {
  if (!memory_log_on()) return -1;
  BufferEvent e = make_event(address, bytes, tag);
  e.born = born;
  e.freed = freed;
  e.born_ns = born_ns;
  e.freed_ns = freed_ns;
  std::lock_guard lock(log().mutex);
  if (tag.in_place_of >= 0) log().take_over(tag.in_place_of, born, born_ns);
  return log().add(std::move(e));
}

void log_freed(int64_t id) {
  if (id < 0) return;
  Log& l = log();
  std::lock_guard lock(l.mutex);
  if (const BufferEvent* e = l.find(id)) {
    const auto external = l.externals.find(e->address);
    if (external != l.externals.end() && external->second.id == id) {
      if (--external->second.users > 0 || (outlives_a_call(e->tag.cls) && !external->second.replaced)) return;
      l.externals.erase(external);
    }
  }
  l.free(id);
}

void log_class(const void* address, const std::string& cls) {
  Log& l = log();
  std::lock_guard lock(l.mutex);
  const auto known = l.externals.find(reinterpret_cast<uintptr_t>(address));
  if (BufferEvent* e = known == l.externals.end() ? nullptr : l.find(known->second.id)) e->tag.cls = cls;
}

void log_replaced(const void* address, const void* by, const std::string& cls) {
  if (!memory_log_on()) return;
  Log& l = log();
  std::lock_guard lock(l.mutex);
  if (l.expected.size() >= kKept) l.expected.clear();  // of results that were never made
  l.expected[reinterpret_cast<uintptr_t>(by)] = cls;
  const auto old = l.externals.find(reinterpret_cast<uintptr_t>(address));
  if (old == l.externals.end()) return;
  old->second.replaced = true;
  if (old->second.users > 0) return;
  l.free(old->second.id);
  l.externals.erase(old);
}

void log_name(int64_t id, const std::string& name) {
  if (id < 0) return;
  Log& l = log();
  std::lock_guard lock(l.mutex);
  if (BufferEvent* e = l.find(id)) e->tag.name = name;
}

int64_t log_external(const void* address, int64_t bytes, const BufferTag& tag) {
  if (!memory_log_on()) return -1;
  Log& l = log();
  std::lock_guard lock(l.mutex);
  const auto known = l.externals.find(reinterpret_cast<uintptr_t>(address));
  if (known != l.externals.end()) {
    BufferEvent* e = l.find(known->second.id);
    if (e && known->second.bytes == bytes && e->tag.program == tag.program && e->tag.instruction == tag.instruction) {
      ++known->second.users;
      return known->second.id;
    }
    if (e && known->second.bytes == bytes && tag.program < 0) {
      // A result of an earlier launch comes back as an input: still the same buffer, with a better name for what it is.
      if (!tag.cls.empty() && tag.cls != "activation") e->tag.cls = tag.cls;
      ++known->second.users;
      return known->second.id;
    }
    l.free(known->second.id);
    l.externals.erase(known);
  }
  BufferEvent e = make_event(address, bytes, tag);
  e.born = tag.born >= 0 ? tag.born : instructions_run();
  e.born_ns = now_ns();
  if (const auto cls = l.expected.find(e.address); cls != l.expected.end()) {
    if (tag.program >= 0) e.tag.cls = cls->second;
    l.expected.erase(cls);
  }
  const int64_t id = l.add(std::move(e));
  l.externals[reinterpret_cast<uintptr_t>(address)] = {id, bytes, 1};
  return id;
}

std::vector<BufferEvent> memory_events(int64_t since) {
  Log& l = log();
  std::lock_guard lock(l.mutex);
  std::vector<BufferEvent> out;
  const int64_t from = std::max<int64_t>(0, since - l.first);
  for (int64_t i = from; i < static_cast<int64_t>(l.events.size()); ++i) out.push_back(l.events[static_cast<size_t>(i)]);
  return out;
}

void advance_instructions(int64_t n) { instructions.fetch_add(n, std::memory_order_relaxed); }
int64_t instructions_run() { return instructions.load(std::memory_order_relaxed); }
void set_step(int64_t step) { step_now.store(step, std::memory_order_relaxed); }
int64_t current_step() { return step_now.load(std::memory_order_relaxed); }

}  // namespace dvm

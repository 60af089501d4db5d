#include "snapshot.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "copies.h"
#include "device_memory.h"
#include "fork.h"
#include "memory.h"
#include "stream.h"

namespace dvm {
namespace {

std::atomic<int64_t> timeout_ms{100}, drop_ms{10'000};
struct Counters {
  std::atomic<int64_t> taken{0}, published{0}, placeholders{0}, late{0}, dropped{0}, held_bytes{0};
};
Counters counters;

// A copy that did not come in time, and until when it is waited for.
struct Late {
  CopyPtr copy;
  int64_t bytes, deadline;
};

// The thread that waits for copies and publishes them, and what only it touches.
struct Publisher {
  Stream stream;
  std::vector<Late> late;
};

// Never destroyed: process exit does not wait for snapshots.
Publisher*& publisher() {
  static Publisher* made = [] {
    // The child has no such thread: it starts a new stream when it needs one, the parent's is left alone.
    in_child_after_fork([] {
      publisher() = new Publisher;
      counters.held_bytes.store(0);
    });
    return new Publisher;
  }();
  return made;
}
[[maybe_unused]] Publisher* const& at_load = publisher();  // made before any thread: none may be at it when another forks

void publish_placeholder(HookEvent event, std::string reason) {
  event.data.reset();
  event.placeholder = std::move(reason);
  counters.placeholders.fetch_add(1);
  publish(std::move(event));
}

void publish_bytes(HookEvent event) {
  counters.published.fetch_add(1);
  publish(std::move(event));
}

void let_go(int64_t bytes) { counters.held_bytes.fetch_sub(bytes); }

// Copies that came after all, and those nobody waits for any longer.
void look_after_late(std::vector<Late>& late) {
  const int64_t now = now_ns();
  std::erase_if(late, [&](const Late& l) {
    const bool done = l.copy->event->state() != Event::kPending;
    if (!done && now < l.deadline) return false;
    (done ? counters.late : counters.dropped).fetch_add(1);
    let_go(l.bytes);
    return true;
  });
}

std::string no_memory(int64_t bytes) { return "no memory for " + std::to_string(bytes) + " bytes"; }

// From memory of the host.
bool copy_here(HookEvent& event, const Value& value, int64_t bytes) {
  try {
    event.data = allocate_unlogged(static_cast<size_t>(bytes));
    if (bytes && memory_log_on()) {
      BufferTag tag;
      tag.cls = "snapshot";
      tag.place = event.place;
      tag.program = event.program;
      tag.instruction = event.instruction;
      event.log_id = log_buffer(event.data->data, bytes, tag);
    }
    copy_contiguous(event.data->data, value);
    return true;
  } catch (const std::bad_alloc&) { return false; }
}

void publish_here(HookEvent event, const Value& value, int64_t bytes) {
  if (copy_here(event, value, bytes)) publish_bytes(std::move(event));
  else publish_placeholder(std::move(event), no_memory(bytes));
}

void snapshot_of_device(Value value, HookEvent event, int64_t bytes, const Profile& device) {
  const Region region = region_of(value);
  std::shared_ptr<Storage> host;
  try {
    host = allocate_unlogged(region.bytes());
  } catch (const std::bad_alloc&) {
    let_go(bytes);
    return publish_placeholder(std::move(event), no_memory(bytes));
  }
  // What computed the value is done: nothing orders the copy but the queue it is in.
  char* from = static_cast<char*>(value.data) + region.low;
  const CopyPtr copy = start_copy(device, CopyFor::kSnapshot, {host, host->data}, {value.owner, from}, region.bytes());
  value.owner = host;
  value.data = static_cast<char*>(host->data) - region.low;
  const int64_t now = now_ns(), timeout = timeout_ms.load(), deadline = now + timeout * 1'000'000, drop = now + drop_ms.load() * 1'000'000;
  Publisher& p = *publisher();
  p.stream.submit([&p, copy, value = std::move(value), event = std::move(event), bytes, timeout, deadline, drop]() mutable {
    look_after_late(p.late);
    switch (copy->event->wait_until(deadline)) {
      case Event::kDone: publish_here(std::move(event), value, bytes); break;
      case Event::kFailed: publish_placeholder(std::move(event), "the copy from the device failed"); break;
      case Event::kPending:
        p.late.push_back({copy, bytes, drop});
        return publish_placeholder(std::move(event), "the copy was not done within " + std::to_string(timeout) + " ms");
    }
    let_go(bytes);
  });
}

}  // namespace

void snapshot(Value value, HookEvent event, int64_t limit, const Profile& device) {
  const int64_t bytes = value.shape.size() * item_size(value.dtype);
  counters.taken.fetch_add(1);
  if (bytes > limit) return publish_placeholder(std::move(event), std::to_string(bytes) + " bytes are more than the limit of " + std::to_string(limit));
  // The caller's memory may be written again as soon as the launch returns: it is copied here, and limit bounds the time.
  if (!value.owner) return publish_here(std::move(event), value, bytes);
  if (counters.held_bytes.fetch_add(bytes) + bytes > kSnapshotQueueBytes) {
    let_go(bytes);
    return publish_placeholder(std::move(event), "more than 64 MiB wait to be copied");
  }
  if (device.simulated) return snapshot_of_device(std::move(value), std::move(event), bytes, device);
  const int64_t timeout = timeout_ms.load(std::memory_order_relaxed), deadline = now_ns() + timeout * 1'000'000;
  Publisher& p = *publisher();
  p.stream.submit([&p, value = std::move(value), event = std::move(event), bytes, timeout, deadline]() mutable {
    look_after_late(p.late);
    if (now_ns() > deadline) publish_placeholder(std::move(event), "the copy did not start within " + std::to_string(timeout) + " ms");
    else publish_here(std::move(event), value, bytes);
    value.owner.reset();
    let_go(bytes);
  });
}

void set_snapshot_timeout(int64_t timeout, int64_t drop_after) {
  if (timeout < 1 || timeout > 60'000) throw UserError("set_capture_timeout: " + std::to_string(timeout) + " ms is not within 1..60000");
  if (drop_after == 0) drop_after = std::min<int64_t>(timeout * 100, 600'000);
  if (drop_after < timeout || drop_after > 600'000)
    throw UserError("set_capture_timeout: drop_after " + std::to_string(drop_after) + " ms is not within " + std::to_string(timeout) + "..600000");
  timeout_ms.store(timeout, std::memory_order_relaxed);
  drop_ms.store(drop_after, std::memory_order_relaxed);
}

void delay_snapshots(int milliseconds) {
  publisher()->stream.submit([milliseconds] { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); });
}

void synchronize_snapshots() {
  Publisher& p = *publisher();
  p.stream.submit([&p] { look_after_late(p.late); });
  p.stream.synchronize();
}

SnapshotStats snapshot_stats() {
  return {counters.taken.load(), counters.published.load(), counters.placeholders.load(),
          counters.late.load(),  counters.dropped.load(),   counters.held_bytes.load()};
}

}  // namespace dvm

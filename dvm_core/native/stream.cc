#include "stream.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "fork.h"
#include "memory.h"
#include "optable.h"

namespace dvm {

struct Stream::State {
  std::mutex mutex;
  std::condition_variable work, done;
  std::deque<std::function<void()>> tasks;
  uint64_t submitted = 0, finished = 0;
  bool quit = false;
  std::thread thread;

  void loop() {
    std::unique_lock lock(mutex);
    for (;;) {
      work.wait(lock, [this] { return quit || !tasks.empty(); });
      if (tasks.empty()) return;
      auto task = std::move(tasks.front());
      tasks.pop_front();
      lock.unlock();
      task();
      task = nullptr;  // what it holds (storage) is let go before it counts as finished
      lock.lock();
      ++finished;
      done.notify_all();
    }
  }
};

std::shared_ptr<Stream::State> Stream::state() {
  std::lock_guard lock(start_);
  if (!state_) {
    state_ = std::make_shared<State>();
    state_->thread = std::thread([s = state_.get()] { s->loop(); });
  }
  return state_;
}

Stream::~Stream() {
  if (!state_) return;
  {
    std::lock_guard lock(state_->mutex);
    state_->quit = true;
  }
  state_->work.notify_all();
  state_->thread.join();
}

void Stream::submit(std::function<void()> task) {
  const auto s = state();
  std::lock_guard lock(s->mutex);
  s->tasks.push_back(std::move(task));
  s->work.notify_one();
  ++s->submitted;
}

void Stream::synchronize() {
  const auto s = state();
  std::unique_lock lock(s->mutex);
  s->done.wait(lock, [&, until = s->submitted] { return s->finished >= until; });
}

namespace {

std::atomic<int64_t> queued_bytes{0}, timeout_ms{100};

// Never destroyed: process exit does not wait for snapshots.
Stream*& copy_stream() {
  static Stream* stream = [] {
    // The child has no copy thread: it starts a new stream when it needs one, the parent's is left alone.
    in_child_after_fork([] {
      copy_stream() = new Stream;
      queued_bytes.store(0);
    });
    return new Stream;
  }();
  return stream;
}

int64_t bytes_of(const Value& v) { return v.shape.size() * item_size(v.dtype); }

void publish_placeholder(HookEvent event, std::string reason) {
  event.placeholder = std::move(reason);
  publish(std::move(event));
}

// The innermost axis is one run if its stride is 1; everything else is walked.
void copy_axis(char*& to, const char* from, const Value& v, int axis, int item) {
  if (axis == v.shape.rank) {
    std::memcpy(to, from, static_cast<size_t>(item));
    to += item;
    return;
  }
  const int64_t n = v.shape[axis], step = v.strides[axis] * item;
  if (axis == v.shape.rank - 1) {
    if (step == item) {
      std::memcpy(to, from, static_cast<size_t>(n * item));
    } else {
      kernels().copy_in(to, from, 1, n, 0, step, item);
    }
    to += n * item;
    return;
  }
  for (int64_t i = 0; i < n; ++i) copy_axis(to, from + i * step, v, axis + 1, item);
}

}  // namespace

void copy_contiguous(void* to, const Value& from) {
  if (from.shape.size() == 0) return;
  const int item = item_size(from.dtype);
  if (is_contiguous(from.shape, from.strides)) {
    std::memcpy(to, from.data, static_cast<size_t>(from.shape.size() * item));
    return;
  }
  char* out = static_cast<char*>(to);
  copy_axis(out, static_cast<const char*>(from.data), from, 0, item);
}

void snapshot(Value value, HookEvent event, int64_t limit) {
  const int64_t bytes = bytes_of(value);
  if (bytes > limit) return publish_placeholder(std::move(event), std::to_string(bytes) + " bytes are more than the limit of " + std::to_string(limit));
  const auto copy = [](HookEvent& e, const Value& v, int64_t n) {
    try {
      e.data.resize(static_cast<size_t>(n));
      copy_contiguous(e.data.data(), v);
    } catch (const std::bad_alloc&) { e.placeholder = "no memory for " + std::to_string(n) + " bytes"; }
  };
  if (!value.owner) {
    // The caller's memory may be written again as soon as the launch returns: it is copied here, and limit bounds the time.
    copy(event, value, bytes);
    return publish(std::move(event));
  }
  if (queued_bytes.fetch_add(bytes) + bytes > kSnapshotQueueBytes) {
    queued_bytes.fetch_sub(bytes);
    return publish_placeholder(std::move(event), "more than 64 MiB wait to be copied");
  }
  const int64_t timeout = timeout_ms.load(std::memory_order_relaxed), deadline = now_ns() + timeout * 1'000'000;
  copy_stream()->submit([value = std::move(value), event = std::move(event), bytes, timeout, deadline, copy]() mutable {
    if (now_ns() > deadline) {
      publish_placeholder(std::move(event), "the copy did not start within " + std::to_string(timeout) + " ms");
    } else {
      copy(event, value, bytes);
      value.owner.reset();
      publish(std::move(event));
    }
    queued_bytes.fetch_sub(bytes);
  });
}

void set_snapshot_timeout(int64_t milliseconds) {
  if (milliseconds < 1 || milliseconds > 60'000) throw UserError("set_capture_timeout: " + std::to_string(milliseconds) + " ms is not within 1..60000");
  timeout_ms.store(milliseconds, std::memory_order_relaxed);
}

void delay_snapshots(int milliseconds) {
  copy_stream()->submit([milliseconds] { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); });
}

void synchronize_snapshots() { copy_stream()->synchronize(); }

}  // namespace dvm

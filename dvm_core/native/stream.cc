#include "stream.h"

#include <cstring>
#include <thread>
#include <utility>

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

}  // namespace dvm

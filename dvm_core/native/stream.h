// A stream: one thread that runs what it is given, in order.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "program.h"

namespace dvm {

class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();  // finishes what was submitted

  // Tasks run in order on the stream's thread, which starts with the first; they must not throw.
  void submit(std::function<void()> task);
  // Waits until what has been submitted is done.
  void synchronize();

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::mutex start_;
  std::shared_ptr<State> state();
};

// Elements of any strides to contiguous memory. Regions must not overlap.
void copy_contiguous(void* to, const Value& from);

}  // namespace dvm

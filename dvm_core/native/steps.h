// Captured calls under way. Switching devices waits until there is none, and holds back those that would begin meanwhile.
#pragma once
#include <cstdint>

namespace dvm {

// A captured call of this thread begins. False: a switch is going on; wait_for_switch(), without the GIL, and try again.
bool try_begin_step();
void end_step() noexcept;
void wait_for_switch();

// While it lives, no captured call begins. One at a time: another thread's is waited for.
class BetweenSteps {
 public:
  // Waits at most that long for the captured calls of other threads to end.
  explicit BetweenSteps(int64_t milliseconds);
  ~BetweenSteps();
  BetweenSteps(const BetweenSteps&) = delete;
  explicit operator bool() const { return reached_; }

 private:
  bool reached_;
};

}  // namespace dvm

// Captured calls under way, told and asked with the GIL. Switching devices waits until there is none, and holds back those that would begin
// meanwhile.
#pragma once
#include <cstdint>

namespace dvm {

// A captured call of this thread, or the replay of one, begins: after the switch that goes on, if one does (without the GIL until then).
void begin_step();
void end_step();
// The thread ends in the middle of one, and may not have the GIL.
void abandon_step();

// While it lives, no captured call begins. One at a time: another thread's is waited for.
class BetweenSteps {
 public:
  // Waits at most that long, without the GIL, for the captured calls of other threads to end.
  explicit BetweenSteps(int64_t milliseconds);
  ~BetweenSteps();
  BetweenSteps(const BetweenSteps&) = delete;
  explicit operator bool() const { return reached_; }

 private:
  bool reached_;
};

}  // namespace dvm

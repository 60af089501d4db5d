#include "calls.h"

#include <array>

#include "memory.h"

namespace dvm {

namespace {

struct Step {
  int64_t number = 0, call = 0;
  const Calls* calls = nullptr;
};

std::array<Step, kStepsKnown> steps;

std::map<std::string, int64_t>& counts() {
  static auto* all = new std::map<std::string, int64_t>;  // threads may outlive statics
  return *all;
}

Step& remembered(int64_t step) { return steps[static_cast<uint64_t>(step) % kStepsKnown]; }

}  // namespace

Calls& calls_of(const std::string& name) { return *counts().try_emplace(name, 0).first; }

const std::map<std::string, int64_t>& all_calls() { return counts(); }

int64_t begin_call(Calls& calls) {
  const int64_t step = current_step() + 1;
  set_step(step);
  remembered(step) = {step, ++calls.second, &calls};
  return step;
}

std::pair<std::string, int64_t> call_of_step(int64_t step) {
  const Step& found = remembered(step);
  if (found.number != step || !found.calls) return {"", 0};
  return {found.calls->first, found.call};
}

}  // namespace dvm

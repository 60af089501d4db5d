// Outermost captured calls, counted by captured function. With the GIL.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace dvm {

using Calls = std::pair<const std::string, int64_t>;  // of the captured function of that name

// It stays for as long as the process lives.
Calls& calls_of(const std::string& name);
const std::map<std::string, int64_t>& all_calls();
// Begins the next step (memory.h), which is a call of that function. Gives its number.
int64_t begin_call(Calls& calls);
// The function that a step was a call of, and which; ("", 0) if it was none, or is more than kStepsKnown ago.
constexpr int64_t kStepsKnown = 4096;
std::pair<std::string, int64_t> call_of_step(int64_t step);

}  // namespace dvm

// Outermost captured calls, counted by captured function. With the GIL.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace dvm {

// Of the captured function of that name, for as long as the process lives.
int64_t& calls_of(const std::string& name);
const std::map<std::string, int64_t>& all_calls();
// Begins the next step (memory.h), which is a call of the function with that count. Gives its number.
int64_t begin_call(int64_t& count);
// Which call of its function a step was; 0 if it was none, or is long ago.
int64_t call_of_step(int64_t step);

}  // namespace dvm

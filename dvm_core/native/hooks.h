// Hooks on instructions of programs, and the queue their results wait in.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "memory.h"
#include "program.h"

namespace dvm {

// The calls whose launches are taken, for a hook on several values that belong together, perhaps of several programs: each n-th of those
// calls in which it is met.
class Joint {
 public:
  bool due(int64_t step, int64_t every) {
    if (step_.exchange(step, std::memory_order_relaxed) != step) calls_.fetch_add(1, std::memory_order_relaxed);
    return calls_.load(std::memory_order_relaxed) % every == 0;
  }

 private:
  std::atomic<int64_t> step_{-1}, calls_{-1};
};
struct Hook {
  int instruction = 0, kind = 0;  // instruction -1 - i: the program's input i, as the launch finds it
  int64_t id = 0;                // the caller's
  int64_t every = 1, limit = 0;  // limit: bytes for a capture, bits for a check
  int64_t first = 0;             // launches of the program before the hook was set
  std::shared_ptr<Joint> joint;    // null: its own launches count
  bool of_input() const { return instruction < 0; }
  // `launch` counts the program's launches from 0.
  bool due(int64_t launch, int64_t step) const { return launch >= first && (joint ? joint->due(step, every) : (launch - first) % every == 0); }
};

// Hooks that one launch passes over: ids, and instructions as of the hooks.
using PassedOver = std::vector<std::pair<int64_t, int>>;

struct HookEvent {
  std::string kind;              // "stats" or "capture"
  int64_t hook = 0, program = 0, instruction = 0, launch = 0, step = 0;  // instruction: as of the hook
  int64_t beside = 1;            // values the launch takes for this id, this one among them
  uint32_t place = 0;            // of the instruction, 0 for an input
  Dims shape;
  DType dtype = DType::kNone;
  Stats stats;
  std::shared_ptr<Storage> data;  // of a capture: null where it has none, as of a placeholder
  size_t bytes() const { return data ? data->bytes : 0; }
  int64_t log_id = -1;           // of the data, in the memory log
  std::string placeholder;       // why there is no data
  int64_t time_ns = 0;
};

// Bounded in number and bytes: the oldest are dropped and counted.
void publish(HookEvent event);
// Takes up to `limit` events, oldest first; `dropped`: events lost since the last call.
std::vector<HookEvent> take_events(int64_t limit, int64_t* dropped);
// Readable while events wait.
int events_fd();

// HOOK_CHECK on every float instruction of every program: bit 0 NaN, bit 1 infinity.
void set_check_mask(int mask);
int check_mask();
// Statistics of every float result of every n-th launch of every program; the stop handler gets the launch, complete, as "measured". 0: off.
void set_measure(int64_t every);
int64_t measure_every();

}  // namespace dvm

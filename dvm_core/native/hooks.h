// Hooks on instructions of programs, and the queue their results wait in.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "program.h"

namespace dvm {

struct Hook {
  int instruction = 0, kind = 0;
  int64_t id = 0;                // the caller's
  int64_t every = 1, limit = 0;  // limit: bytes for a capture, bits for a check
  int64_t first = 0;             // launches of the program before the hook was set
  // `launch` counts the program's launches from 0.
  bool due(int64_t launch) const { return launch >= first && (launch - first) % every == 0; }
};

struct HookEvent {
  std::string kind;              // "stats" or "capture"
  int64_t hook = 0, program = 0, instruction = 0, launch = 0, step = 0;
  uint32_t place = 0;            // of the instruction
  Dims shape;
  DType dtype = DType::kNone;
  Stats stats;
  std::vector<uint8_t> data;
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

// Runs compiled areas: for every tile on every core, the dispatch loop over its words.
#pragma once
#include "core.h"
#include "sample.h"

namespace dvm {

// One area on the calling thread and the pool; `sample`: null, or to be filled in. Throws UserError (an index out of range).
void run_area(const AreaCode& area, RunIO& io, Sample* sample);

// So little work that it stays on the calling thread.
bool is_short(const AreaCode& area);

// Areas of which none reads what another writes, as one piece of work for the pool; `ns`: what the tiles of each took, added up over the
// cores. False, and nothing is done, if there is too little work to share.
bool run_stack(const AreaCode* areas, int count, RunIO& io, int64_t* ns);

// Units [from, to) of an area on the calling thread.
void run_units(const Run& run, int64_t from, int64_t to, Sample* sample);

// One instruction.
void step(Core& c, const uint64_t* word);

// The same units on one core of a simulated NPU, its prologue done. Throws UserError if its pipes wait for each other.
void run_pipes(const Core& core, int64_t from, int64_t to);

// The instruction of a move area. `base`: addresses by slot.
void run_move(const AreaCode& area, const ProgramCode& code, void* const* base);

// A pool or the gradient of one; its operands (b null: there is no second) are contiguous, last_shape is the last one's.
void run_pool(const Instr& in, const void* a, const void* b, const Dims& last_shape, void* dst);

}  // namespace dvm

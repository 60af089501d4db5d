// The worker pool: the calling thread is worker 0, helpers join if they happen to be awake. Nobody waits for a helper that has not joined.
#pragma once
#include <cstdint>
#include <type_traits>

namespace dvm {

// Work of many units is divided into as many pieces, each taken at once by a worker.
inline constexpr int64_t kPieces = 24;

// Workers of a parallel_for, the caller included. Worker numbers are below this.
int pool_threads();
// 0: one per processor this process may use. Takes effect at the next parallel_for; clamped to 1..64.
void set_pool_threads(int n);

using UnitFn = void (*)(void* context, int64_t unit, int worker);
// Runs fn for units 0..units-1, each once, in any order, on any worker; returns when all are done. `cost_ns`: what all units would take
// on one thread, to decide whether waking a parked helper pays (0: unknown, wakes; in floating point, for sizes are hostile). The first exception a unit throws
// is rethrown here after the others have finished. A nested call, and a call while another thread uses the pool, runs on the calling thread alone: worker
// numbers are unique within one call, not over concurrent calls, so scratch memory belongs to the thread (thread_scratch).
void parallel_for(int64_t units, UnitFn fn, void* context, double cost_ns = 0);

template <class F>
void parallel_for(int64_t units, F&& fn, double cost_ns = 0) {
  using Fn = std::remove_reference_t<F>;
  parallel_for(
      units, [](void* context, int64_t unit, int worker) { (*static_cast<Fn*>(context))(unit, worker); }, const_cast<void*>(static_cast<const void*>(&fn)),
      cost_ns);
}

// How long the calling thread has waited for helpers to finish their last units, since it began.
int64_t pool_waited_ns();

// Memory of the calling thread, 128-byte aligned, at least `bytes`; the same block (contents undefined) at every call until it must grow.
void* thread_scratch(int64_t bytes);

}  // namespace dvm

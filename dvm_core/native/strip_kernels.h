// What strips are to the kernels (kernels_strip.h): steps, loops, and a table of them per SIMD level.
#pragma once
#include <cstdint>

#include "types.h"

namespace dvm {

// Where a step has an operand: it is the result of the step before, elements in memory, or one value (for all elements, or for the row).
enum class Lane : uint8_t { kLast, kMemory, kOne };
inline constexpr int kLanePlaces = 3;
inline constexpr int kLongestStrip = 48, kMostStreams = 16, kMostSides = 4;
inline constexpr int64_t kStripMost = 128;  // elements of a block, at most
struct StripKind {
  Op op;
  DType dtype;  // of its operands: float32; in loops over rows also bfloat16
  Lane left, right;
  bool store;
};
// moves: all bits where memory is element by element, 0 for a block at the side that holds the block's elements only; of one value: bytes to
// the next row's. A reduction's `out` has an element per row.
struct StripStep {
  void (*run)();
  const void *x, *y;
  void* out;
  int64_t x_moves, y_moves, out_moves;
};
// Memory that steps read or write element by element; in: it is read before it is written. For each step, which of them it has (-1: none).
struct StripStream {
  float* data;
  bool in, out;
};
struct StripUses {
  int8_t x, y, out;
};
struct StripArgs;
struct StripLoop {
  const StripKind* kinds;
  int count;
  void (*run)(const StripArgs&);
};
struct StripArgs {
  StripStep* steps;  // `count` of them, and room for one more
  const StripUses* uses;
  int count;
  const StripStream* streams;
  int stream_count;
  int64_t rows, cols;
};

// An optimizer's update as one loop over elements: its instructions, and for each operand an earlier step's number, kUpdateIn + number of a
// tensor in memory (in the order they come up), or one value for all elements, which is always the right operand: an instruction that has it on
// the left (of a sum or product) is the same with its operands exchanged. stored: the result is wanted outside.
inline constexpr int kLongestUpdate = 16;
inline constexpr int8_t kUpdateNone = -1, kUpdateIn = 32, kUpdateOne = 64;
constexpr bool is_update_in(int8_t ref) { return ref >= kUpdateIn && ref < kUpdateOne; }
struct UpdateStep {
  Op op;
  int8_t x, y;
  bool stored;
};
struct UpdateLoop {
  const UpdateStep* steps;
  int count;
  void (*run)(const StripArgs&);
};

struct StripKernels {
  void (*(*step)(const StripKind& kind))();    // of an elementwise op; null: there is none
  void (*strip)(const StripArgs& args);        // any steps, over elements in a row
  const StripLoop* loops;                      // sequences of steps that are one loop, over rows
  int loop_count;
  const UpdateLoop* updates;
  int update_count;
};

// Of the level in use.
const StripKernels& strip_kernels();

}  // namespace dvm

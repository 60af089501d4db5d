// Strips of steps: a value goes from one instruction to the next in vector registers. Each step is a function that ends by calling the next
// one's; the registers are its arguments, so nothing is saved in between. Values that are wanted later than by the next step wait in a block
// at the side. What follows the last whole block goes through blocks of its own, so that steps always see whole blocks.
#pragma once
#include "kernels_strip.h"

namespace dvm::DVM_LEVEL {

struct Same {
  static DVM_INLINE float of(float a) { return a; }
};
inline constexpr int kStripVectors = 8;  // as many as a call hands on in registers
inline constexpr int64_t kStripBlock = kStripVectors * kHalves;
static_assert(kStripBlock <= kStripMost);

#define DVM_STRIP_ARGUMENTS Floats a0, Floats a1, Floats a2, Floats a3, Floats a4, Floats a5, Floats a6, Floats a7, const StripStep *s, int64_t i
using StripFunction = void (*)(DVM_STRIP_ARGUMENTS);
struct StripBlock {
  Floats v[kStripVectors];
};

template <Lane L>
DVM_INLINE StripBlock strip_operand(const StripBlock& last, const void* from, int64_t i) {
  StripBlock b = last;
  if constexpr (L == Lane::kMemory) {
    DVM_UNROLL
    for (int k = 0; k < kStripVectors; ++k) b.v[k] = strip_load<float>(from, i + k * kHalves);
  }
  if constexpr (L == Lane::kOne) {
    const Floats one = strip_one<float>(from);
    DVM_UNROLL
    for (int k = 0; k < kStripVectors; ++k) b.v[k] = one;
  }
  return b;
}

template <bool Store>
DVM_INLINE void strip_next(StripBlock r, const StripStep* s, int64_t i) {
  void* out = s->out;
  const int64_t at = i & s->out_moves;
  DVM_UNROLL
  for (int k = 0; k < kStripVectors; ++k) {
    if constexpr (Store) strip_store<float>(out, at + k * kHalves, r.v[k]);
  }
  return reinterpret_cast<StripFunction>(s[1].run)(r.v[0], r.v[1], r.v[2], r.v[3], r.v[4], r.v[5], r.v[6], r.v[7], s + 1, i);
}

template <class F, Lane L, Lane R, bool Store>
void strip_binary(DVM_STRIP_ARGUMENTS) {
  const StripBlock last{{a0, a1, a2, a3, a4, a5, a6, a7}};
  const StripBlock x = strip_operand<L>(last, s->x, i & s->x_moves), y = strip_operand<R>(last, s->y, i & s->y_moves);
  StripBlock z;
  DVM_UNROLL
  for (int k = 0; k < kStripVectors; ++k) z.v[k] = strip_two < F, L == Lane::kOne > (x.v[k], y.v[k]);
  strip_next<Store>(z, s, i);
}

template <class F, Lane L, bool Store>
void strip_unary(DVM_STRIP_ARGUMENTS) {
  const StripBlock last{{a0, a1, a2, a3, a4, a5, a6, a7}};
  const StripBlock x = strip_operand<L>(last, s->x, i & s->x_moves);
  StripBlock result = x;
  strip_each<F, kStripVectors>(result.v);
  strip_next<Store>(result, s, i);
}

inline void strip_end(Floats, Floats, Floats, Floats, Floats, Floats, Floats, Floats, const StripStep*, int64_t) {}

inline void strip_run(const StripStep* steps, int64_t i) {
  const Floats z{};
  reinterpret_cast<StripFunction>(steps->run)(z, z, z, z, z, z, z, z, steps, i);
}

// rest elements, whole vectors `In` a block (0 after the last element) and those there are out of it.
template <bool In>
DVM_INLINE void strip_copy(void* to, const void* from, int64_t rest) {
  for (int64_t k = 0; k < rest; k += kHalves) {
    const int64_t n = smaller(int64_t(kHalves), rest - k);
    const Floats v = In ? strip_load_some<float>(from, k, n) : strip_load<float>(from, k);
    if (In) strip_store<float>(to, k, v);
    else strip_store_some<float>(to, k, v, n);
  }
}

// The elements after the last whole block, by way of blocks at the side.
inline void strip_rest(const StripArgs& args, int64_t i, int64_t rest) {
  alignas(kVectorBytes) float block[kMostStreams][kStripMost];
  StripStep steps[kLongestStrip + 1];
  for (int n = 0; n <= args.count; ++n) {
    steps[n] = args.steps[n];
    if (n == args.count) break;
    const StripUses& u = args.uses[n];
    if (u.x >= 0) steps[n].x = block[u.x], steps[n].x_moves = 0;
    if (u.y >= 0) steps[n].y = block[u.y], steps[n].y_moves = 0;
    if (u.out >= 0) steps[n].out = block[u.out], steps[n].out_moves = 0;
  }
  for (int n = 0; n < args.stream_count; ++n) {
    const StripStream& s = args.streams[n];
    if (s.in) strip_copy<true>(block[n], s.data + i, rest);
  }
  strip_run(steps, i);
  for (int n = 0; n < args.stream_count; ++n) {
    const StripStream& s = args.streams[n];
    if (s.out) strip_copy<false>(s.data + i, block[n], rest);
  }
}

inline void strip(const StripArgs& args) {
  StripStep* steps = args.steps;
  steps[args.count].run = reinterpret_cast<void (*)()>(strip_end);
  const int64_t n = args.rows * args.cols;
  int64_t i = 0;
  for (; i + kStripBlock <= n; i += kStripBlock) strip_run(steps, i);
  if (i < n) strip_rest(args, i, n - i);
}

// Which function a step is.
struct StripTable {
  StripFunction of[kLanePlaces][kLanePlaces][2] = {};  // left, right, whether it is stored

  template <class F, Lane L, Lane R>
  constexpr void binary() {
    of[int(L)][int(R)][0] = strip_binary<F, L, R, false>;
    of[int(L)][int(R)][1] = strip_binary<F, L, R, true>;
  }
  template <class F, Lane L>
  constexpr void unary() {
    of[int(L)][0][0] = strip_unary<F, L, false>;
    of[int(L)][0][1] = strip_unary<F, L, true>;
  }
};
template <class F>
constexpr StripTable strip_binaries() {
  StripTable t;
  t.binary<F, Lane::kLast, Lane::kLast>();
  t.binary<F, Lane::kLast, Lane::kMemory>();
  t.binary<F, Lane::kLast, Lane::kOne>();
  t.binary<F, Lane::kMemory, Lane::kLast>();
  t.binary<F, Lane::kMemory, Lane::kMemory>();
  t.binary<F, Lane::kMemory, Lane::kOne>();
  t.binary<F, Lane::kOne, Lane::kLast>();
  t.binary<F, Lane::kOne, Lane::kMemory>();
  return t;
}
template <class F>
constexpr StripTable strip_unaries() {
  StripTable t;
  t.unary<F, Lane::kLast>();
  t.unary<F, Lane::kMemory>();
  return t;
}

struct StripOp {
  Op op;
  StripTable table;
};
inline constexpr StripOp kStripOps[] = {
    {Op::kADD, strip_binaries<Add>()},
    {Op::kSUB, strip_binaries<Sub>()},
    {Op::kMUL, strip_binaries<Mul>()},
    {Op::kDIV, strip_binaries<Div>()},
    {Op::kMAXIMUM, strip_binaries<Maximum>()},
    {Op::kMINIMUM, strip_binaries<Minimum>()},
    {Op::kNEG, strip_unaries<Neg>()},
    {Op::kABS, strip_unaries<Abs>()},
    {Op::kEXP, strip_unaries<Exp>()},
    {Op::kLOG, strip_unaries<Log>()},
    {Op::kSQRT, strip_unaries<Sqrt>()},
    {Op::kRSQRT, strip_unaries<Rsqrt>()},
    {Op::kTANH, strip_unaries<Tanh>()},
    {Op::kERF, strip_unaries<Erf>()},
    {Op::kSIGMOID, strip_unaries<Sigmoid>()},
    {Op::kCOPY, strip_unaries<Same>()},
    {Op::kRECIPROCAL, strip_unaries<Reciprocal>()},
};

template <int N>
StripFunction find_strip_step(const StripOp (&ops)[N], const StripKind& k) {
  for (const StripOp& o : ops)
    if (o.op == k.op) return o.table.of[int(k.left)][int(k.right)][k.store];
  return nullptr;
}
inline void (*strip_step(const StripKind& k))() {
  const StripFunction f = k.dtype == DType::kF32 ? find_strip_step(kStripOps, k) : nullptr;
  return reinterpret_cast<void (*)()>(f);
}
}  // namespace dvm::DVM_LEVEL

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

template <class T, Lane L>
DVM_INLINE StripBlock strip_operand(const StripBlock& last, const void* from, int64_t i) {
  StripBlock b = last;
  if constexpr (L == Lane::kMemory) {
    DVM_UNROLL
    for (int k = 0; k < kStripVectors; ++k) b.v[k] = strip_load<T>(from, i + k * kHalves);
  }
  if constexpr (L == Lane::kOne) {
    const Floats one = strip_one<T>(from);
    DVM_UNROLL
    for (int k = 0; k < kStripVectors; ++k) b.v[k] = one;
  }
  return b;
}

template <class T, bool Store, bool Round = true>
DVM_INLINE void strip_next(StripBlock r, const StripStep* s, int64_t i) {
  void* out = s->out;
  const int64_t at = i & s->out_moves;
  DVM_UNROLL
  for (int k = 0; k < kStripVectors; ++k) {
    if constexpr (Round) r.v[k] = strip_rounded<T>(r.v[k]);
    if constexpr (Store) strip_store<T>(out, at + k * kHalves, r.v[k]);
  }
  return reinterpret_cast<StripFunction>(s[1].run)(r.v[0], r.v[1], r.v[2], r.v[3], r.v[4], r.v[5], r.v[6], r.v[7], s + 1, i);
}

template <class T, class F, Lane L, Lane R, bool Store>
void strip_binary(DVM_STRIP_ARGUMENTS) {
  const StripBlock last{{a0, a1, a2, a3, a4, a5, a6, a7}};
  const StripBlock x = strip_operand<T, L>(last, s->x, i & s->x_moves), y = strip_operand<T, R>(last, s->y, i & s->y_moves);
  StripBlock z;
  DVM_UNROLL
  for (int k = 0; k < kStripVectors; ++k) z.v[k] = strip_two < F, L == Lane::kOne > (x.v[k], y.v[k]);
  strip_next<T, Store>(z, s, i);
}

template <class T, class F, Lane L, bool Store>
void strip_unary(DVM_STRIP_ARGUMENTS) {
  const StripBlock last{{a0, a1, a2, a3, a4, a5, a6, a7}};
  const StripBlock x = strip_operand<T, L>(last, s->x, i & s->x_moves);
  if constexpr (__is_same(F, Same) && L == Lane::kMemory) return strip_next<T, Store, false>(x, s, i);  // what lies there is rounded
  StripBlock result = x;
  strip_each<F, kStripVectors>(result.v);
  strip_next<T, Store>(result, s, i);
}

inline void strip_end(Floats, Floats, Floats, Floats, Floats, Floats, Floats, Floats, const StripStep*, int64_t) {}

inline void strip_run(const StripStep* steps, int64_t i) {
  const Floats z{};
  reinterpret_cast<StripFunction>(steps->run)(z, z, z, z, z, z, z, z, steps, i);
}

// rest elements, whole vectors `In` a block (0 after the last element) and those there are out of it.
template <bool In>
DVM_INLINE void strip_copy(void* to, const void* from, int64_t rest, int item) {
  for (int64_t k = 0; k < rest; k += kHalves) {
    const int64_t n = smaller(int64_t(kHalves), rest - k);
    if (item == 4) {
      const Floats v = In ? strip_load_some<float>(from, k, n) : strip_load<float>(from, k);
      if (In) strip_store<float>(to, k, v);
      else strip_store_some<float>(to, k, v, n);
    } else {
      const auto* x = static_cast<const uint16_t*>(from) + k;
      store_some(static_cast<uint16_t*>(to) + k, load_some<Shorts>(x, In ? n : kHalves), In ? kHalves : n);
    }
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
    if (s.in) strip_copy<true>(block[n], static_cast<const char*>(s.data) + i * s.item, rest, s.item);
  }
  strip_run(steps, i);
  for (int n = 0; n < args.stream_count; ++n) {
    const StripStream& s = args.streams[n];
    if (s.out) strip_copy<false>(static_cast<char*>(s.data) + i * s.item, block[n], rest, s.item);
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

  template <class T, class F, Lane L, Lane R>
  constexpr void binary() {
    of[int(L)][int(R)][0] = strip_binary<T, F, L, R, false>;
    of[int(L)][int(R)][1] = strip_binary<T, F, L, R, true>;
  }
  template <class T, class F, Lane L>
  constexpr void unary() {
    of[int(L)][0][0] = strip_unary<T, F, L, false>;
    of[int(L)][0][1] = strip_unary<T, F, L, true>;
  }
};
template <class T, class F>
constexpr StripTable strip_binaries() {
  StripTable t;
  t.binary<T, F, Lane::kLast, Lane::kLast>();
  t.binary<T, F, Lane::kLast, Lane::kMemory>();
  t.binary<T, F, Lane::kLast, Lane::kOne>();
  t.binary<T, F, Lane::kMemory, Lane::kLast>();
  t.binary<T, F, Lane::kMemory, Lane::kMemory>();
  t.binary<T, F, Lane::kMemory, Lane::kOne>();
  t.binary<T, F, Lane::kOne, Lane::kLast>();
  t.binary<T, F, Lane::kOne, Lane::kMemory>();
  return t;
}
template <class T, class F>
constexpr StripTable strip_unaries() {
  StripTable t;
  t.unary<T, F, Lane::kLast>();
  t.unary<T, F, Lane::kMemory>();
  return t;
}

struct StripOp {
  Op op;
  StripTable table;
};
template <class T>
inline constexpr StripOp kStripOps[] = {
    {Op::kADD, strip_binaries<T, Add>()},
    {Op::kSUB, strip_binaries<T, Sub>()},
    {Op::kMUL, strip_binaries<T, Mul>()},
    {Op::kDIV, strip_binaries<T, Div>()},
    {Op::kMAXIMUM, strip_binaries<T, Maximum>()},
    {Op::kMINIMUM, strip_binaries<T, Minimum>()},
    {Op::kNEG, strip_unaries<T, Neg>()},
    {Op::kABS, strip_unaries<T, Abs>()},
    {Op::kEXP, strip_unaries<T, Exp>()},
    {Op::kLOG, strip_unaries<T, Log>()},
    {Op::kSQRT, strip_unaries<T, Sqrt>()},
    {Op::kRSQRT, strip_unaries<T, Rsqrt>()},
    {Op::kTANH, strip_unaries<T, Tanh>()},
    {Op::kERF, strip_unaries<T, Erf>()},
    {Op::kSIGMOID, strip_unaries<T, Sigmoid>()},
    {Op::kCOPY, strip_unaries<T, Same>()},
    {Op::kRECIPROCAL, strip_unaries<T, Reciprocal>()},
};

template <int N>
StripFunction find_strip_step(const StripOp (&ops)[N], const StripKind& k) {
  for (const StripOp& o : ops)
    if (o.op == k.op) return o.table.of[int(k.left)][int(k.right)][k.store];
  return nullptr;
}
inline void (*strip_step(const StripKind& k))() {
  const StripFunction f = k.dtype == DType::kF32 ? find_strip_step(kStripOps<float>, k) : nullptr;
  return reinterpret_cast<void (*)()>(f);
}
}  // namespace dvm::DVM_LEVEL

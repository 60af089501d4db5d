// Strips: instructions that are computed together, some vectors at a time. A value goes from one to the next in vector registers instead of
// through the first-level cache. Two ways:
//   steps  any elementwise instructions. Each is a function that ends by calling the next one's; the registers are its arguments, so nothing
//          is saved in between. Values that are wanted later than by the next step wait in a block at the side.
//   loops  the sequences that normalisations and the gradient of softmax consist of, row sums among them, compiled as one loop each.
// Bits: a step is its instruction's scalar function on vectors, and reductions keep the order of
// kernels_reduce.h. What follows the last whole block goes through blocks of its own, so that steps always see whole blocks.
#pragma once
#include "kernels_half.h"
#include "kernels_reduce.h"
#include "strip_kernels.h"

namespace dvm::DVM_LEVEL {

// Elements of T in memory as float32, and back.
template <class T>
DVM_INLINE Floats strip_load(const void* from, int64_t i) {
  if constexpr (sizeof(T) == 4) {
    Floats v;
    memcpy(&v, static_cast<const float*>(from) + i, sizeof(v));
    return v;
  } else {
    return HalfVector<T>::widen(load_some<Shorts>(static_cast<const T*>(from) + i, kHalves));
  }
}
template <class T>
DVM_INLINE void strip_store(void* to, int64_t i, Floats v) {
  if constexpr (sizeof(T) == 4) memcpy(static_cast<float*>(to) + i, &v, sizeof(v));
  else store_some(static_cast<T*>(to) + i, HalfVector<T>::narrow(v), kHalves);
}
template <class T>
DVM_INLINE Floats strip_rounded(Floats v) {
  if constexpr (sizeof(T) == 4) return v;
  else return HalfVector<T>::widen(HalfVector<T>::narrow(v));
}
template <class T>
DVM_INLINE Floats strip_one(const void* from) {  // x - 0 is x
  if constexpr (sizeof(T) == 4) return *static_cast<const float*>(from) - Floats{};
  else return Cast<T, float>::of(*static_cast<const T*>(from)) - Floats{};
}

// The first n elements of a vector, 0 < n <= kHalves, the others 0; and back.
template <class T>
DVM_INLINE Floats strip_load_some(const void* from, int64_t i, int64_t n) {
  if constexpr (sizeof(T) == 4) {
    const auto* x = static_cast<const float*>(from) + i;
#if defined(__AVX512F__)
    return Floats(_mm512_maskz_loadu_ps(__mmask16((1u << n) - 1), x));
#else
    Floats v{};
    memcpy(&v, x, size_t(n) * sizeof(float));
    return v;
#endif
  } else {
    return HalfVector<T>::widen(load_some<Shorts>(static_cast<const T*>(from) + i, n));
  }
}
template <class T>
DVM_INLINE void strip_store_some(void* to, int64_t i, Floats v, int64_t n) {
  if constexpr (sizeof(T) == 4) {
    auto* x = static_cast<float*>(to) + i;
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(x, __mmask16((1u << n) - 1), __m512(v));
#else
    memcpy(x, &v, size_t(n) * sizeof(float));
#endif
  } else {
    store_some(static_cast<T*>(to) + i, HalfVector<T>::narrow(v), n);
  }
}

// Of two NaNs the processor keeps the first operand's, and the compiler may exchange what it adds or multiplies. Here the order is fixed, to
// what the loops over single instructions do: one value for many elements comes first, else the right operand.
#if defined(__AVX512F__)
#define DVM_IN_ORDER(name, first, second, to) asm(name " %2, %1, %0" : "=v"(to) : "v"(first), "v"(second))
#elif defined(__AVX__)
#define DVM_IN_ORDER(name, first, second, to) asm(name " %2, %1, %0" : "=x"(to) : "x"(first), "x"(second))
#endif
template <class F, bool LeftIsOne>
DVM_INLINE Floats strip_two(Floats a, Floats b) {
#if defined(DVM_IN_ORDER)
  Floats z;
  if constexpr (__is_same(F, Add)) {
    DVM_IN_ORDER("vaddps", LeftIsOne ? a : b, LeftIsOne ? b : a, z);
    return z;
  } else if constexpr (__is_same(F, Mul)) {
    DVM_IN_ORDER("vmulps", LeftIsOne ? a : b, LeftIsOne ? b : a, z);
    return z;
  }
#endif
  return F::of(a, b);
}

struct Same {
  static DVM_INLINE float of(float a) { return a; }
};
// ---- steps ------------------------------------------------------------------------------------------------------------------------------

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
  alignas(kVectorBytes) float z[kStripBlock];
  memcpy(z, &x, sizeof(z));
  DVM_INDEPENDENT
  for (int64_t k = 0; k < kStripBlock; ++k) z[k] = F::of(z[k]);
  StripBlock result;
  memcpy(&result, z, sizeof(z));
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

// ---- loops ------------------------------------------------------------------------------------------------------------------------------

inline constexpr int kGroupVectors = kLanes / kHalves;  // a group of lanes: 16 elements
inline constexpr int kMostLoop = 16;                    // steps of a loop
inline constexpr int32_t kLaneNumbers[kLanes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

struct StripGroup {
  Floats v[kGroupVectors];
};
struct StripRow {
  Floats one[kMostLoop];      // the values of the row, by step
  StripGroup set[kMostLoop][4];  // sets of lanes, by step
};

template <DType Code>
struct StripItem {
  using type = float;
};
template <>
struct StripItem<DType::kBF16> {
  using type = Brain;
};

// Elements i .. i + n - 1 of a group; All: n is 16.
template <class T, bool All>
DVM_INLINE StripGroup strip_group(const void* from, int64_t i, int64_t n) {
  StripGroup g{};
  DVM_UNROLL
  for (int k = 0; k < kGroupVectors; ++k) {
    if constexpr (All) g.v[k] = strip_load<T>(from, i + k * kHalves);
    else if (n > k * kHalves) g.v[k] = strip_load_some<T>(from, i + k * kHalves, smaller(int64_t(kHalves), n - k * kHalves));
  }
  return g;
}
template <class T, bool All>
DVM_INLINE void strip_put(void* to, int64_t i, const StripGroup& g, int64_t n) {
  DVM_UNROLL
  for (int k = 0; k < kGroupVectors; ++k) {
    if constexpr (All) strip_store<T>(to, i + k * kHalves, g.v[k]);
    else if (n > k * kHalves) strip_store_some<T>(to, i + k * kHalves, g.v[k], smaller(int64_t(kHalves), n - k * kHalves));
  }
}

template <class F>
struct OpOf;
#define DVM_STRIP_OP(name, code)       \
  template <>                          \
  struct OpOf<name> {                  \
    static constexpr Op op = Op::code; \
  };
DVM_STRIP_OP(Add, kADD)
DVM_STRIP_OP(Sub, kSUB)
DVM_STRIP_OP(Mul, kMUL)
#undef DVM_STRIP_OP

// The kinds of steps a loop is written with: `kind` is what it stands for, `run` one group of step K.
template <class F, Lane L, Lane R, bool Store = false, DType Code = DType::kF32>
struct Two {
  using T = typename StripItem<Code>::type;
  static constexpr StripKind kind{OpOf<F>::op, Code, L, R, Store};
  template <Lane P, bool All>
  static DVM_INLINE StripGroup operand(const StripGroup& last, Floats one, const void* from, int64_t i, int64_t n) {
    if constexpr (P == Lane::kMemory) return strip_group<T, All>(from, i, n);
    if constexpr (P == Lane::kOne) {
      StripGroup g;
      for (int k = 0; k < kGroupVectors; ++k) g.v[k] = one;
      return g;
    }
    return last;
  }
  static DVM_INLINE void row(StripRow& r, int K, const StripStep& s, int64_t row) {
    if constexpr (L == Lane::kOne) r.one[K] = strip_one<T>(static_cast<const char*>(s.x) + row * s.x_moves);
    if constexpr (R == Lane::kOne) r.one[K] = strip_one<T>(static_cast<const char*>(s.y) + row * s.y_moves);
  }
  template <bool Wide, bool All>
  static DVM_INLINE void run(StripRow& r, int K, StripGroup& last, const StripStep& s, int64_t i, int, int64_t n) {
    const StripGroup x = operand<L, All>(last, r.one[K], s.x, i, n);
    const StripGroup y = operand<R, All>(last, r.one[K], s.y, i, n);
    for (int k = 0; k < kGroupVectors; ++k) last.v[k] = strip_rounded<T>(strip_two < F, L == Lane::kOne > (x.v[k], y.v[k]));
    if constexpr (Store) strip_put<T, All>(s.out, i, last, n);
  }
  static DVM_INLINE void begin(StripRow&, int) {}
  template <bool Wide>
  static DVM_INLINE void end(StripRow&, int, const StripStep&, int64_t, bool) {}
};
template <class F>
struct ReductionOf;
template <>
struct ReductionOf<Add> {
  static constexpr Op op = Op::kSUM;
};
// Lanes of the row so far are joined with the group; what is missing of it is the identity.
template <class F, Lane L>
struct Reduce {
  static constexpr StripKind kind{ReductionOf<F>::op, DType::kF32, L, Lane::kLast, true};
  static DVM_INLINE void row(StripRow&, int, const StripStep&, int64_t) {}
  template <bool Wide, bool All>
  static DVM_INLINE void run(StripRow& r, int K, StripGroup& last, const StripStep& s, int64_t i, int set, int64_t n) {
    StripGroup x = last;
    if constexpr (L == Lane::kMemory) x = strip_group<float, All>(s.x, i, n);
    StripGroup& to = r.set[K][Wide ? set : 0];
    for (int k = 0; k < kGroupVectors; ++k) {
      if constexpr (!All) {
        Mask number;
        memcpy(&number, kLaneNumbers + k * kHalves, sizeof(number));
        x.v[k] = number < int32_t(n) - Mask{} ? x.v[k] : Identity<F, float>::value() - Floats{};
      }
      to.v[k] = F::of(to.v[k], x.v[k]);
    }
  }
  static DVM_INLINE void begin(StripRow& r, int K) {
    for (auto& set : r.set[K])
      for (Floats& v : set.v) v = Identity<F, float>::value() - Floats{};
  }
  template <bool Wide>
  static DVM_INLINE void end(StripRow& r, int K, const StripStep& s, int64_t row, bool first) {
    Lanes<float> set[4];
    static_assert(sizeof(set[0]) == sizeof(StripGroup));
    for (int k = 0; k < (Wide ? 4 : 1); ++k) memcpy(&set[k], &r.set[K][k], sizeof(set[k]));
    if constexpr (Wide) {
      set[0].template join<F>(set[2]);
      set[1].template join<F>(set[3]);
      set[0].template join<F>(set[1]);
    }
    const float part = join_lanes<F, float>(set[0]);
    float* out = static_cast<float*>(s.out) + row;
    *out = first ? part : F::of(*out, part);
  }
};

template <int K, class S, class... Rest>
struct StripChain {
  static DVM_INLINE void row(StripRow& r, const StripStep* s, int64_t row) {
    S::row(r, K, s[K], row);
    if constexpr (sizeof...(Rest) > 0) StripChain<K + 1, Rest...>::row(r, s, row);
  }
  static DVM_INLINE void begin(StripRow& r) {
    S::begin(r, K);
    if constexpr (sizeof...(Rest) > 0) StripChain<K + 1, Rest...>::begin(r);
  }
  template <bool Wide, bool All>
  static DVM_INLINE void run(StripRow& r, StripGroup& last, const StripStep* s, int64_t i, int set, int64_t n) {
    S::template run<Wide, All>(r, K, last, s[K], i, set, n);
    if constexpr (sizeof...(Rest) > 0) StripChain<K + 1, Rest...>::template run<Wide, All>(r, last, s, i, set, n);
  }
  template <bool Wide>
  static DVM_INLINE void end(StripRow& r, const StripStep* s, int64_t row, bool first) {
    S::template end<Wide>(r, K, s[K], row, first);
    if constexpr (sizeof...(Rest) > 0) StripChain<K + 1, Rest...>::template end<Wide>(r, s, row, first);
  }
};

template <class... S>
struct StripLoopOf {
  static constexpr int kCount = sizeof...(S);
  static_assert(kCount <= kMostLoop);
  static constexpr StripKind kinds[] = {S::kind...};
  using Chain = StripChain<0, S...>;

  // Columns first .. first + width - 1 of the tile, all of one row and of one block of kReduceBlock.
  template <bool Wide>
  static DVM_INLINE void part(StripRow& r, const StripStep* s, int64_t first, int64_t width, int64_t row, bool is_first) {
    Chain::begin(r);
    StripGroup last{};
    int64_t i = 0;
    for (; i + 4 * kLanes <= width; i += 4 * kLanes) {
      Chain::template run<Wide, true>(r, last, s, first + i, 0, kLanes);
      Chain::template run<Wide, true>(r, last, s, first + i + kLanes, 1, kLanes);
      Chain::template run<Wide, true>(r, last, s, first + i + 2 * kLanes, 2, kLanes);
      Chain::template run<Wide, true>(r, last, s, first + i + 3 * kLanes, 3, kLanes);
    }
    const auto rest = [&](int set) {
      if (i >= width) return;
      if (width - i >= kLanes) Chain::template run<Wide, true>(r, last, s, first + i, set, kLanes);
      else Chain::template run<Wide, false>(r, last, s, first + i, set, width - i);
      i += kLanes;
    };
    rest(0);
    rest(1);
    rest(2);
    rest(3);
    Chain::template end<Wide>(r, s, row, is_first);
  }
  static void run(const StripArgs& args) {
    StripStep s[kCount];
    memcpy(s, args.steps, sizeof(s));
    for (int64_t row = 0; row < args.rows; ++row) {
      StripRow r;
      Chain::row(r, s, row);
      for (int64_t col = 0; col < args.cols; col += kReduceBlock) {
        const int64_t width = smaller(kReduceBlock, args.cols - col), first = row * args.cols + col;
        if (width >= kWide) part<true>(r, s, first, width, row, col == 0);
        else part<false>(r, s, first, width, row, col == 0);
      }
    }
  }
};

template <class L>
constexpr StripLoop strip_loop_entry() {
  return {L::kinds, L::kCount, L::run};
}

#define DVM_LAST Lane::kLast
#define DVM_MEM Lane::kMemory
#define DVM_ONE Lane::kOne
inline constexpr StripLoop kStripLoops[] = {
    // sums of products
    strip_loop_entry<StripLoopOf<Two<Mul, DVM_MEM, DVM_MEM>, Reduce<Add, DVM_LAST>>>(),
    strip_loop_entry<StripLoopOf<Two<Mul, DVM_MEM, DVM_MEM, true>, Reduce<Add, DVM_LAST>>>(),
    // y (dy - sum)
    strip_loop_entry<StripLoopOf<Two<Sub, DVM_MEM, DVM_ONE>, Two<Mul, DVM_MEM, DVM_LAST, true>>>(),
    // x - mean, and the sum of its squares
    strip_loop_entry<StripLoopOf<Two<Sub, DVM_MEM, DVM_ONE, true>, Two<Mul, DVM_LAST, DVM_LAST>, Reduce<Add, DVM_LAST>>>(),
    // scaled, times gain, plus bias
    strip_loop_entry<StripLoopOf<Two<Mul, DVM_MEM, DVM_ONE>, Two<Mul, DVM_LAST, DVM_MEM, true>>>(),
    strip_loop_entry<StripLoopOf<Two<Mul, DVM_MEM, DVM_ONE>, Two<Mul, DVM_LAST, DVM_MEM>, Two<Add, DVM_LAST, DVM_MEM, true>>>(),
};
#undef DVM_LAST
#undef DVM_MEM
#undef DVM_ONE

}  // namespace dvm::DVM_LEVEL

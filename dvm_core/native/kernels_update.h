// Updates of optimizers as loops: each goes through memory once, with every value between its first and last use in a vector register.
// A loop is written as the instructions it stands for, and each of these rounds as it does alone.
#pragma once
#include "kernels_strip.h"

namespace dvm::DVM_LEVEL {

template <Op Id>
struct UpdateFunction;
#define DVM_UPDATE_OP(code, name) \
  template <>                     \
  struct UpdateFunction<code> {   \
    using type = name;            \
  };
DVM_UPDATE_OP(Op::kADD, Add)
DVM_UPDATE_OP(Op::kSUB, Sub)
DVM_UPDATE_OP(Op::kMUL, Mul)
DVM_UPDATE_OP(Op::kDIV, Div)
#undef DVM_UPDATE_OP

DVM_INLINE Floats update_root(Floats a) {
#if defined(__AVX512F__)
  return Floats(_mm512_sqrt_ps(__m512(a)));
#elif defined(__AVX__)
  return Floats(_mm256_sqrt_ps(__m256(a)));
#else
  for (int k = 0; k < kHalves; ++k) a[k] = Sqrt::of(a[k]);
  return a;
#endif
}

struct UpdateMemory {
  const float* in[kMostStreams];
  float* out[kLongestUpdate];
  Floats one[kLongestUpdate];  // by step
};
struct UpdateValues {
  Floats in[kMostStreams], of[kLongestUpdate];
};

template <int8_t Ref>
DVM_INLINE Floats update_operand(const UpdateValues& v, Floats one) {
  if constexpr (Ref == kUpdateOne) return one;
  else if constexpr (is_update_in(Ref)) return v.in[Ref - kUpdateIn];
  else return v.of[Ref];
}

// ---- the updates ------------------------------------------------------------------------------------------------------------------------
// Streams are numbered as they come up; one value is always the right operand, as strip_two orders it there.

inline constexpr int8_t kOne = kUpdateOne, kIn0 = kUpdateIn, kIn1 = kUpdateIn + 1, kIn2 = kUpdateIn + 2, kIn3 = kUpdateIn + 3;

// m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2: steps 2 and 6, of streams m, g, v.
#define DVM_MOMENTS                                                                                                                                   \
  {Op::kMUL, kIn0, kOne, false}, {Op::kMUL, kIn1, kOne, false}, {Op::kADD, 0, 1, true}, {Op::kMUL, kIn2, kOne, false}, {Op::kMUL, kIn1, kIn1, false}, \
      {Op::kMUL, 4, kOne, false}, {                                                                                                                   \
    Op::kADD, 3, 5, true                                                                                                                              \
  }
// p - lr m / (sqrt(v) + eps)
struct AdamUpdate {
  static constexpr UpdateStep steps[] = {DVM_MOMENTS,
                                         {Op::kMUL, 2, kOne, false},
                                         {Op::kSQRT, 6, kUpdateNone, false},
                                         {Op::kADD, 8, kOne, false},
                                         {Op::kDIV, 7, 9, false},
                                         {Op::kSUB, kIn3, 10, true}};
};
// The same, where (1 - b2) g is multiplied by g.
struct AdamUpdateOfScaled {
  static constexpr UpdateStep steps[] = {{Op::kMUL, kIn0, kOne, false}, {Op::kMUL, kIn1, kOne, false}, {Op::kADD, 0, 1, true},
                                         {Op::kMUL, kIn2, kOne, false}, {Op::kMUL, kIn1, kOne, false}, {Op::kMUL, 4, kIn1, false},
                                         {Op::kADD, 3, 5, true},        {Op::kMUL, 2, kOne, false},    {Op::kSQRT, 6, kUpdateNone, false},
                                         {Op::kADD, 8, kOne, false},    {Op::kDIV, 7, 9, false},       {Op::kSUB, kIn3, 10, true}};
};
// p - lr (m / c1) / (sqrt(v / c2) + eps)
struct AdamUpdateCorrected {
  static constexpr UpdateStep steps[] = {DVM_MOMENTS,
                                         {Op::kDIV, 2, kOne, false},
                                         {Op::kDIV, 6, kOne, false},
                                         {Op::kMUL, 7, kOne, false},
                                         {Op::kSQRT, 8, kUpdateNone, false},
                                         {Op::kADD, 10, kOne, false},
                                         {Op::kDIV, 9, 11, false},
                                         {Op::kSUB, kIn3, 12, true}};
};
// p - lr (m / (sqrt(v) + eps) + decay p)
struct DecayedAdamUpdate {
  static constexpr UpdateStep steps[] = {DVM_MOMENTS,
                                         {Op::kSQRT, 6, kUpdateNone, false},
                                         {Op::kADD, 7, kOne, false},
                                         {Op::kDIV, 2, 8, false},
                                         {Op::kMUL, kIn3, kOne, false},
                                         {Op::kADD, 9, 10, false},
                                         {Op::kMUL, 11, kOne, false},
                                         {Op::kSUB, kIn3, 12, true}};
};
// The same without decay.
struct RatedAdamUpdate {
  static constexpr UpdateStep steps[] = {DVM_MOMENTS,
                                         {Op::kSQRT, 6, kUpdateNone, false},
                                         {Op::kADD, 7, kOne, false},
                                         {Op::kDIV, 2, 8, false},
                                         {Op::kMUL, 9, kOne, false},
                                         {Op::kSUB, kIn3, 10, true}};
};
#undef DVM_MOMENTS
// u = by u + g; p - lr u
struct MomentumUpdate {
  static constexpr UpdateStep steps[] = {{Op::kMUL, kIn0, kOne, false}, {Op::kADD, 0, kIn1, true}, {Op::kMUL, 1, kOne, false}, {Op::kSUB, kIn2, 2, true}};
};
// The same of g + decay p, streams p, g, u.
struct DecayedMomentumUpdate {
  static constexpr UpdateStep steps[] = {{Op::kMUL, kIn0, kOne, false}, {Op::kADD, kIn1, 0, false}, {Op::kMUL, kIn2, kOne, false},
                                         {Op::kADD, 2, 1, true},        {Op::kMUL, 3, kOne, false}, {Op::kSUB, kIn0, 4, true}};
};

// ---- how they run -----------------------------------------------------------------------------------------------------------------------

// All is read before anything is written: where a result takes the memory of an operand, it is the same element's.
template <class U>
struct UpdateLoopOf {
  static constexpr int kCount = sizeof(U::steps) / sizeof(U::steps[0]);
  static_assert(kCount <= kLongestUpdate);
  static constexpr int streams() {
    int most = 0;
    for (const UpdateStep& s : U::steps) {
      if (is_update_in(s.x) && s.x - kUpdateIn >= most) most = s.x - kUpdateIn + 1;
      if (is_update_in(s.y) && s.y - kUpdateIn >= most) most = s.y - kUpdateIn + 1;
    }
    return most;
  }
  static constexpr int kStreams = streams();

  template <int K>
  static DVM_INLINE void steps(const UpdateMemory& m, UpdateValues& v) {
    if constexpr (K < kCount) {
      constexpr UpdateStep s = U::steps[K];
      const Floats x = update_operand<s.x>(v, m.one[K]);
      if constexpr (s.op == Op::kSQRT) v.of[K] = update_root(x);
      else v.of[K] = strip_two<typename UpdateFunction<s.op>::type, false>(x, update_operand<s.y>(v, m.one[K]));
      steps<K + 1>(m, v);
    }
  }
  template <bool All, int K>
  static DVM_INLINE void read(const UpdateMemory& m, UpdateValues& v, int64_t i, int64_t n) {
    if constexpr (K < kStreams) {
      v.in[K] = All ? strip_load<float>(m.in[K], i) : strip_load_some<float>(m.in[K], i, n);
      read<All, K + 1>(m, v, i, n);
    }
  }
  template <bool All, int K>
  static DVM_INLINE void write(const UpdateMemory& m, const UpdateValues& v, int64_t i, int64_t n) {
    if constexpr (K < kCount) {
      if constexpr (U::steps[K].stored) {
        if constexpr (All) strip_store<float>(m.out[K], i, v.of[K]);
        else strip_store_some<float>(m.out[K], i, v.of[K], n);
      }
      write<All, K + 1>(m, v, i, n);
    }
  }
  template <bool All>
  static DVM_INLINE void vector(const UpdateMemory& m, int64_t i, int64_t n) {
    UpdateValues v;
    read<All, 0>(m, v, i, n);
    steps<0>(m, v);
    write<All, 0>(m, v, i, n);
  }

  static void run(const StripArgs& args) {
    UpdateMemory m;
    for (int k = 0; k < kCount; ++k) {
      const UpdateStep& u = U::steps[k];
      const StripStep& s = args.steps[k];
      if (is_update_in(u.x)) m.in[u.x - kUpdateIn] = static_cast<const float*>(s.x);
      if (is_update_in(u.y)) m.in[u.y - kUpdateIn] = static_cast<const float*>(s.y);
      if (u.y == kUpdateOne) m.one[k] = strip_one<float>(s.y);
      if (u.stored) m.out[k] = static_cast<float*>(s.out);
    }
    const int64_t n = args.rows * args.cols;
    int64_t i = 0;
    for (; i + kHalves <= n; i += kHalves) vector<true>(m, i, kHalves);
    if (i < n) vector<false>(m, i, n - i);
  }
};

template <class U>
constexpr UpdateLoop update_entry() {
  return {U::steps, UpdateLoopOf<U>::kCount, UpdateLoopOf<U>::run};
}
inline constexpr UpdateLoop kUpdateLoops[] = {
    update_entry<AdamUpdate>(),      update_entry<AdamUpdateOfScaled>(), update_entry<AdamUpdateCorrected>(),   update_entry<DecayedAdamUpdate>(),
    update_entry<RatedAdamUpdate>(), update_entry<MomentumUpdate>(),     update_entry<DecayedMomentumUpdate>(),
};

}  // namespace dvm::DVM_LEVEL

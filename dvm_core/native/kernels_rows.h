// Strips over rows: sequences of instructions as one loop over each row, written as the steps they stand for. Narrow rows go two or four
// side by side: sums of one wait for each other, and a loop's end costs more than the row.
#pragma once
#include "kernels_strip.h"

namespace dvm::DVM_LEVEL {

inline constexpr int kGroupVectors = kLanes / kHalves;  // a group of lanes: 16 elements
inline constexpr int kMostLoop = 16;                    // steps of a loop
// Rows of fewer than kSideBySide columns, and groups of a wide one, side by side. AVX2 has 16 registers, and a group of 16 lanes takes two; from
// 96 columns on rows are as fast one by one there, and memory that is read in turns at two places is not read ahead.
#if defined(__AVX2__) && !defined(__AVX512F__)
inline constexpr int kRowsAtOnce = 2, kGroupsAtOnce = 2;
inline constexpr int64_t kSideBySide = 96;
#else
inline constexpr int kRowsAtOnce = 4, kGroupsAtOnce = 4;
inline constexpr int64_t kSideBySide = kWide;
#endif
inline constexpr int32_t kLaneNumbers[kLanes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

struct StripGroup {
  Floats v[kGroupVectors];
};
// Four groups are computed side by side, step by step: the four sets of lanes of a wide row, or one group each of four narrow ones.
template <int Rows>
struct StripRow {
  Floats one[kMostLoop][Rows];    // the values of the rows, by step
  StripGroup set[kMostLoop][4];  // sets of lanes, by step
};
// Where groups are: at, at + apart ... Elements of each: n, 16 if All. Set is the first one's set of lanes.
struct StripPlace {
  int64_t at, apart, n;
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
DVM_STRIP_OP(Exp, kEXP)
#undef DVM_STRIP_OP

// The kinds of steps a loop is written with: `kind` is what it stands for, `row` reads what row number u has one of, `run` computes step K of
// N groups, `begin` and `end` are a block's of kReduceBlock columns.
struct Elementwise {
  template <class Row>
  static DVM_INLINE void row(Row&, int, int, const StripStep&, int64_t) {}
  template <class Row>
  static DVM_INLINE void begin(Row&, int) {}
  template <bool Wide, class Row>
  static DVM_INLINE void end(Row&, int, int, const StripStep&, int64_t, bool) {}
};
template <class F, Lane L, Lane R, bool Store = false, DType Code = DType::kF32>
struct Two : Elementwise {
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
  template <class Row>
  static DVM_INLINE void row(Row& r, int K, int u, const StripStep& s, int64_t row) {
    if constexpr (L == Lane::kOne) r.one[K][u] = strip_one<T>(static_cast<const char*>(s.x) + row * s.x_moves);
    if constexpr (R == Lane::kOne) r.one[K][u] = strip_one<T>(static_cast<const char*>(s.y) + row * s.y_moves);
  }
  template <bool All, int Set, int N, int Rows>
  static DVM_INLINE void run(StripRow<Rows>& r, int K, StripGroup (&last)[N], const StripStep& s, const StripPlace& p) {
    DVM_UNROLL
    for (int g = 0; g < N; ++g) {
      const Floats one = r.one[K][Rows == 1 ? 0 : g];
      const StripGroup x = operand<L, All>(last[g], one, s.x, p.at + g * p.apart, p.n);
      const StripGroup y = operand<R, All>(last[g], one, s.y, p.at + g * p.apart, p.n);
      for (int k = 0; k < kGroupVectors; ++k) last[g].v[k] = strip_rounded<T>(strip_two < F, L == Lane::kOne > (x.v[k], y.v[k]));
      if constexpr (Store) strip_put<T, All>(s.out, p.at + g * p.apart, last[g], p.n);
    }
  }
};
template <class F, Lane L, bool Store = false, DType Code = DType::kF32>
struct One : Elementwise {
  using T = typename StripItem<Code>::type;
  static constexpr StripKind kind{OpOf<F>::op, Code, L, Lane::kLast, Store};
  template <bool All, int Set, int N, int Rows>
  static DVM_INLINE void run(StripRow<Rows>&, int, StripGroup (&last)[N], const StripStep& s, const StripPlace& p) {
    if constexpr (L == Lane::kMemory) {
      DVM_UNROLL
      for (int g = 0; g < N; ++g) last[g] = strip_group<T, All>(s.x, p.at + g * p.apart, p.n);
    }
    strip_each<F, N * kGroupVectors>(last[0].v);
    DVM_UNROLL
    for (int g = 0; g < N; ++g) {
      for (int k = 0; k < kGroupVectors; ++k) last[g].v[k] = strip_rounded<T>(last[g].v[k]);
      if constexpr (Store) strip_put<T, All>(s.out, p.at + g * p.apart, last[g], p.n);
    }
  }
};
// bfloat16 as float32: in registers it is that already.
template <Lane L>
struct Widen : Elementwise {
  static constexpr StripKind kind{Op::kCAST, DType::kBF16, L, Lane::kLast, false};
  template <bool All, int Set, int N, int Rows>
  static DVM_INLINE void run(StripRow<Rows>&, int, StripGroup (&last)[N], const StripStep& s, const StripPlace& p) {
    if constexpr (L == Lane::kMemory) {
      DVM_UNROLL
      for (int g = 0; g < N; ++g) last[g] = strip_group<Brain, All>(s.x, p.at + g * p.apart, p.n);
    }
  }
};
#if defined(__AVX512F__)
// The lanes of four rows, joined side by side: each as join_lanes does it, in less than half of the instructions.
DVM_INLINE void join_four_rows(float* out, __m512 a, __m512 b, __m512 c, __m512 d) {
  const auto eighths = [](__m512 x, __m512 y) { return _mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x44), _mm512_shuffle_f32x4(x, y, 0xee)); };
  const __m512 ab = eighths(a, b), cd = eighths(c, d);
  const __m512 fours = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
  const __m512 twos = _mm512_add_ps(fours, _mm512_shuffle_ps(fours, fours, 0xee));
  const __m512 ones = _mm512_add_ps(twos, _mm512_movehdup_ps(twos));
  _mm_storeu_ps(out, _mm512_castps512_ps128(_mm512_maskz_compress_ps(0x1111, ones)));
}
#endif
// Lanes of the row so far are joined with the group; what is missing of it is the identity.
template <Lane L>
struct SumOf {
  static constexpr StripKind kind{Op::kSUM, DType::kF32, L, Lane::kLast, true};
  template <class Row>
  static DVM_INLINE void row(Row&, int, int, const StripStep&, int64_t) {}
  template <bool All, int Set, int N, int Rows>
  static DVM_INLINE void run(StripRow<Rows>& r, int K, StripGroup (&last)[N], const StripStep& s, const StripPlace& p) {
    DVM_UNROLL
    for (int g = 0; g < N; ++g) {
      StripGroup x = last[g];
      if constexpr (L == Lane::kMemory) x = strip_group<float, All>(s.x, p.at + g * p.apart, p.n);
      StripGroup& to = r.set[K][Set + g];
      for (int k = 0; k < kGroupVectors; ++k) {
        if constexpr (!All) {
          Mask number;
          memcpy(&number, kLaneNumbers + k * kHalves, sizeof(number));
          x.v[k] = number < int32_t(p.n) - Mask{} ? x.v[k] : Floats{};
        }
        to.v[k] = Add::of(to.v[k], x.v[k]);
      }
    }
  }
  template <class Row>
  static DVM_INLINE void begin(Row& r, int K) {
    DVM_UNROLL
    for (int set = 0; set < 4; ++set) r.set[K][set] = StripGroup{};
  }
  template <bool Wide, class Row>
  static DVM_INLINE void end(Row& r, int K, int u, const StripStep& s, int64_t row, bool first) {
#if defined(__AVX512F__)
    if constexpr (sizeof(r.one[0]) == kRowsAtOnce * sizeof(Floats)) {  // narrow rows: with the first one
      const auto of = [&](int k) { return __m512(r.set[K][k].v[0]); };
      if (u == 0) join_four_rows(static_cast<float*>(s.out) + row, of(0), of(1), of(2), of(3));
      return;
    }
#endif
    Lanes<float> set[4];
    static_assert(sizeof(set[0]) == sizeof(StripGroup));
    for (int k = 0; k < (Wide ? 4 : 1); ++k) memcpy(&set[k], &r.set[K][u + k], sizeof(set[k]));
    if constexpr (Wide) {
      set[0].template join<Add>(set[2]);
      set[1].template join<Add>(set[3]);
      set[0].template join<Add>(set[1]);
    }
    const float part = join_lanes<Add, float>(set[0]);
    float* out = static_cast<float*>(s.out) + row;
    *out = first ? part : Add::of(*out, part);
  }
};

template <int K, class S, class... Rest>
struct StripChain {
  template <class Row>
  static DVM_INLINE void row(Row& r, int u, const StripStep* s, int64_t row) {
    S::row(r, K, u, s[K], row);
    if constexpr (sizeof...(Rest) > 0) StripChain<K + 1, Rest...>::row(r, u, s, row);
  }
  template <class Row>
  static DVM_INLINE void begin(Row& r) {
    S::begin(r, K);
    if constexpr (sizeof...(Rest) > 0) StripChain<K + 1, Rest...>::begin(r);
  }
  template <bool All, int Set, int N, int Rows>
  static DVM_INLINE void run(StripRow<Rows>& r, StripGroup (&last)[N], const StripStep* s, const StripPlace& p) {
    S::template run<All, Set>(r, K, last, s[K], p);
    if constexpr (sizeof...(Rest) > 0) StripChain<K + 1, Rest...>::template run<All, Set>(r, last, s, p);
  }
  template <bool Wide, class Row>
  static DVM_INLINE void end(Row& r, int u, const StripStep* s, int64_t row, bool first) {
    S::template end<Wide>(r, K, u, s[K], row, first);
    if constexpr (sizeof...(Rest) > 0) StripChain<K + 1, Rest...>::template end<Wide>(r, u, s, row, first);
  }
};

template <class... S>
struct StripLoopOf {
  static constexpr int kCount = sizeof...(S);
  static_assert(kCount <= kMostLoop);
  static constexpr StripKind kinds[] = {S::kind...};
  using Chain = StripChain<0, S...>;

  // Groups after the last four of a wide row, one for each set of lanes.
  template <int Set>
  static DVM_INLINE void rest(StripRow<1>& r, const StripStep* s, int64_t at, int64_t left) {
    StripGroup last[1]{};
    if (left <= 0) return;
    if (left >= kLanes) Chain::template run<true, Set>(r, last, s, {at, 0, kLanes});
    else Chain::template run<false, Set>(r, last, s, {at, 0, left});
    if constexpr (Set < 3) rest<Set + 1>(r, s, at + kLanes, left - kLanes);
  }
  // Columns first .. first + width - 1 of the tile, all of one row and of one block of kReduceBlock.
  static DVM_INLINE void wide(StripRow<1>& r, const StripStep* s, int64_t first, int64_t width, int64_t row, bool is_first) {
    Chain::begin(r);
    StripGroup last[kGroupsAtOnce]{};
    int64_t i = 0;
    for (; i + 4 * kLanes <= width; i += 4 * kLanes) {
      Chain::template run<true, 0>(r, last, s, {first + i, kLanes, kLanes});
      if constexpr (kGroupsAtOnce == 2) Chain::template run<true, 2>(r, last, s, {first + i + 2 * kLanes, kLanes, kLanes});
    }
    rest<0>(r, s, first + i, width - i);
    Chain::template end<true>(r, 0, s, row, is_first);
  }
  // `width` columns from `first` on of Rows rows that are `cols` apart.
  template <int Rows>
  static DVM_INLINE void narrow(const StripStep* s, int64_t first, int64_t width, int64_t cols, int64_t row, bool is_first) {
    StripRow<Rows> r;
    DVM_UNROLL
    for (int u = 0; u < Rows; ++u) Chain::row(r, u, s, row + u);
    Chain::begin(r);
    StripGroup last[Rows]{};
    int64_t i = 0;
    for (; i + kLanes <= width; i += kLanes) Chain::template run<true, 0>(r, last, s, {first + i, cols, kLanes});
    if (i < width) Chain::template run<false, 0>(r, last, s, {first + i, cols, width - i});
    DVM_UNROLL
    for (int u = 0; u < Rows; ++u) Chain::template end<false>(r, u, s, row + u, is_first);
  }
  static void run(const StripArgs& args) {
    StripStep s[kCount];
    memcpy(s, args.steps, sizeof(s));
    const int64_t cols = args.cols;
    int64_t row = 0;
    if (cols < kSideBySide)
      for (; row + kRowsAtOnce <= args.rows; row += kRowsAtOnce) narrow<kRowsAtOnce>(s, row * cols, cols, cols, row, true);
    for (; row < args.rows; ++row) {
      StripRow<1> r;
      Chain::row(r, 0, s, row);
      for (int64_t col = 0; col < cols; col += kReduceBlock) {
        const int64_t width = smaller(kReduceBlock, cols - col), first = row * cols + col;
        if (width >= kWide) wide(r, s, first, width, row, col == 0);
        else narrow<1>(s, first, width, cols, row, col == 0);
      }
    }
  }
};

}  // namespace dvm::DVM_LEVEL

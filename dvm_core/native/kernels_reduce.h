// Reductions. The order of a row is part of the contract: blocks of 4096 columns; in a block, column i goes to lane i % 16, the last
// group filled up with the identity; lanes l and l + 8, then l + 4, l + 2, l + 1 are joined; block results are joined in order. A block of
// 256 columns or more has four sets of lanes, group after group of 16 goes to the next set, and sets s and s + 2, then s + 1 are joined
// before the lanes are.
// Lanes are held in machine vectors, as many as the level needs for 16.
#pragma once
#include "kernels_elementwise.h"
#include "kernels_part.h"

namespace dvm::DVM_LEVEL {

inline constexpr int kLanes = 16;

template <class T>
inline constexpr int kLaneBytes = smaller(kVectorBytes, int(kLanes * sizeof(T)));
template <class T>
struct LaneVector {
  typedef T type __attribute__((vector_size(kLaneBytes<T>)));
};

// 16 lanes of T in registers.
template <class T>
struct Lanes {
  using V = typename LaneVector<T>::type;
  static constexpr int kParts = int(kLanes * sizeof(T)) / kLaneBytes<T>;
  V part[kParts];

  static constexpr int kPer = kLaneBytes<T> / int(sizeof(T));

  DVM_INLINE void set(T x) {
    DVM_UNROLL
    for (int p = 0; p < kParts; ++p) part[p] = x - V{};  // x - 0 is x, -0 included
  }
  DVM_INLINE void load(const T* from) {
    DVM_UNROLL
    for (int p = 0; p < kParts; ++p) memcpy(&part[p], from + p * kPer, sizeof(V));
  }
  DVM_INLINE void store(T* to) const {
    DVM_UNROLL
    for (int p = 0; p < kParts; ++p) memcpy(to + p * kPer, &part[p], sizeof(V));
  }
  template <class F>
  DVM_INLINE void join(const Lanes& o) {
    DVM_UNROLL
    for (int p = 0; p < kParts; ++p) part[p] = F::of(part[p], o.part[p]);
  }
};

// The tree inside one vector of N lanes: halves of vectors while they are wide, then one by one.
template <class F, class T, int N, class V>
DVM_INLINE T join_vector(V v) {
  if constexpr (N == 16 && sizeof(V) > 16) {
    return join_vector<F, T, 8>(F::of(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7), __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15)));
  } else if constexpr (N == 8 && sizeof(V) > 16) {
    return join_vector<F, T, 4>(F::of(__builtin_shufflevector(v, v, 0, 1, 2, 3), __builtin_shufflevector(v, v, 4, 5, 6, 7)));
  } else if constexpr (N == 4 && sizeof(V) > 16) {
    return join_vector<F, T, 2>(F::of(__builtin_shufflevector(v, v, 0, 1), __builtin_shufflevector(v, v, 2, 3)));
  } else {
    T x[N];
    memcpy(x, &v, sizeof(V));
    DVM_UNROLL
    for (int half = N / 2; half > 0; half /= 2)
      for (int l = 0; l < half; ++l) x[l] = F::of(x[l], x[l + half]);
    return x[0];
  }
}

template <class F, class T>
DVM_INLINE T join_lanes(Lanes<T> lanes) {
  DVM_UNROLL
  for (int half = Lanes<T>::kParts / 2; half > 0; half /= 2)
    for (int p = 0; p < half; ++p) lanes.part[p] = F::of(lanes.part[p], lanes.part[p + half]);
  return join_vector<F, T, Lanes<T>::kPer>(lanes.part[0]);
}

// The largest and the smallest of numbers: two instructions less than with NaN. Where a sum over the same elements is no NaN, none is among
// them (the sum is one too often, for infinities of both signs, which then only take longer).
struct LargerNumber {
  template <class T>
  static DVM_INLINE T of(T a, T b) {
    return b > a ? b : a;
  }
};
struct SmallerNumber {
  template <class T>
  static DVM_INLINE T of(T a, T b) {
    return b < a ? b : a;
  }
};
template <class F, class T>
struct OfNumbers {
  using type = void;
};
template <>
struct OfNumbers<Maximum, float> {
  using type = LargerNumber;
};
template <>
struct OfNumbers<Maximum, double> {
  using type = LargerNumber;
};
template <>
struct OfNumbers<Minimum, float> {
  using type = SmallerNumber;
};
template <>
struct OfNumbers<Minimum, double> {
  using type = SmallerNumber;
};
template <class F>
inline constexpr bool kOfNumbers = false;
template <>
inline constexpr bool kOfNumbers<LargerNumber> = true;
template <>
inline constexpr bool kOfNumbers<SmallerNumber> = true;

// The last n < 16 elements before `end` as a group of 16: the last 16 elements, moved down so that the new ones come first and the
// identity fills the rest.
template <class T>
DVM_INLINE void load_rest(Lanes<T>* in, const T* end, int64_t n, T identity) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  if constexpr (__is_same(T, float)) {
    DVM_UNROLL
    for (int p = 0; p < in->kParts; ++p) {
      const __m256i some = first_lanes(n - p * in->kPer);
      in->part[p] =
          typename Lanes<T>::V(_mm256_blendv_ps(_mm256_set1_ps(identity), _mm256_maskload_ps(end - n + p * in->kPer, some), _mm256_castsi256_ps(some)));
    }
    return;
  }
#endif
  T window[2 * kLanes];
  in->set(identity);
  in->store(window + kLanes);
  memcpy(window, end - kLanes, kLanes * sizeof(T));
  in->load(window + kLanes - n);
}

// `Units` runs of n elements, 16 <= n, `stride` apart, side by side: independent chains hide the latency of each other. False: not for F.
template <class F, class T, int Units>
DVM_INLINE bool reduce_runs_by(T* out, const T* x, int64_t n, int64_t stride, T identity) {
  Lanes<T> acc[Units], sum[Units], in;
  DVM_UNROLL
  for (int u = 0; u < Units; ++u) {
    acc[u].set(identity);
    sum[u].set(T(0));
  }
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    DVM_UNROLL
    for (int u = 0; u < Units; ++u) {
      in.load(x + u * stride + i);
      acc[u].template join<F>(in);
      if constexpr (kOfNumbers<F>) sum[u].template join<Add>(in);
    }
  }
  if (i < n) {
    DVM_UNROLL
    for (int u = 0; u < Units; ++u) {
      load_rest(&in, x + u * stride + n, n - i, identity);
      acc[u].template join<F>(in);
      if constexpr (kOfNumbers<F>) {
        load_rest(&in, x + u * stride + n, n - i, T(0));
        sum[u].template join<Add>(in);
      }
    }
  }
  if constexpr (kOfNumbers<F>) {
    DVM_UNROLL
    for (int u = 1; u < Units; ++u) sum[0].template join<Add>(sum[u]);
    const T total = join_lanes<Add, T>(sum[0]);
    if (total != total) return false;
  }
  DVM_UNROLL
  for (int u = 0; u < Units; ++u) out[u] = join_lanes<F, T>(acc[u]);
  return true;
}

template <class F, class T, int Units>
DVM_INLINE void reduce_runs(T* out, const T* x, int64_t n, int64_t stride, T identity) {
  using Quick = typename OfNumbers<F, T>::type;
  if constexpr (kOfNumbers<Quick>) {
    if (reduce_runs_by<Quick, T, Units>(out, x, n, stride, identity)) return;
  }
  reduce_runs_by<F, T, Units>(out, x, n, stride, identity);
}

// One run of kWide elements or more, in four sets of lanes. False: not for F.
template <class F, class T>
DVM_INLINE bool reduce_wide_by(T* out, const T* x, int64_t n, T identity) {
  constexpr int kSets = 4;
  Lanes<T> acc[kSets], sum[kSets], in;
  DVM_UNROLL
  for (int s = 0; s < kSets; ++s) {
    acc[s].set(identity);
    sum[s].set(T(0));
  }
  int64_t i = 0;
  for (; i + kSets * kLanes <= n; i += kSets * kLanes) {
    DVM_UNROLL
    for (int s = 0; s < kSets; ++s) {
      in.load(x + i + s * kLanes);
      acc[s].template join<F>(in);
      if constexpr (kOfNumbers<F>) sum[s].template join<Add>(in);
    }
  }
  DVM_UNROLL
  for (int s = 0; s < kSets; ++s) {
    if (i >= n) break;
    if (i + kLanes <= n) in.load(x + i);
    else load_rest(&in, x + n, n - i, identity);
    acc[s].template join<F>(in);
    if constexpr (kOfNumbers<F>) {
      if (i + kLanes > n) load_rest(&in, x + n, n - i, T(0));
      sum[s].template join<Add>(in);
    }
    i += kLanes;
  }
  DVM_UNROLL
  for (int half = kSets / 2; half > 0; half /= 2)
    for (int s = 0; s < half; ++s) {
      acc[s].template join<F>(acc[s + half]);
      if constexpr (kOfNumbers<F>) sum[s].template join<Add>(sum[s + half]);
    }
  if constexpr (kOfNumbers<F>) {
    const T total = join_lanes<Add, T>(sum[0]);
    if (total != total) return false;
  }
  *out = join_lanes<F, T>(acc[0]);
  return true;
}

template <class F, class T>
void reduce_wide(T* out, const T* x, int64_t n, T identity) {
  using Quick = typename OfNumbers<F, T>::type;
  if constexpr (kOfNumbers<Quick>) {
    if (reduce_wide_by<Quick, T>(out, x, n, identity)) return;
  }
  reduce_wide_by<F, T>(out, x, n, identity);
}

template <class F, class T>
struct Identity {
  static constexpr T value() { return T(0); }
};
template <class T>
struct Identity<Maximum, T> {
  static constexpr T value() {
    if constexpr (kIsFloat<T>) return -T(__builtin_inf());
    else return kMinOf<T>;
  }
};
template <class T>
struct Identity<Minimum, T> {
  static constexpr T value() {
    if constexpr (kIsFloat<T>) return T(__builtin_inf());
    else return kMaxOf<T>;
  }
};

template <class T>
struct Identity<Mul, T> {
  static constexpr T value() { return T(1); }
};

// Bool: SUM and MAX are `any`, MIN and PROD are `all`; the result is 0 or 1 whatever the bytes were.
struct Any {
  static DVM_INLINE uint8_t of(uint8_t a, uint8_t b) { return (a | b) != 0; }
  template <class V>
  static DVM_INLINE V of(V a, V b) {
    return a | b;
  }
};
struct All {
  static DVM_INLINE uint8_t of(uint8_t a, uint8_t b) { return (a != 0) & (b != 0); }
  template <class V>
  static DVM_INLINE V of(V a, V b) {
    return V(((a != 0) & (b != 0)) & 1);
  }
};
template <>
struct Identity<All, uint8_t> {
  static constexpr uint8_t value() { return 1; }
};

// Rows of fewer than 16 columns: the same tree without the lanes that hold nothing, over 64 rows side by side.
template <class F, class T>
void reduce_short_rows(T* out, const T* x, int64_t rows, int64_t cols) {
  constexpr int64_t kSide = 64;
  constexpr T identity = Identity<F, T>::value();
  T lane[kLanes][kSide];
  for (int64_t r0 = 0; r0 < rows; r0 += kSide) {
    const int64_t some = smaller(kSide, rows - r0);
    for (int64_t c = 0; c < cols; ++c)
      for (int64_t r = 0; r < some; ++r) lane[c][r] = F::of(identity, x[(r0 + r) * cols + c]);
    for (int64_t half = kLanes / 2; half > 0; half /= 2)
      for (int64_t l = 0; l < half && l + half < cols; ++l)
        for (int64_t r = 0; r < some; ++r) lane[l][r] = F::of(lane[l][r], lane[l + half][r]);
    memcpy(out + r0, lane[0], size_t(some) * sizeof(T));
  }
}

// Rows reduced together: as many as fit into half of 16 registers.
template <class T>
inline constexpr int kUnits = Lanes<T>::kParts >= 8 ? 1 : smaller(4, 8 / Lanes<T>::kParts);
// Rows of so many bytes go one by one: they are as fast in the caches, and memory that is read in turns at several places is not read ahead.
#if defined(__AVX2__) && !defined(__AVX512F__)
inline constexpr int64_t kLoneBytes = 384;
#else
inline constexpr int64_t kLoneBytes = INT64_MAX;
#endif
// Blocks of so many columns or more have four sets of lanes: one row alone has independent chains then.
inline constexpr int64_t kWide = kReduceWide;

template <class F, class T>
T reduce_long_row(const T* row, int64_t cols) {
  constexpr T identity = Identity<F, T>::value();
  T total = identity;
  for (int64_t c = 0; c < cols; c += kReduceBlock) {
    const int64_t width = smaller(kReduceBlock, cols - c);
    T part;
    if (width >= kWide) reduce_wide<F, T>(&part, row + c, width, identity);
    else if (width >= kLanes) reduce_runs<F, T, 1>(&part, row + c, width, 0, identity);
    else reduce_short_rows<F, T>(&part, row + c, 1, width);
    total = c == 0 ? part : F::of(total, part);
  }
  return total;
}

template <class F, class T>
void reduce_rows(void* dst, const void* src, int64_t rows, int64_t cols) {
  constexpr T identity = Identity<F, T>::value();
  auto* out = static_cast<T*>(dst);
  auto* x = static_cast<const T*>(src);
  int64_t r = 0;
  if (cols == 0) {
    for (; r < rows; ++r) out[r] = identity;
  } else if (cols < kLanes) {
    reduce_short_rows<F, T>(out, x, rows, cols);
  } else if (cols < kWide) {
    if (cols * int64_t(sizeof(T)) < kLoneBytes)
      for (; r + kUnits<T> <= rows; r += kUnits<T>) reduce_runs<F, T, kUnits<T>>(out + r, x + r * cols, cols, cols, identity);
    for (; r < rows; ++r) reduce_runs<F, T, 1>(out + r, x + r * cols, cols, cols, identity);
  } else {
    for (; r < rows; ++r) out[r] = reduce_long_row<F, T>(x + r * cols, cols);
  }
}

// Rows are joined one after the other, four per pass over the accumulators (the same order, less traffic).
template <class F, class T>
void reduce_cols(void* acc, const void* src, int64_t rows, int64_t cols) {
  auto* a = static_cast<T*>(acc);
  auto* x = static_cast<const T*>(src);
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const T *x0 = x + r * cols, *x1 = x0 + cols, *x2 = x1 + cols, *x3 = x2 + cols;
    DVM_INDEPENDENT
    for (int64_t j = 0; j < cols; ++j) a[j] = F::of(F::of(F::of(F::of(a[j], x0[j]), x1[j]), x2[j]), x3[j]);
  }
  for (; r < rows; ++r) {
    const T* x0 = x + r * cols;
    DVM_INDEPENDENT
    for (int64_t j = 0; j < cols; ++j) a[j] = F::of(a[j], x0[j]);
  }
}

}  // namespace dvm::DVM_LEVEL

// Reductions. The order of a row is part of the contract: blocks of 4096 columns; in a block, column i goes to lane i % 16, the last
// group filled up with the identity; lanes l and l + 8, then l + 4, l + 2, l + 1 are joined; block results are joined in order.
// Lanes are held in machine vectors, as many as the level needs for 16.
#pragma once
#include "kernels_elementwise.h"

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

// `Units` runs of n elements, 16 <= n, `stride` apart, side by side: independent chains hide the latency of each other.
template <class F, class T, int Units>
DVM_INLINE void reduce_runs(T* out, const T* x, int64_t n, int64_t stride, T identity) {
  Lanes<T> acc[Units], in;
  DVM_UNROLL
  for (int u = 0; u < Units; ++u) acc[u].set(identity);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    DVM_UNROLL
    for (int u = 0; u < Units; ++u) {
      in.load(x + u * stride + i);
      acc[u].template join<F>(in);
    }
  }
  if (i < n) {
    // The last group: the last 16 elements, moved down so that the new ones come first and the identity fills the rest.
    T window[2 * kLanes];
    in.set(identity);
    in.store(window + kLanes);
    DVM_UNROLL
    for (int u = 0; u < Units; ++u) {
      memcpy(window, x + u * stride + n - kLanes, kLanes * sizeof(T));
      in.load(window + kLanes - (n - i));
      acc[u].template join<F>(in);
    }
  }
  DVM_UNROLL
  for (int u = 0; u < Units; ++u) out[u] = join_lanes<F, T>(acc[u]);
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

// Rows (or blocks of one long row) reduced together: as many as fit into half of 16 registers.
template <class T>
inline constexpr int kUnits = Lanes<T>::kParts >= 8 ? 1 : smaller(4, 8 / Lanes<T>::kParts);

template <class F, class T>
T reduce_long_row(const T* row, int64_t cols) {
  constexpr T identity = Identity<F, T>::value();
  T total = identity, part[kUnits<T>];
  for (int64_t c = 0; c < cols;) {
    const int64_t left = cols - c;
    int units = 1;
    if (left >= kUnits<T> * kReduceBlock) {
      units = kUnits<T>;
      reduce_runs<F, T, kUnits<T>>(part, row + c, kReduceBlock, kReduceBlock, identity);
    } else if (left >= kLanes) {
      reduce_runs<F, T, 1>(part, row + c, smaller(kReduceBlock, left), 0, identity);
    } else {
      reduce_short_rows<F, T>(part, row + c, 1, left);
    }
    for (int u = 0; u < units; ++u) total = c == 0 && u == 0 ? part[0] : F::of(total, part[u]);
    c += units * kReduceBlock;
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
  } else if (cols <= kReduceBlock) {
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

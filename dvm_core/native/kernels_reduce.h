// Reductions. The order of a row is part of the contract: blocks of 4096 columns; in a block, column i goes to lane i % 16, the last
// group filled up with the identity; lanes l and l + 8, then l + 4, l + 2, l + 1 are joined; block results are joined in order.
// Lanes are held in machine vectors, as many as the level needs for 16.
#pragma once
#include "kernels_elementwise.h"

namespace dvm::DVM_LEVEL {

inline constexpr int64_t kReduceBlock = 4096;
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

  DVM_INLINE void set(T x) {
    for (int p = 0; p < kParts; ++p) part[p] = x - V{};  // x - 0 is x, -0 included
  }
  DVM_INLINE void load(const T* from) {
    for (int p = 0; p < kParts; ++p) memcpy(&part[p], from + p * (kLaneBytes<T> / int(sizeof(T))), sizeof(V));
  }
  DVM_INLINE void store(T* to) const {
    for (int p = 0; p < kParts; ++p) memcpy(to + p * (kLaneBytes<T> / int(sizeof(T))), &part[p], sizeof(V));
  }
  template <class F>
  DVM_INLINE void join(const Lanes& o) {
    for (int p = 0; p < kParts; ++p) part[p] = F::of(part[p], o.part[p]);
  }
};

template <class F, class T>
DVM_INLINE T join_lanes(const Lanes<T>& lanes) {
  T x[kLanes];
  lanes.store(x);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) x[l] = F::of(x[l], x[l + half]);
  return x[0];
}

// `Units` runs of n elements (n <= 4096), `stride` apart, side by side: independent chains hide the latency of each other.
template <class F, class T, int Units>
DVM_INLINE void reduce_runs(T* out, const T* x, int64_t n, int64_t stride, T identity) {
  Lanes<T> acc[Units], in;
  for (int u = 0; u < Units; ++u) acc[u].set(identity);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int u = 0; u < Units; ++u) {
      in.load(x + u * stride + i);
      acc[u].template join<F>(in);
    }
  for (int u = 0; u < Units; ++u) {
    if (i < n) {
      T rest[kLanes];
      for (int l = 0; l < kLanes; ++l) rest[l] = identity;
      for (int64_t l = 0; l < n - i; ++l) rest[l] = x[u * stride + i + l];
      in.load(rest);
      acc[u].template join<F>(in);
    }
    out[u] = join_lanes<F, T>(acc[u]);
  }
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

template <class F, class T>
void reduce_rows(void* dst, const void* src, int64_t rows, int64_t cols) {
  constexpr int kUnits = 4;
  constexpr T identity = Identity<F, T>::value();
  auto* out = static_cast<T*>(dst);
  auto* x = static_cast<const T*>(src);
  if (cols <= kReduceBlock) {
    int64_t r = 0;
    for (; r + kUnits <= rows; r += kUnits) reduce_runs<F, T, kUnits>(out + r, x + r * cols, cols, cols, identity);
    for (; r < rows; ++r) reduce_runs<F, T, 1>(out + r, x + r * cols, cols, cols, identity);
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * cols;
    T total = identity, part[kUnits];
    bool first = true;
    for (int64_t c = 0; c < cols;) {
      int units = 1;
      if (c + kUnits * kReduceBlock <= cols) {
        units = kUnits;
        reduce_runs<F, T, kUnits>(part, row + c, kReduceBlock, kReduceBlock, identity);
      } else {
        reduce_runs<F, T, 1>(part, row + c, smaller(kReduceBlock, cols - c), kReduceBlock, identity);
      }
      for (int u = 0; u < units; ++u) {
        total = first ? part[u] : F::of(total, part[u]);
        first = false;
      }
      c += units * kReduceBlock;
    }
    out[r] = total;
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

// Bool: SUM and MAX are `any`, MIN is `all`; the result is 0 or 1 whatever the bytes were.
struct Any {
  static DVM_INLINE uint8_t of(uint8_t a, uint8_t b) { return (a | b) != 0; }
  template <class V>
  static DVM_INLINE V of(V a, V b) { return a | b; }
};
struct All {
  static DVM_INLINE uint8_t of(uint8_t a, uint8_t b) { return (a != 0) & (b != 0); }
  template <class V>
  static DVM_INLINE V of(V a, V b) { return V(((a != 0) & (b != 0)) & 1); }
};
template <>
struct Identity<All, uint8_t> {
  static constexpr uint8_t value() { return 1; }
};

}  // namespace dvm::DVM_LEVEL

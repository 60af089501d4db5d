// Statistics and NaN / infinity checks of a run of elements.
#pragma once
#include "kernels_cast.h"
#include "kernels_reduce.h"

namespace dvm::DVM_LEVEL {

// Exponent bits of a float and where they are, for classifying without floating point.
template <class T>
struct Layout;
template <>
struct Layout<float> {
  using U = uint32_t;
  static constexpr U magnitude = 0x7fffffffu, infinity = 0x7f800000u;
  static constexpr int shift = 23, bias = 127;
};
template <>
struct Layout<double> {
  using U = uint64_t;
  static constexpr U magnitude = 0x7fffffffffffffffu, infinity = 0x7ff0000000000000u;
  static constexpr int shift = 52, bias = 1023;
};
template <>
struct Layout<Half> {
  using U = uint16_t;
  static constexpr U magnitude = 0x7fff, infinity = 0x7c00;
};
template <>
struct Layout<Brain> {
  using U = uint16_t;
  static constexpr U magnitude = 0x7fff, infinity = 0x7f80;
};

template <class T>
int check(const void* src, int64_t n) {
  using L = Layout<T>;
  using U = typename L::U;
  auto* x = static_cast<const T*>(src);
  U nan = 0, inf = 0;
  for (int64_t i = 0; i < n; ++i) {
    const U m = U(bits_as<U>(x[i]) & L::magnitude);
    nan = U(nan | U(m > L::infinity));
    inf = U(inf | U(m == L::infinity));
  }
  return int(nan) | int(inf) << 1;
}
// Integers have neither.
inline int check_nothing(const void*, int64_t) { return 0; }

inline constexpr int64_t kStatsBlock = 1024;

// Bin of a magnitude's bits: its exponent, bin 1 beginning at 2**-24; 32 if it is not finite.
template <class T>
DVM_INLINE uint8_t bin_of(typename Layout<T>::U magnitude) {
  using L = Layout<T>;
  const int32_t e = int32_t(magnitude >> L::shift) - L::bias + 25;
  const int32_t bin = e < 0 ? 0 : e > 31 ? 31 : e;
  return uint8_t(magnitude >= L::infinity ? 32 : bin);
}

// How often each bin below 32 occurs in n bins, of which there is room for kStatsBlock. Few different bins, as of numbers of about one size, are
// counted one after the other, 32 elements in an instruction; many in one pass, into four tables, or runs of one bin would wait for each other.
inline void count_bins(uint64_t* counts, uint8_t* bin, int64_t n) {
  constexpr int64_t kLanes = 32, kFew = 20;
  using Bytes [[gnu::vector_size(kLanes)]] = uint8_t;
  static_assert(kStatsBlock % kLanes == 0 && kStatsBlock / kLanes < 256);
  uint32_t present = 0;
  for (int64_t i = 0; i < n; ++i) present |= 1u << (bin[i] & 31);
  if (__builtin_popcount(present) > kFew) {
    uint16_t tables[4][33] = {};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      for (int64_t t = 0; t < 4; ++t) ++tables[t][bin[i + t]];
    }
    for (; i < n; ++i) ++tables[0][bin[i]];
    for (int b = 0; b < 32; ++b) counts[b] = uint64_t(tables[0][b]) + tables[1][b] + tables[2][b] + tables[3][b];
    return;
  }
  const int64_t padded = (n + kLanes - 1) / kLanes * kLanes;
  for (int64_t i = n; i < padded; ++i) bin[i] = 255;
  for (; present; present &= present - 1) {
    const int b = __builtin_ctz(present);
    Bytes lanes = {};
    for (int64_t i = 0; i < padded; i += kLanes) {
      Bytes some;
      __builtin_memcpy(&some, bin + i, kLanes);
      lanes -= Bytes(some == uint8_t(b));  // a lane that is equal is -1
    }
    for (int64_t l = 0; l < kLanes; ++l) counts[b] += lanes[l];
  }
}

// Sum of n >= 1 values in the order of a row reduction.
inline double sum_of(const double* x, int64_t n) {
  double total;
  reduce_rows<Add, double>(&total, x, 1, n);
  return total;
}

// One block of at most kStatsBlock elements; mean first, then squared deviations. Every pass is a loop of its own that vectorises.
template <class T>
void stats_block(Stats* s, const T* x, int64_t n) {
  if (n <= 0) return;
  using L = Layout<T>;
  using U = typename L::U;
  U magnitude[kStatsBlock];
  uint8_t bin[kStatsBlock];
  int32_t nan = 0, inf = 0, negative = 0, zero = 0;
  for (int64_t i = 0; i < n; ++i) {
    const U u = bits_as<U>(x[i]), m = U(u & L::magnitude);
    magnitude[i] = m;
    nan += m > L::infinity;
    inf += m == L::infinity;
    negative += (m == L::infinity) & (u != m);
    zero += m == 0;
  }
  for (int64_t i = 0; i < n; ++i) bin[i] = bin_of<T>(magnitude[i]);

  Stats block;
  block.count = n;
  block.finite = n - nan - inf;
  block.nan = nan;
  block.zero = zero;
  block.pos_inf = inf - negative;
  block.neg_inf = negative;
  count_bins(block.histogram, bin, n);
  if (block.finite > 0) {
    T edge[kStatsBlock], least, most;
    double value[kStatsBlock], size[kStatsBlock];
    for (int64_t i = 0; i < n; ++i) edge[i] = magnitude[i] < L::infinity ? x[i] : T(__builtin_inf());
    reduce_rows<Minimum, T>(&least, edge, 1, n);
    for (int64_t i = 0; i < n; ++i) edge[i] = magnitude[i] < L::infinity ? x[i] : -T(__builtin_inf());
    reduce_rows<Maximum, T>(&most, edge, 1, n);
    for (int64_t i = 0; i < n; ++i) value[i] = double(magnitude[i] < L::infinity ? x[i] : T(0));
    for (int64_t i = 0; i < n; ++i) size[i] = value[i] < 0 ? -value[i] : value[i];
    const double mean = sum_of(value, n) / double(block.finite);
    for (int64_t i = 0; i < n; ++i) {
      const double d = magnitude[i] < L::infinity ? value[i] - mean : 0.0;
      value[i] = d * d;
    }
    block.min = double(least);
    block.max = double(most);
    block.mean = mean;
    block.m2 = sum_of(value, n);
    block.abs_mean = sum_of(size, n) / double(block.finite);
  }
  stats_merge(s, block);
}

// `Through`: the float type the elements are looked at in.
template <class T, class Through>
void stats(Stats* out, const void* src, int64_t n) {
  auto* x = static_cast<const T*>(src);
  *out = Stats();
  for (int64_t i = 0; i < n; i += kStatsBlock) {
    const int64_t some = smaller(kStatsBlock, n - i);
    if constexpr (kIsFloat<T>) {
      stats_block<T>(out, x + i, some);
    } else {
      Through block[kStatsBlock];
      for (int64_t j = 0; j < some; ++j) block[j] = Cast<T, Through>::of(x[i + j]);
      stats_block<Through>(out, block, some);
    }
  }
}

}  // namespace dvm::DVM_LEVEL

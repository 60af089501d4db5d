// Statistics and NaN / infinity checks of a run of elements.
#pragma once
#include "kernels_cast.h"

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

// One block of at most kStatsBlock elements, all finite ones in two passes (mean, then squared deviations), 16 lanes like a reduction.
template <class T>
void stats_block(Stats* s, const T* x, int64_t n) {
  using L = Layout<T>;
  using U = typename L::U;
  constexpr int kLanesOf = 16;
  double sum[kLanesOf] = {}, low[kLanesOf], high[kLanesOf], squares[kLanesOf] = {};
  for (int l = 0; l < kLanesOf; ++l) low[l] = __builtin_inf(), high[l] = -__builtin_inf();
  int32_t nan = 0, inf = 0, negative = 0, zero = 0;
  uint8_t bin[kStatsBlock];
  for (int64_t i = 0; i < n; ++i) {
    const U u = bits_as<U>(x[i]), m = U(u & L::magnitude);
    nan += m > L::infinity;
    inf += m == L::infinity;
    negative += (m == L::infinity) & (u != m);
    zero += m == 0;
    const int e = int(m >> L::shift) - L::bias + 25;  // bin 1 begins at 2**-24
    bin[i] = uint8_t(m >= L::infinity ? 32 : e < 0 ? 0 : e > 31 ? 31 : e);
  }
  for (int64_t i = 0; i < n; i += kLanesOf) {
    const int lanes = int(smaller(int64_t(kLanesOf), n - i));
    for (int l = 0; l < lanes; ++l) {
      const bool finite = bin[i + l] < 32;
      const double v = double(x[i + l]), kept = finite ? v : 0.0;
      sum[l] += kept;
      low[l] = finite && v < low[l] ? v : low[l];
      high[l] = finite && v > high[l] ? v : high[l];
    }
  }
  const int64_t finite = n - nan - inf;
  Stats block;
  block.count = n;
  block.finite = finite;
  block.nan = nan;
  block.zero = zero;
  block.pos_inf = inf - negative;
  block.neg_inf = negative;
  uint64_t counts[33] = {};
  for (int64_t i = 0; i < n; ++i) ++counts[bin[i]];
  for (int b = 0; b < 32; ++b) block.histogram[b] = counts[b];
  if (finite > 0) {
    double total = 0, least = low[0], most = high[0], m2 = 0;
    for (int l = 0; l < kLanesOf; ++l) {
      total += sum[l];
      least = low[l] < least ? low[l] : least;
      most = high[l] > most ? high[l] : most;
    }
    block.mean = total / double(finite);
    for (int64_t i = 0; i < n; i += kLanesOf) {
      const int lanes = int(smaller(int64_t(kLanesOf), n - i));
      for (int l = 0; l < lanes; ++l) {
        const double d = bin[i + l] < 32 ? double(x[i + l]) - block.mean : 0.0;
        squares[l] += d * d;
      }
    }
    for (int l = 0; l < kLanesOf; ++l) m2 += squares[l];
    block.min = least;
    block.max = most;
    block.m2 = m2;
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

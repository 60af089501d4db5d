// Random numbers by counting: Philox 4x32 with 10 rounds (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011).
// The words belonging to an element depend on seed, offset and its number alone: not on tiles, cores, levels or what was drawn before.
#pragma once
#include "kernels_common.h"

namespace dvm::DVM_LEVEL {

// out[4 i .. 4 i + 3] = the words of counter (first + i, offset) under the key `seed`, for kCounters counters.
inline constexpr int kCounters = 64;
DVM_INLINE void random_words(uint32_t* out, uint64_t seed, uint64_t offset, uint64_t first) {
  uint32_t c[4][kCounters], next[4][kCounters];
  for (int i = 0; i < kCounters; ++i) {
    c[0][i] = uint32_t(first + uint64_t(i));
    c[1][i] = uint32_t((first + uint64_t(i)) >> 32);
    c[2][i] = uint32_t(offset);
    c[3][i] = uint32_t(offset >> 32);
  }
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    DVM_INDEPENDENT
    for (int i = 0; i < kCounters; ++i) {
      const uint64_t p0 = uint64_t(c[0][i]) * 0xD2511F53u, p1 = uint64_t(c[2][i]) * 0xCD9E8D57u;
      next[0][i] = uint32_t(p1 >> 32) ^ c[1][i] ^ k0;
      next[1][i] = uint32_t(p1);
      next[2][i] = uint32_t(p0 >> 32) ^ c[3][i] ^ k1;
      next[3][i] = uint32_t(p0);
    }
    memcpy(c, next, sizeof c);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int i = 0; i < kCounters; ++i)
    for (int w = 0; w < 4; ++w) out[4 * i + w] = c[w][i];
}

// Floats are uniform over [0, 1): the upper bits of the words, as many as the mantissa holds. Integers are all bits.
struct Uniform {
  static DVM_INLINE float of(const uint32_t* w, float) { return float(w[0] >> 8) * 0x1p-24f; }
  static DVM_INLINE double of(const uint32_t* w, double) { return double((uint64_t(w[1]) << 32 | w[0]) >> 11) * 0x1p-53; }
  static DVM_INLINE int32_t of(const uint32_t* w, int32_t) { return int32_t(w[0]); }
  static DVM_INLINE int64_t of(const uint32_t* w, int64_t) { return int64_t(uint64_t(w[1]) << 32 | w[0]); }
};

// Elements first .. first + n - 1 of the sequence.
template <class T>
void random_numbers(void* dst, uint64_t seed, uint64_t offset, int64_t first, int64_t n) {
  constexpr int kWords = int(sizeof(T) / 4), kBlock = 4 * kCounters / kWords;  // words of an element, elements of a call
  auto* d = static_cast<T*>(dst);
  uint32_t words[4 * kCounters];
  for (int64_t i = 0; i < n;) {
    const int64_t at = first + i, begin = at % kBlock, count = smaller(kBlock - begin, n - i);
    random_words(words, seed, offset, uint64_t(at / kBlock) * kCounters);
    DVM_INDEPENDENT
    for (int64_t j = 0; j < count; ++j) d[i + j] = Uniform::of(words + (begin + j) * kWords, T{});
    i += count;
  }
}

}  // namespace dvm::DVM_LEVEL

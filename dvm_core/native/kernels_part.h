// One machine vector of floats, what belongs to as many elements, and the first few of one in memory: a loop's end costs no call, and no
// byte beyond the end is read or written.
#pragma once
#include "kernels_common.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace dvm::DVM_LEVEL {

inline constexpr int kHalves = kVectorBytes / 4;
typedef float Floats __attribute__((vector_size(kVectorBytes)));
typedef uint32_t Words __attribute__((vector_size(kVectorBytes)));
typedef int32_t Mask __attribute__((vector_size(kVectorBytes)));
typedef uint16_t Shorts __attribute__((vector_size(kVectorBytes / 2)));
typedef uint8_t Bytes __attribute__((vector_size(kVectorBytes / 4)));

#if defined(__AVX2__) && !defined(__AVX512F__)
// AVX2 has masks for words only, and storing with one takes a dozen cycles: what is shorter goes piece by piece, by the bits of n.
DVM_INLINE __m256i first_lanes(int64_t n) { return _mm256_cmpgt_epi32(_mm256_set1_epi32(int(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)); }

template <class Piece, class T>
DVM_INLINE uint64_t piece(const T* from) {
  Piece p;
  memcpy(&p, from, sizeof(p));
  return p;
}
// n < 4 of two bytes.
DVM_INLINE uint64_t few_shorts(const uint16_t* from, int64_t n) {
  uint64_t v = 0;
  if (n & 2) v = piece<uint32_t>(from);
  if (n & 1) v |= uint64_t(from[n & 2]) << 16 * (n & 2);
  return v;
}
// n < 8 of the bytes, lowest first.
DVM_INLINE void put_bytes(char* to, uint64_t v, int64_t n) {
  if (n & 4) {
    memcpy(to, &v, 4);
    to += 4;
    v >>= 32;
  }
  if (n & 2) {
    memcpy(to, &v, 2);
    to += 2;
    v >>= 16;
  }
  if (n & 1) *to = char(v);
}
#endif

// The first n elements of a vector, 0 < n <= kHalves; the others are 0 and are not written.
template <class V, class T>
DVM_INLINE V load_some(const T* from, int64_t n) {
  V v{};
  if (n == kHalves) {
    memcpy(&v, from, sizeof(V));
    return v;
  }
#if defined(__AVX512BW__)
  return V(_mm256_maskz_loadu_epi16(__mmask16((1u << n) - 1), from));
#elif defined(__AVX2__)
  static_assert(sizeof(T) == 2 && sizeof(V) == 16);
  const auto* x = reinterpret_cast<const uint16_t*>(from);
  const uint64_t low = n & 4 ? piece<uint64_t>(x) : few_shorts(x, n);
  return V(_mm_set_epi64x(int64_t(n & 4 ? few_shorts(x + 4, n & 3) : 0), int64_t(low)));
#else
  memcpy(&v, from, size_t(n) * sizeof(T));
  return v;
#endif
}
template <class V, class T>
DVM_INLINE void store_some(T* to, V v, int64_t n) {
  if (n == kHalves) return void(memcpy(to, &v, sizeof(V)));
#if defined(__AVX512BW__)
  if constexpr (sizeof(T) == 2) return _mm256_mask_storeu_epi16(to, __mmask16((1u << n) - 1), __m256i(v));
  else if constexpr (sizeof(T) == 1) return _mm_mask_storeu_epi8(to, __mmask16((1u << n) - 1), __m128i(v));
#elif defined(__AVX2__)
  auto* x = reinterpret_cast<char*>(to);
  if constexpr (sizeof(T) == 1) return put_bytes(x, bits_as<uint64_t>(v), n);
  else if constexpr (sizeof(T) == 2) {
    uint64_t half = uint64_t(_mm_cvtsi128_si64(__m128i(v)));
    if (n & 4) {
      memcpy(x, &half, 8);
      x += 8;
      half = uint64_t(_mm_extract_epi64(__m128i(v), 1));
    }
    return put_bytes(x, half, 2 * (n & 3));
  }
#endif
  memcpy(to, &v, size_t(n) * sizeof(T));
}

// The same of floats.
DVM_INLINE Floats load_some_floats(const float* from, int64_t n) {
#if defined(__AVX512F__)
  return Floats(_mm512_maskz_loadu_ps(__mmask16((1u << n) - 1), from));
#elif defined(__AVX2__)
  return Floats(_mm256_maskload_ps(from, first_lanes(n)));
#else
  Floats v{};
  memcpy(&v, from, size_t(n) * sizeof(float));
  return v;
#endif
}
DVM_INLINE void store_some_floats(float* to, Floats v, int64_t n) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(to, __mmask16((1u << n) - 1), __m512(v));
#elif defined(__AVX2__)
  if (n == kHalves) return _mm256_storeu_ps(to, __m256(v));
  __m128 part = _mm256_castps256_ps128(__m256(v));
  if (n & 4) {
    _mm_storeu_ps(to, part);
    to += 4;
    part = _mm256_extractf128_ps(__m256(v), 1);
  }
  if (n & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(to), part);
    to += 2;
    part = _mm_movehl_ps(part, part);
  }
  if (n & 1) _mm_store_ss(to, part);
#else
  memcpy(to, &v, size_t(n) * sizeof(float));
#endif
}

}  // namespace dvm::DVM_LEVEL

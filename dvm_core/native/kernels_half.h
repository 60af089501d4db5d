// The 16-bit floats. Every op widens its operands to float32, computes there and rounds its result once, to nearest even: the bits are those
// of the float32 op rounded. Cheap ops do it vector by vector, in registers; the others go through blocks of float32 that stay in the
// first-level cache, with the float32 loops as they are. bfloat16 is converted by integer arithmetic at every level (the processor's own
// instruction drops denormals), float16 by the processor where the level has F16C and else by the same integer formulas.
#pragma once
#include "kernels_cast.h"
#include "kernels_elementwise.h"
#include "kernels_part.h"

namespace dvm::DVM_LEVEL {

// The compiler has no short form for these two.
DVM_INLINE Words words_of(Shorts a) {
#if defined(__AVX512F__)
  return Words(_mm512_cvtepu16_epi32(__m256i(a)));
#elif defined(__AVX2__)
  return Words(_mm256_cvtepu16_epi32(__m128i(a)));
#else
  return __builtin_convertvector(a, Words);
#endif
}
// Of words below 2**16.
DVM_INLINE Shorts shorts_of(Words a) {
#if defined(__AVX512F__)
  return Shorts(_mm512_cvtepi32_epi16(__m512i(a)));
#elif defined(__AVX2__)
  return Shorts(_mm_packus_epi32(_mm256_castsi256_si128(__m256i(a)), _mm256_extracti128_si256(__m256i(a), 1)));
#else
  return __builtin_convertvector(a, Shorts);
#endif
}

template <class H>
struct HalfVector;
template <>
struct HalfVector<Brain> {
  static DVM_INLINE Floats widen(Shorts a) { return brain_to_float<Floats>(words_of(a)); }
  static DVM_INLINE Shorts narrow(Floats a) { return shorts_of(float_to_brain<Words>(a)); }
};
template <>
struct HalfVector<Half> {
#if defined(__AVX512F__)
  static DVM_INLINE Floats widen(Shorts a) { return Floats(_mm512_cvtph_ps(__m256i(a))); }
  static DVM_INLINE Shorts narrow(Floats a) {
    const __mmask16 number = _mm512_cmp_ps_mask(__m512(a), __m512(a), _CMP_ORD_Q);
    return Shorts(_mm512_mask_cvtps_ph(_mm256_set1_epi16(kHalfNan), number, __m512(a), _MM_FROUND_TO_NEAREST_INT));
  }
#elif defined(__F16C__)
  static DVM_INLINE Floats widen(Shorts a) { return Floats(_mm256_cvtph_ps(__m128i(a))); }
  static DVM_INLINE Shorts narrow(Floats a) {
    const Floats number = a == a ? a : Floats{} + __builtin_nanf("");
    return Shorts(_mm256_cvtps_ph(__m256(number), _MM_FROUND_TO_NEAREST_INT));
  }
#else
  static DVM_INLINE Floats widen(Shorts a) { return half_to_float<Floats>(words_of(a)); }
  static DVM_INLINE Shorts narrow(Floats a) { return shorts_of(float_to_half<Words>(a)); }
#endif
};

// ---- vector by vector -----------------------------------------------------------------------------------------------------------------

template <class H>
DVM_INLINE Shorts rounded(Floats x) {
  return HalfVector<H>::narrow(x);
}
template <class H>
DVM_INLINE Bytes rounded(Mask x) {
  return __builtin_convertvector(x & 1, Bytes);
}

// d = f(vector number i) over n elements; `Result` is what one of them is in memory.
template <class H, class Result, class Of>
DVM_INLINE void half_vectors(void* dst, int64_t n, Of of) {
  auto* d = static_cast<Result*>(dst);
  int64_t i = 0;
  for (; i + kHalves <= n; i += kHalves) store_some(d + i, rounded<H>(of(i, kHalves)), kHalves);
  if (i < n) store_some(d + i, rounded<H>(of(i, n - i)), n - i);
}

// What an op over vectors makes, as it is in memory: halves, or bool bytes of a mask.
template <class H, class V>
struct InMemory {
  using type = H;
};
template <class H>
struct InMemory<H, Mask> {
  using type = uint8_t;
};
template <class F, class H>
using HalfItem = typename InMemory<H, decltype(F::of(Floats{}, Floats{}))>::type;

template <class F, class H>
void map_half(void* dst, const void* a, const void* b, int64_t n) {
  auto *x = static_cast<const H*>(a), *y = static_cast<const H*>(b);
  half_vectors<H, HalfItem<F, H>>(dst, n, [&](int64_t i, int64_t some) {
    return F::of(HalfVector<H>::widen(load_some<Shorts>(x + i, some)), HalfVector<H>::widen(load_some<Shorts>(y + i, some)));
  });
}

// Swapped: the value of the row stands on the left.
template <class F, class H, bool Swapped>
void map_half_rows(void* dst, const void* a, const void* s, int64_t rows, int64_t cols) {
  using R = HalfItem<F, H>;
  if (cols == 1) return Swapped ? map_half<F, H>(dst, s, a, rows) : map_half<F, H>(dst, a, s, rows);
  for (int64_t r = 0; r < rows; ++r) {
    auto* x = static_cast<const H*>(a) + r * cols;
    const Floats y = Cast<H, float>::of(static_cast<const H*>(s)[r]) - Floats{};  // x - 0 is x
    half_vectors<H, R>(static_cast<R*>(dst) + r * cols, cols, [&](int64_t i, int64_t some) {
      const Floats v = HalfVector<H>::widen(load_some<Shorts>(x + i, some));
      return Swapped ? F::of(y, v) : F::of(v, y);
    });
  }
}

// On the bits alone.
template <class H>
struct HalfNeg {
  static DVM_INLINE H of(H a) { return H{uint16_t(a.bits ^ 0x8000u)}; }
};
template <class H>
struct HalfAbs {
  static DVM_INLINE H of(H a) { return H{uint16_t(a.bits & 0x7fffu)}; }
};
template <class H>
inline constexpr uint16_t kInfinity = __is_same(H, Half) ? 0x7c00u : 0x7f80u;
template <class H>
struct HalfIsFinite {
  static DVM_INLINE uint8_t of(H a) { return (a.bits & 0x7fffu) < kInfinity<H>; }
};
template <class H>
struct HalfIsNan {
  static DVM_INLINE uint8_t of(H a) { return (a.bits & 0x7fffu) > kInfinity<H>; }
};
template <class H>
struct HalfIsInf {
  static DVM_INLINE uint8_t of(H a) { return (a.bits & 0x7fffu) == kInfinity<H>; }
};

// ---- through float32 ------------------------------------------------------------------------------------------------------------------

inline constexpr int64_t kHalfBlock = 1024;

template <class H>
void widen(void* dst, const void* a, int64_t n) {
  auto* d = static_cast<float*>(dst);
  auto* x = static_cast<const H*>(a);
  int64_t i = 0;
  for (; i + kHalves <= n; i += kHalves) {
    const Floats v = HalfVector<H>::widen(load_some<Shorts>(x + i, kHalves));
    memcpy(d + i, &v, sizeof(v));
  }
  if (i < n) {
    const Floats v = HalfVector<H>::widen(load_some<Shorts>(x + i, n - i));
    store_some_floats(d + i, v, n - i);
  }
}

template <class H>
void narrow(void* dst, const void* a, int64_t n) {
  auto* x = static_cast<const float*>(a);
  half_vectors<H, H>(dst, n, [&](int64_t i, int64_t some) {
    if (some < kHalves) return load_some_floats(x + i, some);
    Floats v;
    memcpy(&v, x + i, sizeof(v));
    return v;
  });
}

// Blocks of at most kHalfBlock elements: f(first element, how many).
template <class F>
DVM_INLINE void in_half_blocks(int64_t n, F f) {
  for (int64_t i = 0; i < n; i += kHalfBlock) f(i, smaller(kHalfBlock, n - i));
}

template <class H, Unary Of>
void unary_through(void* dst, const void* a, int64_t n) {
  float x[kHalfBlock];
  in_half_blocks(n, [&](int64_t i, int64_t some) {
    widen<H>(x, static_cast<const H*>(a) + i, some);
    Of(x, x, some);
    narrow<H>(static_cast<H*>(dst) + i, x, some);
  });
}

template <class H, Binary Of>
void binary_through(void* dst, const void* a, const void* b, int64_t n) {
  float x[kHalfBlock], y[kHalfBlock];
  in_half_blocks(n, [&](int64_t i, int64_t some) {
    widen<H>(x, static_cast<const H*>(a) + i, some);
    widen<H>(y, static_cast<const H*>(b) + i, some);
    Of(x, x, y, some);
    narrow<H>(static_cast<H*>(dst) + i, x, some);
  });
}

// One value per row; rows of one element are the plain loop `Of`, with the sides as they stand.
template <class H, BinaryRow Rows, Binary Of, bool Swapped>
void rows_through(void* dst, const void* a, const void* s, int64_t rows, int64_t cols) {
  if (cols == 1) return Swapped ? binary_through<H, Of>(dst, s, a, rows) : binary_through<H, Of>(dst, a, s, rows);
  float x[kHalfBlock];
  for (int64_t r = 0; r < rows; ++r) {
    const float y = Cast<H, float>::of(static_cast<const H*>(s)[r]);
    in_half_blocks(cols, [&](int64_t i, int64_t some) {
      widen<H>(x, static_cast<const H*>(a) + r * cols + i, some);
      Rows(x, x, &y, 1, some);
      narrow<H>(static_cast<H*>(dst) + r * cols + i, x, some);
    });
  }
}

// Casts in two steps, exact where the first loses nothing (or is rounded to odd, see kernels_cast.h). dst may be a where both have one size.
template <class From, class To, Unary First, Unary Second>
void cast_through(void* dst, const void* a, int64_t n) {
  float x[kHalfBlock];
  in_half_blocks(n, [&](int64_t i, int64_t some) {
    First(x, static_cast<const From*>(a) + i, some);
    Second(static_cast<To*>(dst) + i, x, some);
  });
}

}  // namespace dvm::DVM_LEVEL

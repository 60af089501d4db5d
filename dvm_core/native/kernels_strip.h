// What strips of every kind read, write and compute with: vectors of float32, in memory as float32 or bfloat16. The kinds are
//   steps  (kernels_steps.h) any elementwise instructions, each a function that ends by calling the next one's;
//   rows   (kernels_rows.h) the sequences that normalisations and softmax consist of, row sums among them, compiled as one loop each;
//   updates (kernels_update.h) of optimizers.
// Bits: each instruction computes its scalar function on vectors and rounds to its dtype, and reductions keep the order of kernels_reduce.h.
#pragma once
#include "kernels_half.h"
#include "kernels_reduce.h"
#include "strip_kernels.h"

namespace dvm::DVM_LEVEL {

// To bfloat16 and back without leaving the lanes of 32 bits; what is rounded has nothing below its upper half.
template <class T>
DVM_INLINE Floats strip_rounded(Floats v) {
  if constexpr (sizeof(T) == 4) {
    return v;
  } else {
    const Words u = bits_as<Words>(v);
    const Words nearest = (u + 0x7fffu + ((u >> 16) & 1u)) & 0xffff0000u;
    return bits_as<Floats>(v != v ? Words{} + (uint32_t(kBrainNan) << 16) : nearest);
  }
}
DVM_INLINE Shorts strip_short(Floats rounded) { return shorts_of(bits_as<Words>(rounded) >> 16); }

// Elements of T in memory as float32, and rounded ones back.
template <class T>
DVM_INLINE Floats strip_load(const void* from, int64_t i) {
  if constexpr (sizeof(T) == 4) {
    Floats v;
    memcpy(&v, static_cast<const float*>(from) + i, sizeof(v));
    return v;
  } else {
    return HalfVector<T>::widen(load_some<Shorts>(static_cast<const T*>(from) + i, kHalves));
  }
}
template <class T>
DVM_INLINE void strip_store(void* to, int64_t i, Floats v) {
  if constexpr (sizeof(T) == 4) memcpy(static_cast<float*>(to) + i, &v, sizeof(v));
  else store_some(static_cast<T*>(to) + i, strip_short(v), kHalves);
}
template <class T>
DVM_INLINE Floats strip_one(const void* from) {  // x - 0 is x
  if constexpr (sizeof(T) == 4) return *static_cast<const float*>(from) - Floats{};
  else return Cast<T, float>::of(*static_cast<const T*>(from)) - Floats{};
}

// The first n elements of a vector, 0 < n <= kHalves, the others 0; and back.
template <class T>
DVM_INLINE Floats strip_load_some(const void* from, int64_t i, int64_t n) {
  if constexpr (sizeof(T) == 4) return load_some_floats(static_cast<const float*>(from) + i, n);
  else return HalfVector<T>::widen(load_some<Shorts>(static_cast<const T*>(from) + i, n));
}
template <class T>
DVM_INLINE void strip_store_some(void* to, int64_t i, Floats v, int64_t n) {
  if constexpr (sizeof(T) == 4) store_some_floats(static_cast<float*>(to) + i, v, n);
  else store_some(static_cast<T*>(to) + i, strip_short(v), n);
}

// Of two NaNs the processor keeps the first operand's, and the compiler may exchange what it adds or multiplies. Here the order is fixed, to
// what the loops over single instructions do: one value for many elements comes first, else the right operand.
#if defined(__AVX512F__)
#define DVM_IN_ORDER(name, first, second, to) asm(name " %2, %1, %0" : "=v"(to) : "v"(first), "v"(second))
#elif defined(__AVX__)
#define DVM_IN_ORDER(name, first, second, to) asm(name " %2, %1, %0" : "=x"(to) : "x"(first), "x"(second))
#endif
template <class F, bool LeftIsOne>
DVM_INLINE Floats strip_two(Floats a, Floats b) {
#if defined(DVM_IN_ORDER)
  Floats z;
  if constexpr (__is_same(F, Add)) {
    DVM_IN_ORDER("vaddps", LeftIsOne ? a : b, LeftIsOne ? b : a, z);
    return z;
  } else if constexpr (__is_same(F, Mul)) {
    DVM_IN_ORDER("vmulps", LeftIsOne ? a : b, LeftIsOne ? b : a, z);
    return z;
  }
#endif
  return F::of(a, b);
}
#if defined(__AVX512F__)
// Exp::of, bit for bit: scaling rounds once, as the last of its two products does, and what is far outside is brought near first, where e to
// the power of it is 0 or infinite already.
DVM_INLINE Floats strip_exp(Floats a) {
  const __m512 x = _mm512_min_ps(_mm512_set1_ps(89.0f), _mm512_max_ps(_mm512_set1_ps(-105.0f), __m512(a)));
  const __m512 shift = _mm512_set1_ps(0x1.8p23f);
  const __m512 n = _mm512_sub_ps(_mm512_fmadd_ps(x, _mm512_set1_ps(0x1.715476p0f), shift), shift);
  const __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(kLn2Low), _mm512_fnmadd_ps(n, _mm512_set1_ps(kLn2High), x));
  __m512 p = _mm512_set1_ps(Exp::kPolynomial[4]);
  DVM_UNROLL
  for (int k = 3; k >= 0; --k) p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(Exp::kPolynomial[k]));
  p = _mm512_add_ps(_mm512_set1_ps(1.0f), _mm512_fmadd_ps(_mm512_mul_ps(r, r), p, r));
  const __m512 y = _mm512_scalef_ps(p, n);
  return Floats(_mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(__m512(a), __m512(a), _CMP_UNORD_Q), __m512(a)));
}
#elif defined(__AVX2__)
// The same with half of the power of two added to the exponent, which is exact: the only product is the one that rounds.
DVM_INLINE Floats strip_exp(Floats a) {
  const __m256 x = _mm256_min_ps(_mm256_set1_ps(89.0f), _mm256_max_ps(_mm256_set1_ps(-105.0f), __m256(a)));
  const __m256 shift = _mm256_set1_ps(0x1.8p23f);
  const __m256 t = _mm256_fmadd_ps(x, _mm256_set1_ps(0x1.715476p0f), shift), n = _mm256_sub_ps(t, shift);
  const __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(kLn2Low), _mm256_fnmadd_ps(n, _mm256_set1_ps(kLn2High), x));
  __m256 p = _mm256_set1_ps(Exp::kPolynomial[4]);
  DVM_UNROLL
  for (int k = 3; k >= 0; --k) p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(Exp::kPolynomial[k]));
  p = _mm256_add_ps(_mm256_set1_ps(1.0f), _mm256_fmadd_ps(_mm256_mul_ps(r, r), p, r));
  // The bits of `shift` leave nothing behind where they are moved to the exponent's.
  const __m256i whole = _mm256_slli_epi32(_mm256_castps_si256(t), 23), half = _mm256_slli_epi32(_mm256_srai_epi32(_mm256_castps_si256(t), 1), 23);
  const __m256i other = _mm256_add_epi32(_mm256_sub_epi32(whole, half), _mm256_set1_epi32(127 << 23));
  const __m256 y = _mm256_mul_ps(_mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), half)), _mm256_castsi256_ps(other));
  return Floats(_mm256_blendv_ps(y, __m256(a), _mm256_cmp_ps(__m256(a), __m256(a), _CMP_UNORD_Q)));
}
#endif

// N vectors, each of their elements the function of what it was.
template <class F, int N>
DVM_INLINE void strip_each(Floats* v) {
#if defined(__AVX2__)
  if constexpr (__is_same(F, Exp)) {
    DVM_UNROLL
    for (int k = 0; k < N; ++k) v[k] = strip_exp(v[k]);
    return;
  } else if constexpr (__is_same(F, Sigmoid)) {
    DVM_UNROLL
    for (int k = 0; k < N; ++k) {
      const Floats e = strip_exp(Floats(bits_as<Words>(v[k]) | 0x80000000u));
      v[k] = (v[k] < 0.0f ? e : Floats{} + 1.0f) / (1.0f + e);
    }
    return;
  }
#endif
  alignas(kVectorBytes) float z[N * kHalves];
  memcpy(z, v, sizeof(z));
  DVM_INDEPENDENT
  for (int k = 0; k < N * kHalves; ++k) z[k] = F::of(z[k]);
  memcpy(v, z, sizeof(z));
}

}  // namespace dvm::DVM_LEVEL

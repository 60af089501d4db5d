// What every kernel header shares. All of it lives in a namespace of the SIMD level: two levels must never share an inline function,
// or the linker would keep one compiled for the wrong processor. For the same reason no template of the standard library is used here.
//
// Kernels are plain loops over scalar functions. The compiler vectorises them for its level; because each scalar function is a fixed
// sequence of IEEE operations (no contraction, no reassociation), vector body, scalar tail and every level give the same bits.
// A destination may be an operand (same address) if both have the same item size; other overlaps are not allowed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels.h"

#ifndef DVM_LEVEL
#error "DVM_LEVEL must name the SIMD level this file is compiled for"
#endif

#define DVM_INLINE inline __attribute__((always_inline))

// The iterations of the next loop do not depend on each other (in-place operands included).
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"  // integer powers and calls of the C library have no vector form
#define DVM_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define DVM_INDEPENDENT _Pragma("GCC ivdep")
#endif

// The next loop has a small constant count and is written out (arrays of vectors then live in registers).
#if defined(__clang__)
#define DVM_UNROLL _Pragma("clang loop unroll(full)")
#else
#define DVM_UNROLL _Pragma("GCC unroll 32")
#endif

namespace dvm::DVM_LEVEL {

// Width of the machine's vectors, used where lanes are written out (reductions, matmul).
#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <class To, class From>
DVM_INLINE To bits_as(From x) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, x);
}

template <class T>
DVM_INLINE constexpr T smaller(T a, T b) {
  return a < b ? a : b;
}

// Limits of an integer type, without <limits>.
template <class T>
inline constexpr bool kSigned = T(-1) < T(0);
template <class T>
inline constexpr T kMaxOf = kSigned<T> ? T(~(T(1) << (8 * sizeof(T) - 1))) : T(~T(0));
template <class T>
inline constexpr T kMinOf = kSigned<T> ? T(T(1) << (8 * sizeof(T) - 1)) : T(0);

template <class T>
inline constexpr bool kIsFloat = false;
template <>
inline constexpr bool kIsFloat<float> = true;
template <>
inline constexpr bool kIsFloat<double> = true;

// ---- the loops ------------------------------------------------------------------------------------------------------------------------

template <class F, class T>
void map_unary(void* dst, const void* a, int64_t n) {
  using R = decltype(F::of(T{}));
  auto* d = static_cast<R*>(dst);
  auto* x = static_cast<const T*>(a);
  DVM_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) d[i] = F::of(x[i]);
}

template <class T>
void copy(void* dst, const void* a, int64_t n) {
  if (n > 0 && dst != a) memcpy(dst, a, size_t(n) * sizeof(T));
}

template <class F, class T>
void map_binary(void* dst, const void* a, const void* b, int64_t n) {
  using R = decltype(F::of(T{}, T{}));
  auto* d = static_cast<R*>(dst);
  auto* x = static_cast<const T*>(a);
  auto* y = static_cast<const T*>(b);
  DVM_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) d[i] = F::of(x[i], y[i]);
}

// Tensor (op) one value per row; with one column per row that is the plain binary loop.
template <class F, class T>
void map_rows_vs(void* dst, const void* a, const void* s, int64_t rows, int64_t cols) {
  using R = decltype(F::of(T{}, T{}));
  if (cols == 1) return map_binary<F, T>(dst, a, s, rows);
  for (int64_t r = 0; r < rows; ++r) {
    auto* d = static_cast<R*>(dst) + r * cols;
    auto* x = static_cast<const T*>(a) + r * cols;
    const T y = static_cast<const T*>(s)[r];
    DVM_INDEPENDENT
    for (int64_t i = 0; i < cols; ++i) d[i] = F::of(x[i], y);
  }
}

template <class F, class T>
void map_rows_sv(void* dst, const void* a, const void* s, int64_t rows, int64_t cols) {
  using R = decltype(F::of(T{}, T{}));
  if (cols == 1) return map_binary<F, T>(dst, s, a, rows);
  for (int64_t r = 0; r < rows; ++r) {
    auto* d = static_cast<R*>(dst) + r * cols;
    auto* x = static_cast<const T*>(a) + r * cols;
    const T y = static_cast<const T*>(s)[r];
    DVM_INDEPENDENT
    for (int64_t i = 0; i < cols; ++i) d[i] = F::of(y, x[i]);
  }
}

}  // namespace dvm::DVM_LEVEL

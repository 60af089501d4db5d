// Modulo, bit operations and shifts.
#pragma once
#include "kernels_elementwise.h"

namespace dvm::DVM_LEVEL {

// Towards zero, exact. Integers: x mod 0 = 0, as NumPy; the quotient MIN / -1 never is computed.
struct Fmod {
  static DVM_INLINE float of(float a, float b) { return __builtin_fmodf(a, b); }
  static DVM_INLINE double of(double a, double b) { return __builtin_fmod(a, b); }
  // The double quotient is exact enough, see Div.
  static DVM_INLINE int32_t of(int32_t a, int32_t b) {
    const double q = double(a) / double(b == 0 ? 1 : b);
    const int32_t t = int32_t(q >= 2147483648.0 ? -2147483648.0 : q);
    return int32_t(uint32_t(a) - uint32_t(t) * uint32_t(b == 0 ? 1 : b));
  }
  static DVM_INLINE int64_t of(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
  static DVM_INLINE int8_t of(int8_t a, int8_t b) { return int8_t(of(int32_t(a), int32_t(b))); }
  static DVM_INLINE uint8_t of(uint8_t a, uint8_t b) { return uint8_t(of(int32_t(a), int32_t(b))); }
};
// As Python's %: the sign is that of b.
struct Remainder {
  template <class T>
  static DVM_INLINE T from(T r, T b) {  // r: towards zero
    if constexpr (kIsFloat<T>) return r == T(0) ? with_sign(r, b) : (b < T(0)) != (r < T(0)) ? r + b : r;
    else return kSigned<T> && r != 0 && (b < 0) != (r < 0) ? T(r + b) : r;
  }
  template <class T>
  static DVM_INLINE T of(T a, T b) {
    return from(Fmod::of(a, b), b);
  }
};

// Modulo of float32: where the quotient is below 2**28 (and no operand is special) a - q b is exact in double, q being at most one too
// large; a block with anything else goes through the C library.
template <bool Floored, bool OneA, bool OneB>
DVM_INLINE void modulo_loop(float* d, const float* x, const float* y, int64_t n) {
  constexpr int64_t kBlock = 256;
  const float one_a = *x, one_b = *y;  // of a row that is one value; n > 0
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = smaller(begin + kBlock, n);
    uint32_t odd = 0;
    for (int64_t i = begin; i < end; ++i) {
      const float a = OneA ? one_a : x[i], b = OneB ? one_b : y[i];
      odd |= uint32_t(!(double(__builtin_fabsf(a)) < double(__builtin_fabsf(b)) * 0x1p28));
    }
    if (odd) {
      for (int64_t i = begin; i < end; ++i) {
        const float a = OneA ? one_a : x[i], b = OneB ? one_b : y[i];
        d[i] = Floored ? Remainder::of(a, b) : Fmod::of(a, b);
      }
      continue;
    }
    DVM_INDEPENDENT
    for (int64_t i = begin; i < end; ++i) {
      const float a = OneA ? one_a : x[i], b = OneB ? one_b : y[i];
      const double m = __builtin_fabs(double(a)), by = __builtin_fabs(double(b));
      const double q = double(int32_t(m / by));
      const double r = q == 0.0 ? m : m - q * by;  // 0 times infinity is no number
      const float t = with_sign(float(r < 0.0 ? r + by : r), a);
      d[i] = Floored ? Remainder::from(t, b) : t;
    }
  }
}
template <bool Floored>
void modulo(void* dst, const void* a, const void* b, int64_t n) {
  if (n > 0) modulo_loop<Floored, false, false>(static_cast<float*>(dst), static_cast<const float*>(a), static_cast<const float*>(b), n);
}
// Swapped: the value of the row is on the left.
template <bool Floored, bool Swapped>
void modulo_rows(void* dst, const void* a, const void* s, int64_t rows, int64_t cols) {
  if (cols == 1) return Swapped ? modulo<Floored>(dst, s, a, rows) : modulo<Floored>(dst, a, s, rows);
  for (int64_t r = 0; r < rows && cols > 0; ++r) {
    auto* d = static_cast<float*>(dst) + r * cols;
    auto *x = static_cast<const float*>(a) + r * cols, *y = static_cast<const float*>(s) + r;
    if (Swapped) modulo_loop<Floored, true, false>(d, y, x, cols);
    else modulo_loop<Floored, false, true>(d, x, y, cols);
  }
}

struct BitAnd {
  template <class T>
  static DVM_INLINE T of(T a, T b) {
    return T(a & b);
  }
};
struct BitOr {
  template <class T>
  static DVM_INLINE T of(T a, T b) {
    return T(a | b);
  }
};
struct BitXor {
  template <class T>
  static DVM_INLINE T of(T a, T b) {
    return T(a ^ b);
  }
};
struct BitNot {
  template <class T>
  static DVM_INLINE T of(T a) {
    return T(~a);
  }
};
// By more bits than there are, or by a negative number: all bits are shifted out.
struct ShiftLeft {
  template <class T>
  static DVM_INLINE T of(T a, T b) {
    using U = typename UnsignedOf<T>::type;
    constexpr U bits = 8 * sizeof(T);
    const U by = U(b) < bits ? U(b) : U(0);
    return U(b) < bits ? T(U(uint64_t(U(a)) << by)) : T(0);
  }
};
struct ShiftRight {
  template <class T>
  static DVM_INLINE T of(T a, T b) {
    using U = typename UnsignedOf<T>::type;
    constexpr U bits = 8 * sizeof(T), most = bits - 1;
    const T shifted = T(a >> (U(b) < bits ? U(b) : most));
    return U(b) < bits || kSigned<T> ? shifted : T(0);
  }
};

}  // namespace dvm::DVM_LEVEL

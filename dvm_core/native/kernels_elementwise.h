// Arithmetic, comparisons, rounding, division and powers: one scalar function per op.
// Integer ADD, SUB, MUL, NEG and ABS are instantiated with unsigned types (wrap-around, like NumPy).
#pragma once
#include "kernels_common.h"
#include "kernels_math.h"

namespace dvm::DVM_LEVEL {

struct Add {
  template <class T>
  static DVM_INLINE T of(T a, T b) {
    return T(a + b);
  }
};
struct Sub {
  template <class T>
  static DVM_INLINE T of(T a, T b) {
    return T(a - b);
  }
};
struct Mul {
  template <class T>
  static DVM_INLINE T of(T a, T b) {
    return T(a * b);
  }
};

// Also on vectors (reductions). NaN wins: if a is NaN the test holds, if b is NaN it does not.
struct Maximum {
  template <class T>
  static DVM_INLINE T of(T a, T b) {
    return ((a >= b) | (a != a)) ? a : b;
  }
};
struct Minimum {
  template <class T>
  static DVM_INLINE T of(T a, T b) {
    return ((a <= b) | (a != a)) ? a : b;
  }
};

// Floats divide as IEEE says. Integers divide towards minus infinity; x / 0 = 0 and the one overflow, MIN / -1, wraps to MIN, so that
// no operand traps.
struct Div {
  template <class T>
  static DVM_INLINE T of(T a, T b) {  // floats, and vectors of them
    return a / b;
  }
  // An int32 quotient differs from the nearest integer by at least 2**-31 of itself, so the rounded double quotient is on the right
  // side of it; the double division has a vector form, the integer one has not.
  static DVM_INLINE int32_t of(int32_t a, int32_t b) {
    const double q = double(a) / double(b == 0 ? 1 : b);
    const double t = q >= 2147483648.0 ? -2147483648.0 : q;
    const int32_t down = int32_t(t);
    return b == 0 ? 0 : down - (double(down) > t ? 1 : 0);
  }
  static DVM_INLINE int64_t of(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return int64_t(0 - uint64_t(a));
    const int64_t q = a / b;
    return q - ((a % b != 0) & ((a < 0) != (b < 0)));
  }
  static DVM_INLINE int8_t of(int8_t a, int8_t b) { return int8_t(of(int32_t(a), int32_t(b))); }
  static DVM_INLINE uint8_t of(uint8_t a, uint8_t b) { return uint8_t(of(int32_t(a), int32_t(b))); }
};

template <class T>
struct UnsignedOf;
template <>
struct UnsignedOf<int8_t> {
  using type = uint8_t;
};
template <>
struct UnsignedOf<uint8_t> {
  using type = uint8_t;
};
template <>
struct UnsignedOf<int32_t> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<int64_t> {
  using type = uint64_t;
};

struct Sqrt {
  template <class T>
  static DVM_INLINE T of(T a) {
    return square_root(a);
  }
};
struct Rsqrt {
  template <class T>
  static DVM_INLINE T of(T a) {
    return T(1) / square_root(a);
  }
};
struct Reciprocal {
  template <class T>
  static DVM_INLINE T of(T a) {
    return T(1) / a;
  }
};

// The exponents that programs use most are cheaper by hand.
struct Squared {
  template <class T>
  static DVM_INLINE T of(T a) {
    return a * a;
  }
};
struct Cubed {
  template <class T>
  static DVM_INLINE T of(T a) {
    return a * a * a;
  }
};
// Unlike sqrt, pow makes +0 of -0 and +infinity of -infinity.
struct PowHalf {
  template <class T>
  static DVM_INLINE T of(T a) {
    return a == -T(__builtin_inf()) ? -a : square_root(a + T(0));
  }
};
struct PowMinusHalf {
  template <class T>
  static DVM_INLINE T of(T a) {
    return T(1) / PowHalf::of(a);
  }
};

struct Pow {
  template <class T>
  static DVM_INLINE T real(T a, T b) {
    // The rule looks at the value alone, so a tensor of exponents and one exponent for a row (map_pow_rows) give the same bits.
    if (b == T(2)) return Squared::of(a);
    if (b == T(3)) return Cubed::of(a);
    if (b == T(-1)) return Reciprocal::of(a);
    if (b == T(0.5)) return PowHalf::of(a);
    if (b == T(-0.5)) return PowMinusHalf::of(a);
    if constexpr (sizeof(T) == 4) return __builtin_powf(a, b);
    else return __builtin_pow(a, b);
  }
  static DVM_INLINE float of(float a, float b) { return real(a, b); }
  static DVM_INLINE double of(double a, double b) { return real(a, b); }
  // By squaring, with wrap-around. A negative exponent gives the true power towards zero: 1, -1 or 0 (0 ** -n = 0).
  template <class T>
  static DVM_INLINE T of(T a, T b) {
    using U = typename UnsignedOf<T>::type;
    if (kSigned<T> && b < 0) return a == 1 ? T(1) : a == T(-1) ? ((b & 1) ? T(-1) : T(1)) : T(0);
    U result = 1, base = U(a);
    for (U e = U(b); e != 0; e = U(e >> 1)) {
      if (e & 1) result = U(result * base);
      base = U(base * base);
    }
    return T(result);
  }
};

// a ** (one exponent per row): the easy exponents as vector loops.
template <class T>
void map_pow_rows(void* dst, const void* a, const void* s, int64_t rows, int64_t cols) {
  constexpr struct {
    T exponent;
    Unary loop;
  } kEasy[] = {{T(2), map_unary<Squared, T>},   {T(3), map_unary<Cubed, T>},           {T(-1), map_unary<Reciprocal, T>},
               {T(0.5), map_unary<PowHalf, T>}, {T(-0.5), map_unary<PowMinusHalf, T>}, {T(1), copy<T>}};
  if (cols == 1) return map_binary<Pow, T>(dst, a, s, rows);
  for (int64_t r = 0; r < rows; ++r) {
    T* d = static_cast<T*>(dst) + r * cols;
    const T* x = static_cast<const T*>(a) + r * cols;
    const T exponent = static_cast<const T*>(s)[r];
    Unary loop = nullptr;
    for (const auto& easy : kEasy)
      if (exponent == easy.exponent) loop = easy.loop;
    if (loop) loop(d, x, cols);
    else
      for (int64_t i = 0; i < cols; ++i) d[i] = Pow::of(x[i], exponent);
  }
}

// Of two numbers a bool byte, of two vectors the mask that their comparison is.
DVM_INLINE uint8_t truth(bool x) { return x; }
template <class M>
DVM_INLINE M truth(M mask) {
  return mask;
}
struct Equal {
  template <class T>
  static DVM_INLINE auto of(T a, T b) {
    return truth(a == b);
  }
};
struct NotEqual {
  template <class T>
  static DVM_INLINE auto of(T a, T b) {
    return truth(a != b);
  }
};
struct Less {
  template <class T>
  static DVM_INLINE auto of(T a, T b) {
    return truth(a < b);
  }
};
struct LessEqual {
  template <class T>
  static DVM_INLINE auto of(T a, T b) {
    return truth(a <= b);
  }
};
struct Greater {
  template <class T>
  static DVM_INLINE auto of(T a, T b) {
    return truth(a > b);
  }
};
struct GreaterEqual {
  template <class T>
  static DVM_INLINE auto of(T a, T b) {
    return truth(a >= b);
  }
};

// Bool bytes: any non-zero byte is true, results are 0 or 1.
struct LogicalAnd {
  static DVM_INLINE uint8_t of(uint8_t a, uint8_t b) { return (a != 0) & (b != 0); }
};
struct LogicalOr {
  static DVM_INLINE uint8_t of(uint8_t a, uint8_t b) { return (a | b) != 0; }
};
struct LogicalXor {
  static DVM_INLINE uint8_t of(uint8_t a, uint8_t b) { return (a != 0) != (b != 0); }
};
struct LogicalNot {
  static DVM_INLINE uint8_t of(uint8_t a) { return a == 0; }
};

struct Neg {
  template <class T>
  static DVM_INLINE T of(T a) {
    return T(-a);
  }
};
struct Abs {
  static DVM_INLINE float of(float a) { return __builtin_fabsf(a); }
  static DVM_INLINE double of(double a) { return __builtin_fabs(a); }
  template <class T>
  static DVM_INLINE T of(T a) {
    using U = typename UnsignedOf<T>::type;
    return a < 0 ? T(U(0) - U(a)) : a;
  }
};
struct IsFinite {
  static DVM_INLINE uint8_t of(float a) { return __builtin_fabsf(a) <= 3.40282346638528859812e38f; }
  static DVM_INLINE uint8_t of(double a) { return __builtin_fabs(a) <= 1.79769313486231570815e308; }
};
struct IsNan {
  template <class T>
  static DVM_INLINE uint8_t of(T a) {
    return a != a;
  }
};
struct IsInf {
  template <class T>
  static DVM_INLINE uint8_t of(T a) {
    return Abs::of(a) == T(__builtin_inf());
  }
};
struct Sign {
  template <class T>
  static DVM_INLINE T of(T a) {
    return a > T(0) ? T(1) : a < T(0) ? T(-1) : a == T(0) ? T(0) : a;  // of NaN: NaN
  }
};
// Integers are finite, and neither NaN nor infinite.
struct False {
  template <class T>
  static DVM_INLINE uint8_t of(T) {
    return 0;
  }
};
struct True {
  template <class T>
  static DVM_INLINE uint8_t of(T) {
    return 1;
  }
};

// Rounding by the addition of 2**mantissa bits, which has a vector form at every level; larger values (and NaN) are integers already.
template <class T>
inline constexpr T kIntegral = T(0);
template <>
inline constexpr float kIntegral<float> = 8388608.0f;
template <>
inline constexpr double kIntegral<double> = 4503599627370496.0;

template <class T>
DVM_INLINE T nearest(T a) {
  constexpr T large = kIntegral<T>;
  const T m = Abs::of(a);
  return m < large ? with_sign((m + large) - large, a) : a;
}
struct Round {
  template <class T>
  static DVM_INLINE T of(T a) {
    return nearest(a);
  }
};
// The sign is put back because -0.3 rounds up to -0.
struct Floor {
  template <class T>
  static DVM_INLINE T of(T a) {
    const T r = nearest(a);
    return with_sign(r > a ? r - T(1) : r, a);
  }
};
struct Ceil {
  template <class T>
  static DVM_INLINE T of(T a) {
    const T r = nearest(a);
    return with_sign(r < a ? r + T(1) : r, a);
  }
};
struct Trunc {
  template <class T>
  static DVM_INLINE T of(T a) {
    const T m = Abs::of(a), r = nearest(m);
    return with_sign(r > m ? r - T(1) : r, a);
  }
};

template <class T>
void select(void* dst, const uint8_t* cond, const void* a, const void* b, int64_t n) {
  auto* d = static_cast<T*>(dst);
  auto* x = static_cast<const T*>(a);
  auto* y = static_cast<const T*>(b);
  DVM_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) d[i] = cond[i] ? x[i] : y[i];
}

}  // namespace dvm::DVM_LEVEL

// Casts. Float to integer goes towards zero; values out of range give the nearest end of the range and NaN gives 0 (NumPy leaves both to
// the processor). Integer to integer wraps. Anything to bool is `!= 0`, so NaN is true. To a narrower float: nearest, halves to even.
#pragma once
#include "kernels_common.h"

namespace dvm::DVM_LEVEL {

// Tags for the 16-bit floats, which have no arithmetic here, and for bool.
struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};
struct Bool {
  uint8_t byte;
};

template <class From, class To>
struct Cast {
  static DVM_INLINE To of(From a) {
    if constexpr (kIsFloat<From> && !kIsFloat<To>) {
      // 2**bits is exact in both float types; the largest integer may not be.
      constexpr From above = From(2) * From(uint64_t(1) << (8 * sizeof(To) - (kSigned<To> ? 2 : 1)));
      constexpr From below = kSigned<To> ? -above : From(0);
      const bool high = a >= above, low = !kSigned<To> ? a < From(0) : a < below;
      const bool inside = (a < above) & (a >= below);
      const To t = To(inside ? a : From(0));
      return high ? kMaxOf<To> : low ? kMinOf<To> : t;
    } else {
      return To(a);
    }
  }
};
template <class From>
struct Cast<From, Bool> {
  static DVM_INLINE Bool of(From a) { return Bool{uint8_t(a != From(0))}; }
};
template <class To>
struct Cast<Bool, To> {
  static DVM_INLINE To of(Bool a) { return To(a.byte != 0); }
};
template <>
struct Cast<Bool, Bool> {
  static DVM_INLINE Bool of(Bool a) { return a; }
};

// The 16-bit floats, on numbers (uint32_t, float) and on vectors of them alike. Every NaN becomes the same quiet one: which of two NaNs an
// addition keeps is the processor's choice, and would show in the bits.
inline constexpr uint32_t kBrainNan = 0x7fc0u, kHalfNan = 0x7e00u;
template <class F, class U>
DVM_INLINE F brain_to_float(U bits) {
  return bits_as<F>(bits << 16);
}
template <class U, class F>
DVM_INLINE U float_to_brain(F a) {
  const U u = bits_as<U>(a);
  const U nearest = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return a != a ? U{} + kBrainNan : nearest;
}

// Exponent and mantissa moved to their float places are too small by 2**112; the multiplication also normalises half denormals.
template <class F, class U>
DVM_INLINE F half_to_float(U u) {
  const U magnitude = (u & 0x7fffu) << 13;
  const U scaled = bits_as<U>(bits_as<F>(magnitude) * bits_as<float>(uint32_t(239) << 23));
  const U special = (magnitude | 0x7f800000u) | ((u & 0x3ffu) != 0u ? U{} + 0x400000u : U{});
  return bits_as<F>(((u & 0x8000u) << 16) | ((u & 0x7c00u) == 0x7c00u ? special : scaled));
}
template <class U, class F>
DVM_INLINE U float_to_half(F a) {
  const U u = bits_as<U>(a), magnitude = u & 0x7fffffffu;
  // Normal results: round the mantissa to 10 bits in the integer (a carry moves into the exponent, up to infinity).
  const U normal = (magnitude - (uint32_t(112) << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Denormal results: adding 0.5 leaves exactly the bits of weight 2**-24 and above, rounded by the float unit.
  const U small = bits_as<U>(bits_as<F>(magnitude) + 0.5f) - 0x3f000000u;
  const U infinity = U{} + 0x7c00u;
  const U signed_ = ((u >> 16) & 0x8000u) | (magnitude >= 0x47800000u ? infinity : magnitude < 0x38800000u ? small : normal);
  return a != a ? U{} + kHalfNan : signed_;
}

template <>
struct Cast<Brain, float> {
  static DVM_INLINE float of(Brain a) { return brain_to_float<float>(uint32_t(a.bits)); }
};
template <>
struct Cast<Half, float> {
  static DVM_INLINE float of(Half a) { return half_to_float<float>(uint32_t(a.bits)); }
};

// To the float towards zero or away from it that has an odd last bit, unless it is exact: rounding that once more, to fewer bits, gives what
// one rounding would have given.
struct Odd {
  float value;
};
template <>
struct Cast<double, Odd> {
  static DVM_INLINE Odd of(double a) {
    const float nearest = float(a);
    const uint32_t u = bits_as<uint32_t>(nearest);
    const uint32_t other = __builtin_fabs(double(nearest)) > __builtin_fabs(a) ? u - 1 : u + 1;
    const bool exact = (double(nearest) == a) | (a != a) | ((u & 1u) != 0);
    return {bits_as<float>(exact ? u : other)};
  }
};
template <>
struct Cast<int32_t, Odd> {
  static DVM_INLINE Odd of(int32_t a) { return Cast<double, Odd>::of(double(a)); }
};
template <>
struct Cast<int64_t, Odd> {
  static DVM_INLINE Odd of(int64_t a) {
    // What a double does not hold becomes one bit that says so.
    const uint64_t m = a < 0 ? uint64_t(0) - uint64_t(a) : uint64_t(a);
    const uint64_t rest = m & 0x7ffu, held = (m >> 53) ? (m - rest) | (rest != 0 ? 0x400u : 0u) : m;
    const double magnitude = double(int64_t(held >> 1)) * 2.0 + double(int64_t(held & 1u));
    return Cast<double, Odd>::of(a < 0 ? -magnitude : magnitude);
  }
};

template <class From, class To>
void cast(void* dst, const void* a, int64_t n) {
  auto* d = static_cast<To*>(dst);
  auto* x = static_cast<const From*>(a);
  DVM_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) d[i] = Cast<From, To>::of(x[i]);
}

}  // namespace dvm::DVM_LEVEL

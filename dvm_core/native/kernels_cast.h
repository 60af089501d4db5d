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

template <>
struct Cast<Brain, float> {
  static DVM_INLINE float of(Brain a) { return bits_as<float>(uint32_t(a.bits) << 16); }
};
template <>
struct Cast<float, Brain> {
  static DVM_INLINE Brain of(float a) {
    const uint32_t u = bits_as<uint32_t>(a);
    const uint32_t nearest = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    const uint32_t quiet = (u >> 16) | 0x40u;
    return Brain{uint16_t((u & 0x7fffffffu) > 0x7f800000u ? quiet : nearest)};
  }
};

template <>
struct Cast<Half, float> {
  // Exponent and mantissa moved to their float places are too small by 2**112; the multiplication also normalises half denormals.
  static DVM_INLINE float of(Half a) {
    const uint32_t u = a.bits, magnitude = (u & 0x7fffu) << 13;
    const uint32_t scaled = bits_as<uint32_t>(bits_as<float>(magnitude) * bits_as<float>(uint32_t(239) << 23));
    const uint32_t special = magnitude | 0x7f800000u | ((u & 0x3ffu) ? 0x400000u : 0u);
    return bits_as<float>(((u & 0x8000u) << 16) | ((u & 0x7c00u) == 0x7c00u ? special : scaled));
  }
};
template <>
struct Cast<float, Half> {
  static DVM_INLINE Half of(float a) {
    const uint32_t u = bits_as<uint32_t>(a), magnitude = u & 0x7fffffffu;
    // Normal results: round the mantissa to 10 bits in the integer (a carry moves into the exponent, up to infinity).
    const uint32_t normal = (magnitude - (uint32_t(112) << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    // Denormal results: adding 0.5 leaves exactly the bits of weight 2**-24 and above, rounded by the float unit.
    const uint32_t small = bits_as<uint32_t>(bits_as<float>(magnitude) + 0.5f) - 0x3f000000u;
    const uint32_t special = 0x7c00u | (magnitude > 0x7f800000u ? 0x200u | ((magnitude >> 13) & 0x3ffu) : 0u);
    const uint32_t h = magnitude >= 0x47800000u ? special : magnitude < 0x38800000u ? small : normal;
    return Half{uint16_t(((u >> 16) & 0x8000u) | h)};
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

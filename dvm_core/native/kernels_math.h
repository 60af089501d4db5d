// exp, expm1, log, log1p, tanh, erf, sigmoid, arctan, sin, cos, tan. float32: our own polynomials without branches, so that the loops
// vectorise and every level gives the same bits; double: the C library's. Coefficients are weighted minimax fits (Remez exchange, relative
// error) of the function named above each table, rounded to its type. Largest errors over all floats, in units of the last place: exp 1.0,
// expm1 1.8, log 0.9, log1p 1.5, tanh 2.6, erf 2.1, sigmoid 2.4, the others 0.51 (tests/python/test_kernels.py).
#pragma once
#include "kernels_common.h"

namespace dvm::DVM_LEVEL {

DVM_INLINE float square_root(float a) { return __builtin_sqrtf(a); }
DVM_INLINE double square_root(double a) { return __builtin_sqrt(a); }
DVM_INLINE float with_sign(float magnitude, float sign) { return __builtin_copysignf(magnitude, sign); }
DVM_INLINE double with_sign(double magnitude, double sign) { return __builtin_copysign(magnitude, sign); }

// a * b + c rounded once. An instruction at the levels that have it; the same bits, one by one, from the C library where they do not.
DVM_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// c ? a : b without a branch: what is behind a branch the compiler does not vectorise once there is a fused() in it.
DVM_INLINE float choose(bool c, float a, float b) {
  const uint32_t mask = 0u - uint32_t(c);
  return bits_as<float>((bits_as<uint32_t>(a) & mask) | (bits_as<uint32_t>(b) & ~mask));
}

// c[I] + c[I + 1] x + c[I + 2] x**2 ... Written out, not a loop: a loop inside keeps the compiler from vectorising the one around it.
template <int I = 0, int N>
DVM_INLINE float polynomial(const float (&c)[N], float x) {
  if constexpr (I == N - 1) return c[I];
  else return fused(polynomial<I + 1>(c, x), x, c[I]);
}
template <int I = 0, int N>
DVM_INLINE double polynomial(const double (&c)[N], double x) {
  if constexpr (I == N - 1) return c[I];
  else return polynomial<I + 1>(c, x) * x + c[I];
}

// ln 2 in two parts; the first has 16 bits, so that its product with an exponent is exact.
inline constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;

// y, or a where that is NaN. Which of several NaNs a sum or a fused step hands on is up to the order the compiler gave its operands.
DVM_INLINE float unless_nan(float a, float y) { return choose(a != a, a, y); }

// 2**n for -126 <= n <= 127.
DVM_INLINE float power_of_two(int32_t n) { return bits_as<float>((uint32_t(n) + 127u) << 23); }

// x = n ln 2 + r, |r| <= ln 2 / 2. Adding 1.5 * 2**23 rounds to an integer and leaves it in the low bits.
struct Reduced {
  int32_t n;
  float r;
};
DVM_INLINE Reduced reduce_by_ln2(float x) {
  constexpr float shift = 0x1.8p23f, log2e = 0x1.715476p0f;
  const float t = fused(x, log2e, shift);
  const float whole = t - shift;
  return {int32_t(bits_as<uint32_t>(t) - bits_as<uint32_t>(shift)), fused(-whole, kLn2Low, fused(-whole, kLn2High, x))};
}

struct Exp {
  // (e**r - 1 - r) / r**2 on |r| <= ln 2 / 2, error 3.1e-9
  static constexpr float kPolynomial[] = {0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558f2p-5f, 0x1.1239e2p-7f, 0x1.6a2434p-10f};
  static DVM_INLINE float of(float a) { return choose(a > 89.0f, __builtin_inff(), not_above(a)); }
  // For a <= 89 and NaN.
  static DVM_INLINE float not_above(float a) {
    const Reduced q = reduce_by_ln2(a);
    const float p = 1.0f + fused(q.r * q.r, polynomial(kPolynomial, q.r), q.r);
    // Two steps: 2**128 and 2**-149 are no floats, and only the last product rounds.
    const int32_t half = q.n >> 1;
    return unless_nan(a, choose(a < -104.0f, 0.0f, p * power_of_two(half) * power_of_two(q.n - half)));
  }
  static DVM_INLINE double of(double a) { return __builtin_exp(a); }
};

struct Log {
  static DVM_INLINE float of(float a) {
    // (ln(1 + f) - f + f**2 / 2) / f**3 on sqrt(1/2) <= 1 + f < sqrt(2), error 7.5e-10
    static constexpr float c[] = {0x1.555548p-2f,  -0x1.000006p-2f, 0x1.99a4b6p-3f,  -0x1.555c4ep-3f, 0x1.233768p-3f,
                                  -0x1.fc220ap-4f, 0x1.e6f06ap-4f,  -0x1.de3c04p-4f, 0x1.145796p-4f};
    const bool denormal = a < 0x1p-126f;
    const uint32_t u = bits_as<uint32_t>(choose(denormal, a * 0x1p23f, a));
    const int32_t e = int32_t(u - 0x3f3504f3u) >> 23;  // bits of sqrt(1/2)
    const float f = bits_as<float>(u - (uint32_t(e) << 23)) - 1.0f;
    const float n = float(e - 23 * int32_t(denormal)), square = f * f;
    const float y = fused(n, kLn2High, f + fused(n, kLn2Low, fused(f * square, polynomial(c, f), -0.5f * square)));
    const float special = choose(a == 0.0f, -__builtin_inff(), __builtin_nanf(""));
    return choose(a > 0.0f, choose(a == __builtin_inff(), a, y), special);
  }
  static DVM_INLINE double of(double a) { return __builtin_log(a); }
};

// ln u for the rounded u = 1 + a, and what the rounding lost, to first order.
struct Log1p {
  static DVM_INLINE float of(float a) {
    const float u = 1.0f + a, lost = a - (u - 1.0f);
    const bool ends = !(u > 0.0f) | (u == __builtin_inff());  // there `lost` is no number, or the logarithm is none
    const float y = Log::of(u) + choose(ends, 0.0f, lost / u);
    return choose(a == 0.0f, a, y);  // -0 stays -0
  }
  static DVM_INLINE double of(double a) { return __builtin_log1p(a); }
};

// e**x - 1 for |x| <= 20: 2**n (e**r - 1) + (2**n - 1), so that small x keep their precision.
DVM_INLINE float exp_less_one(float x) {
  // (e**r - 1 - r) / r**2 again, here relative to e**r - 1, error 1.4e-8
  static constexpr float c[] = {0x1.fffffep-2f, 0x1.5554bp-3f, 0x1.555674p-5f, 0x1.122776p-7f, 0x1.6bec06p-10f};
  const Reduced q = reduce_by_ln2(x);
  const float scale = power_of_two(q.n);
  return unless_nan(x, fused(scale, fused(q.r * q.r, polynomial(c, q.r), q.r), scale - 1.0f));
}

struct Expm1 {
  static DVM_INLINE float of(float a) {
    const float x = choose(a > 20.0f, 20.0f, choose(a < -20.0f, -20.0f, a));
    const float y = choose(a > 20.0f, Exp::of(a), exp_less_one(x));  // there the 1 is below the last place
    return choose(a == 0.0f, a, y);                                  // -0 stays -0
  }
  static DVM_INLINE double of(double a) { return __builtin_expm1(a); }
};

struct Tanh {
  // (e**y - 1) / (e**y + 1) with y = 2 |x|
  static DVM_INLINE float of(float a) {
    const float m = 2.0f * __builtin_fabsf(a);
    const float e = exp_less_one(choose(m > 20.0f, 20.0f, m));  // tanh(10) is 1 in float
    return with_sign(e / (e + 2.0f), a);
  }
  static DVM_INLINE double of(double a) { return __builtin_tanh(a); }
};

struct Erf {
  static DVM_INLINE float of(float a) {
    // erf(x) / x - 1 in x**2 for |x| < 1.25, error 1e-9
    static constexpr float near[] = {0x1.06eba8p-3f, -0x1.812740p-2f,  0x1.ce2de8p-4f,  -0x1.b8140cp-6f,
                                     0x1.5560cap-8f, -0x1.b53bd2p-11f, 0x1.b3f36cp-14f, -0x1.fc3692p-18f};
    // (1 - erf(x))**(1/8) for 1.25 <= x <= 4, error of erf 2.5e-9; erf(4) is 1 in float
    static constexpr float far[] = {0x1.006216p+0f, -0x1.2de9ecp-3f, -0x1.dafc86p-5f, -0x1.cb202ap-7f, 0x1.cc1f5ep-7f, -0x1.641988p-9f, 0x1.692346p-13f};
    const float m = __builtin_fabsf(a);
    const float root = polynomial(far, choose(m > 4.0f, 4.0f, m)), square = root * root, fourth = square * square;
    const float large = with_sign(fused(-fourth, fourth, 1.0f), a);
    return choose(m < 1.25f, fused(a, polynomial(near, m * m), a), large);
  }
  static DVM_INLINE double of(double a) { return __builtin_erf(a); }
};

// e**-|a| never overflows, and the small side keeps its precision down to denormals.
struct Sigmoid {
  static DVM_INLINE float of(float a) {
    const float e = Exp::not_above(-__builtin_fabsf(a));
    return choose(a < 0, e, 1.0f) / (1.0f + e);
  }
  static DVM_INLINE double of(double a) {
    const double e = __builtin_exp(-__builtin_fabs(a));
    return (a < 0 ? e : 1.0) / (1.0 + e);
  }
};

struct Atan {
  // arctan(x) / x in x**2 on |x| <= 1, error 9.4e-12, in double; beyond, pi/2 - arctan(1 / x).
  static DVM_INLINE float of(float a) {
    static constexpr double c[] = {0x1.ffffffffeb726p-1,  -0x1.5555551cfb623p-2, 0x1.99997fe181256p-3,  -0x1.248ff6c42f148p-3, 0x1.c6e4248976c19p-4,
                                   -0x1.72c11ef1cc3a1p-4, 0x1.335cc2317de7ep-4,  -0x1.ef03479303e6ap-5, 0x1.682e148ef359cp-5,  -0x1.af8847c8de3c7p-6,
                                   0x1.7da2fbbbc8ed5p-7,  -0x1.adb19c8cdcb5cp-9, 0x1.c5fd748ab2870p-12};
    const double m = __builtin_fabs(double(a));
    const double x = m > 1.0 ? 1.0 / m : m;
    const double y = x * polynomial(c, x * x);
    return with_sign(float(m > 1.0 ? 0x1.921fb54442d18p0 - y : y), a);
  }
  static DVM_INLINE double of(double a) { return __builtin_atan(a); }
};

// sin, cos and tan of a float, computed in double: a = n pi/2 + r with pi/2 in two parts, the first of 33 bits so that n times it is exact
// for |n| < 2**20.
inline constexpr float kTrigLimit = 1e6f;
struct Reduction {
  double sine, cosine;  // of r
  uint64_t n;           // its lowest bits say which quadrant
};
DVM_INLINE Reduction reduce_by_quarters(float a) {
  // (sin(r) / r - 1) / r**2 and (cos(r) - 1 + r**2 / 2) / r**4 in r**2 on |r| <= pi/4, errors 4.9e-12 and 1.2e-13
  static constexpr double s[] = {-0x1.5555554cb9f11p-3, 0x1.111108965162ap-7, -0x1.a00f9dab72bf7p-13, 0x1.6cd8599760927p-19};
  static constexpr double c[] = {0x1.5555554ed8d9ep-5, -0x1.6c16b8295ec88p-10, 0x1.a010de58c9cd1p-16, -0x1.241e8388fadf7p-22};
  constexpr double shift = 0x1.8p52, two_over_pi = 0x1.45f306dc9c883p-1;
  constexpr double high = 0x1.921fb544p0, low = 0x1.0b4611a626331p-34;
  const double x = double(a), t = x * two_over_pi + shift, n = t - shift;
  const double r = (x - n * high) - n * low, z = r * r;
  return {r * (1.0 + z * polynomial(s, z)), (1.0 - 0.5 * z) + z * z * polynomial(c, z), bits_as<uint64_t>(t)};
}

// sin (Quarter 0) and cos (Quarter 1).
template <int Quarter>
struct Trig {
  static DVM_INLINE float fast(float a) {
    const Reduction q = reduce_by_quarters(a);
    const uint64_t quadrant = q.n + Quarter;
    const double y = (quadrant & 1) ? q.cosine : q.sine;
    return float(bits_as<double>(bits_as<uint64_t>(y) ^ ((quadrant & 2) << 62)));
  }
  static float large(float a) { return float(of(double(a))); }
  static DVM_INLINE double of(double a) { return Quarter ? __builtin_cos(a) : __builtin_sin(a); }
};
using Sin = Trig<0>;
using Cos = Trig<1>;
struct Tan {
  static DVM_INLINE float fast(float a) {
    const Reduction q = reduce_by_quarters(a);
    const bool odd = q.n & 1;
    return float((odd ? -q.cosine : q.sine) / (odd ? q.sine : q.cosine));
  }
  static float large(float a) { return float(of(double(a))); }
  static DVM_INLINE double of(double a) { return __builtin_tan(a); }
};

// Blocks with a value too large for the reduction go one by one, through the C library where it is needed.
template <class F>
void map_trig(void* dst, const void* a, int64_t n) {
  constexpr int64_t kBlock = 256;
  auto* d = static_cast<float*>(dst);
  auto* x = static_cast<const float*>(a);
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = smaller(begin + kBlock, n);
    uint32_t large = 0;
    for (int64_t i = begin; i < end; ++i) large |= uint32_t(__builtin_fabsf(x[i]) > kTrigLimit);
    if (large) {
      for (int64_t i = begin; i < end; ++i) d[i] = __builtin_fabsf(x[i]) > kTrigLimit ? F::large(x[i]) : F::fast(x[i]);
    } else {
      DVM_INDEPENDENT
      for (int64_t i = begin; i < end; ++i) d[i] = F::fast(x[i]);
    }
  }
}

}  // namespace dvm::DVM_LEVEL

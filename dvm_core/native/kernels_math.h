// exp, log, tanh, erf, sigmoid, sin, cos.
#pragma once
#include "kernels_common.h"

namespace dvm::DVM_LEVEL {

DVM_INLINE float square_root(float a) { return __builtin_sqrtf(a); }
DVM_INLINE double square_root(double a) { return __builtin_sqrt(a); }
DVM_INLINE float with_sign(float magnitude, float sign) { return __builtin_copysignf(magnitude, sign); }
DVM_INLINE double with_sign(double magnitude, double sign) { return __builtin_copysign(magnitude, sign); }

struct Exp {
  static DVM_INLINE float of(float a) { return __builtin_expf(a); }
  static DVM_INLINE double of(double a) { return __builtin_exp(a); }
};
struct Log {
  static DVM_INLINE float of(float a) { return __builtin_logf(a); }
  static DVM_INLINE double of(double a) { return __builtin_log(a); }
};
struct Tanh {
  static DVM_INLINE float of(float a) { return __builtin_tanhf(a); }
  static DVM_INLINE double of(double a) { return __builtin_tanh(a); }
};
struct Erf {
  static DVM_INLINE float of(float a) { return __builtin_erff(a); }
  static DVM_INLINE double of(double a) { return __builtin_erf(a); }
};
// e ** -|a| never overflows, and the small side keeps its precision down to denormals.
struct Sigmoid {
  template <class T>
  static DVM_INLINE T of(T a) {
    const T m = a < 0 ? a : -a;
    const T e = Exp::of(m);
    return (a < 0 ? e : T(1)) / (T(1) + e);
  }
};
struct Sin {
  static DVM_INLINE float of(float a) { return float(__builtin_sin(double(a))); }
  static DVM_INLINE double of(double a) { return __builtin_sin(a); }
};
struct Cos {
  static DVM_INLINE float of(float a) { return float(__builtin_cos(double(a))); }
  static DVM_INLINE double of(double a) { return __builtin_cos(a); }
};

}  // namespace dvm::DVM_LEVEL

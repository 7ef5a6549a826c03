// Scalar mathematics on float, double and int64_t, as generated code calls it. Infinities and NaN keep their meaning;
// errors are a few units in the last place.
#pragma once

#include "bb_types.cuh"

namespace bb {

BB_INLINE float exp(float x) { return ::expf(x); }
BB_INLINE float expm1(float x) { return ::expm1f(x); }
BB_INLINE float log(float x) { return ::logf(x); }
BB_INLINE float log1p(float x) { return ::log1pf(x); }
BB_INLINE float tanh(float x) { return ::tanhf(x); }
BB_INLINE float erf(float x) { return ::erff(x); }
BB_INLINE float pow(float x, float y) { return ::powf(x, y); }
BB_INLINE float sqrt(float x) { return ::sqrtf(x); }
BB_INLINE float rsqrt(float x) { return ::rsqrtf(x); }
BB_INLINE float recip(float x) { return 1.0f / x; }
BB_INLINE float floor(float x) { return ::floorf(x); }
BB_INLINE float abs(float x) { return ::fabsf(x); }
BB_INLINE float sin(float x) { return ::sinf(x); }
BB_INLINE float cos(float x) { return ::cosf(x); }

BB_INLINE double exp(double x) { return ::exp(x); }
BB_INLINE double expm1(double x) { return ::expm1(x); }
BB_INLINE double log(double x) { return ::log(x); }
BB_INLINE double log1p(double x) { return ::log1p(x); }
BB_INLINE double tanh(double x) { return ::tanh(x); }
BB_INLINE double erf(double x) { return ::erf(x); }
BB_INLINE double pow(double x, double y) { return ::pow(x, y); }
BB_INLINE double sqrt(double x) { return ::sqrt(x); }
BB_INLINE double rsqrt(double x) { return 1.0 / ::sqrt(x); }
BB_INLINE double recip(double x) { return 1.0 / x; }
BB_INLINE double floor(double x) { return ::floor(x); }
BB_INLINE double abs(double x) { return ::fabs(x); }
BB_INLINE double sin(double x) { return ::sin(x); }
BB_INLINE double cos(double x) { return ::cos(x); }

BB_INLINE int64_t abs(int64_t x) { return x < 0 ? -x : x; }
BB_INLINE int64_t floor(int64_t x) { return x; }

// These hold for every type that has the functions above.
template <class T> BB_INLINE T maximum(T a, T b) { return a > b || a != a ? a : b; }
template <class T> BB_INLINE T minimum(T a, T b) { return a < b || a != a ? a : b; }
template <class T> BB_INLINE T relu(T x) { return x < T(0) ? T(0) : x; }
template <class T> BB_INLINE T sign(T x) { return x > T(0) ? T(1) : x < T(0) ? T(-1) : x; }  // zero and NaN stay
template <class T> BB_INLINE T select(bool c, T a, T b) { return c ? a : b; }
template <class T> BB_INLINE T sigmoid(T x) { return T(1) / (T(1) + bb::exp(-x)); }
template <class T> BB_INLINE T silu(T x) { return x / (T(1) + bb::exp(-x)); }
template <class T> BB_INLINE T gelu(T x) { return T(0.5) * x * (T(1) + bb::erf(x * T(0.70710678118654752))); }
template <class T> BB_INLINE T gelu_tanh(T x) {
  const T inner = T(0.79788456080286536) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (T(1) + bb::tanh(inner));
}
template <class T> BB_INLINE T softplus(T x) { return (x < T(0) ? T(0) : x) + bb::log1p(bb::exp(-bb::abs(x))); }

// The quotient rounded down, for b > 0 or b < 0.
BB_INLINE int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }

}  // namespace bb

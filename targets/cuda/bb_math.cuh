// Scalar mathematics on float, double and int64_t, as generated code calls it. Infinities and NaN keep their meaning;
// errors are a few units in the last place, for sin and cos those of an angle reduced by pi/2 in 160 bits.
// Nothing here needs memory of its own.
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

BB_INLINE double exp(double x) { return ::exp(x); }
BB_INLINE double expm1(double x) { return ::expm1(x); }
BB_INLINE double log(double x) { return ::log(x); }
BB_INLINE double log1p(double x) { return ::log1p(x); }
BB_INLINE double tanh(double x) { return ::tanh(x); }
BB_INLINE double erf(double x) { return ::erf(x); }
BB_INLINE double sqrt(double x) { return ::sqrt(x); }
BB_INLINE double rsqrt(double x) { return 1.0 / ::sqrt(x); }
BB_INLINE double recip(double x) { return 1.0 / x; }
BB_INLINE double floor(double x) { return ::floor(x); }
BB_INLINE double abs(double x) { return ::fabs(x); }

// By logarithms: the library's function is a call, which a kernel's registers would have to make room for. The error
// grows with the size of y log x.
BB_INLINE double pow(double x, double y) {
  const double size = ::exp(y * ::log(::fabs(x)));
  const bool is_whole = y == ::floor(y), is_odd = ::fabs(y) < 0x1p53 && ::fmod(y, 2.0) != 0.0;
  const double negative = is_whole ? (is_odd ? -size : size) : __longlong_as_double(0x7ff8000000000000);
  return y == 0.0 || x == 1.0 ? 1.0 : x < 0.0 ? negative : size;
}

namespace detail {

// x = n pi/2 + r with |r| <= pi/4, and n modulo 4. pi/2 is taken in three parts, so that n times them is nearly exact.
struct Quadrant {
  double r;
  int n;
};
BB_INLINE Quadrant reduce_angle(double x) {
  const double n = ::rint(x * 0x1.45f306dc9c883p-1);
  double r = ::fma(n, -0x1.921fb54442d18p+0, x);
  r = ::fma(n, -0x1.1a62633145c07p-54, r);
  r = ::fma(n, 0x1.f1976b7ed8fbcp-110, r);
  return {r, int(int64_t(n) & 3)};
}
// Taylor's series, of which the next term is below half a unit in the last place for |r| <= pi/4.
BB_INLINE double sin_near_zero(double r) {
  const double z = r * r;
  double p = -0x1.ae7f3e733b81fp-41;
  p = ::fma(p, z, 0x1.6124613a86d09p-33);
  p = ::fma(p, z, -0x1.ae64567f544e4p-26);
  p = ::fma(p, z, 0x1.71de3a556c734p-19);
  p = ::fma(p, z, -0x1.a01a01a01a01ap-13);
  p = ::fma(p, z, 0x1.1111111111111p-7);
  p = ::fma(p, z, -0x1.5555555555555p-3);
  return ::fma(p * z, r, r);
}
BB_INLINE double cos_near_zero(double r) {
  const double z = r * r;
  double p = 0x1.ae7f3e733b81fp-45;
  p = ::fma(p, z, -0x1.93974a8c07c9dp-37);
  p = ::fma(p, z, 0x1.1eed8eff8d898p-29);
  p = ::fma(p, z, -0x1.27e4fb7789f5cp-22);
  p = ::fma(p, z, 0x1.a01a01a01a01ap-16);
  p = ::fma(p, z, -0x1.6c16c16c16c17p-10);
  p = ::fma(p, z, 0x1.5555555555555p-5);
  p = ::fma(p, z, -0.5);
  return ::fma(p, z, 1.0);
}
BB_INLINE double sin_of(Quadrant q) {
  const double y = q.n & 1 ? cos_near_zero(q.r) : sin_near_zero(q.r);
  return q.n & 2 ? -y : y;
}

}  // namespace detail

BB_INLINE double sin(double x) { return detail::sin_of(detail::reduce_angle(x)); }
BB_INLINE double cos(double x) {
  const detail::Quadrant q = detail::reduce_angle(x);
  return detail::sin_of({q.r, q.n + 1});
}
BB_INLINE float sin(float x) { return float(bb::sin(double(x))); }
BB_INLINE float cos(float x) { return float(bb::cos(double(x))); }

BB_INLINE int64_t abs(int64_t x) { return x < 0 ? -x : x; }
BB_INLINE int64_t floor(int64_t x) { return x; }

// These hold for every type that has the functions above.
template <class T> BB_INLINE T maximum(T a, T b) { return a > b || a != a ? a : b; }
template <class T> BB_INLINE T minimum(T a, T b) { return a < b || a != a ? a : b; }
// One instruction for each, which keeps NaN.
BB_INLINE float maximum(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
BB_INLINE float minimum(float a, float b) {
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
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

// Quotients rounded down and up, for b > 0 or b < 0.
BB_INLINE int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }
BB_INLINE int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

}  // namespace bb

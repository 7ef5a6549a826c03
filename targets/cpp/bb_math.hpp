// Scalar mathematics on float and double, as generated loops call it. Every float function but pow is straight-line code
// that vectorises inside `#pragma omp simd` loops, and so are double exp, log, sigmoid, silu and gelu_tanh; the other
// transcendental double functions call the C library. Infinities and NaN keep their meaning (no -ffast-math), results
// below the smallest normal number may be zero (of silu, where the sigmoid is), and the sign of a zero is not kept. Errors
// are a few units in the last place, whatever the argument; tests/cpp/math.cpp states and checks them.
//
// The polynomials are minimax fits made for this file, with coefficients rounded to the working precision.
#pragma once

#include "bb_fused.hpp"
#include "bb_types.hpp"

// As <math.h> defines them, which C++ takes longer to read than all of this.
#ifndef INFINITY
#define INFINITY (__builtin_inff())
#endif
#ifndef NAN
#define NAN (__builtin_nanf(""))
#endif

namespace bb {
namespace detail {

constexpr float infinity = __builtin_inff();

// e^x before its exponent is applied: x = n ln 2 + r with |r| <= ln 2 / 2, and `shifted` holds n in its low bits.
// ln 2 is split so that n times its high part is exact, and so is the difference, with or without a fused multiply-add.
struct Reduced {
  float n, r;
  uint32_t shifted;
};
BB_INLINE Reduced reduce_exp(float x) {
  const float magic = 0x1.8p23f;  // adding it rounds to an integer, which is left in the low bits
  const float shifted = fused(x, 0x1.715476p0f, magic);
  const float n = shifted - magic;
  const float r = fused(n, -0x1.c85fep-10f, fused(n, -0x1.62p-1f, x));
  return {n, r, bits_of(shifted)};
}

// (e^r - 1 - r) / r^2
BB_INLINE float exp_tail(float r) {
  float q = 0x1.6a4d60p-10f;
  q = fused(q, r, 0x1.12398ep-7f);
  q = fused(q, r, 0x1.5558b0p-5f);
  q = fused(q, r, 0x1.555492p-3f);
  return fused(q, r, 0x1.fffffcp-2f);
}

// e^r - 1
BB_INLINE float expm1_poly(float r) { return fused(r * r, exp_tail(r), r); }

// e^x where the result is a normal number. Loops over exponentials wait for multiply-adds, of which 1 + r (1 + r tail)
// takes the fewest.
BB_INLINE float exp_inside(float x) {
  const Reduced a = reduce_exp(x);
  const float p = fused(fused(exp_tail(a.r), a.r, 1.0f), a.r, 1.0f);
  return float_of(bits_of(p) + (a.shifted << 23));
}

// (e^x - 1) / 2 for |x| at most 88. With s = 2^(n - 1) it is s (e^r - 1) + (s - 1 / 2).
BB_INLINE float half_expm1(float x) {
  const Reduced a = reduce_exp(x);
  const float half = float_of((a.shifted + 126) << 23);
  return fused(half, expm1_poly(a.r), half - 0.5f);
}

}  // namespace detail

BB_INLINE float exp(float x) {
  float y = detail::exp_inside(x);
  y = x < -0x1.5d589ep6f ? 0.0f : y;                       // log of the smallest normal number
  return x <= 0x1.62e42ep6f ? y : x + detail::infinity;    // log of the largest; NaN lands here too
}

BB_INLINE float expm1(float x) {
  const float y = 2.0f * detail::half_expm1(x < -20.0f ? -20.0f : x);
  return x <= 0x1.62e42ep6f ? y : x + detail::infinity;
}

BB_INLINE float log(float x) {
  using namespace detail;
  const bool tiny = x < 0x1p-126f;
  const float scaled = tiny ? x * 0x1p23f : x;
  const uint32_t u = bits_of(scaled);
  const int32_t e = int32_t(u - 0x3f3504f3) >> 23;  // the mantissa m goes to [sqrt(1/2), sqrt(2))
  const float f = float_of(u - (uint32_t(e) << 23)) - 1.0f;
  const float n = float(e) - (tiny ? 23.0f : 0.0f);
  float p = -0x1.38c968p-4f;
  p = fused(p, f, 0x1.055eacp-3f);
  p = fused(p, f, -0x1.0d8246p-3f);
  p = fused(p, f, 0x1.22d930p-3f);
  p = fused(p, f, -0x1.54728ap-3f);
  p = fused(p, f, 0x1.99a01cp-3f);
  p = fused(p, f, -0x1.000226p-2f);
  p = fused(p, f, 0x1.555554p-2f);
  const float tail = fused(n, 0x1.c85fep-10f, f * f * fused(f, p, -0.5f));
  const float y = n * 0x1.62p-1f + (f + tail);
  const float outside = x == 0.0f ? -infinity : __builtin_nanf("");
  const float positive = x < infinity ? y : x;
  return x > 0.0f ? positive : outside;
}

// log(u) for u = 1 + x rounded, and what the rounding lost.
BB_INLINE float log1p(float x) {
  const float u = 1.0f + x;
  const float lost = (x - (u - 1.0f)) / u;
  return bb::log(u) + (x > -1.0f && x < 0x1p25f ? lost : 0.0f);
}

// With u = (e^(2 |x|) - 1) / 2 it is u / (1 + u), divided by what the sum rounded is and then mended by the remainder.
BB_INLINE float tanh(float x) {
  using namespace detail;
  float a = __builtin_fabsf(x);
  a = a > 10.0f ? 10.0f : a;
  const float u = half_expm1(a + a), sum = u + 1.0f, lost = u - (sum - 1.0f), inverse = 1.0f / sum, y = u * inverse;
  return __builtin_copysignf(fused(fused(-lost, y, fused(-sum, y, u)), inverse, y), x);
}

BB_INLINE float sigmoid(float x) { return 1.0f / (1.0f + bb::exp(-x)); }
BB_INLINE float silu(float x) { return x / (1.0f + bb::exp(-x)); }

// Near zero an odd polynomial, beyond 0.9 one minus e^-g with g a polynomial for -log erfc.
BB_INLINE float erf(float x) {
  using namespace detail;
  const float a = __builtin_fabsf(x), z = x * x;
  float s = -0x1.3d3e9ap-11f;
  s = fused(s, z, 0x1.47f062p-8f);
  s = fused(s, z, -0x1.b6a700p-6f);
  s = fused(s, z, 0x1.ce1c18p-4f);
  s = fused(s, z, -0x1.8126eep-2f);
  s = fused(s, z, 0x1.06eba6p-3f);
  const float c = a > 4.0f ? 4.0f : a;
  float g = -0x1.9dbb82p-13f;
  g = fused(g, c, 0x1.90a348p-9f);
  g = fused(g, c, -0x1.6d0e20p-6f);
  g = fused(g, c, 0x1.aa2c1ap-4f);
  g = fused(g, c, 0x1.462b68p-1f);
  g = fused(g, c, 0x1.20b494p0f);
  g = fused(g, c, 0x1.714768p-13f);
  const float far = __builtin_copysignf(1.0f - exp_inside(-g), x);
  const float y = a < 0.9f ? fused(x, s, x) : far;
  return x == x ? y : x;
}

BB_INLINE float gelu(float x) { return 0.5f * x * (1.0f + bb::erf(x * 0x1.6a09e6p-1f)); }

// 0.5 x (1 + tanh(u)) is x sigmoid(2u), which does not cancel.
BB_INLINE float gelu_tanh(float x) {
  const float u2 = x * (0x1.988454p0f + 0x1.2444f2p-4f * (x * x));  // 2 sqrt(2 / pi) (x + 0.044715 x^3)
  return x / (1.0f + bb::exp(-u2));
}

BB_INLINE float softplus(float x) { return (x < 0.0f ? 0.0f : x) + bb::log1p(bb::exp(-__builtin_fabsf(x))); }

namespace detail {

// 2/pi without the leading bits that are multiples of 4 in its product with any x of a range, as Payne and Hanek reduce
// angles. The ranges end at 2^48, 2^70, ..., so that a product stays below 2^48. Two parts of 28 bits make it exact in
// double, a third of 53 holds what is left where these cancel.
constexpr int turn_ranges = 5;
struct Turns {
  double part[3][turn_ranges];
};
constexpr Turns two_over_pi_by_range() {
  constexpr uint64_t two_over_pi[] = {0xa2f9836e4e441529, 0xfc2757d1f534ddc0,
                                      0xdb6295993c439041, 0xfe5163abdebbc561};
  Turns turns{};
  for (int range = 0; range < turn_ranges; ++range)
    for (int part = 0, bit = 22 * range; part < 3; ++part) {
      const int end = bit + (part < 2 ? 28 : 53);
      uint64_t bits = 0;
      for (; bit < end; ++bit) bits = bits << 1 | (two_over_pi[bit / 64] >> (63 - bit % 64) & 1);
      turns.part[part][range] = double(bits) * __builtin_bit_cast(double, uint64_t(1023 - end) << 52);
    }
  return turns;
}
constexpr Turns turns = two_over_pi_by_range();

BB_INLINE double turn_part(int part, double size) {
  double value = turns.part[part][0];
  _Pragma("GCC unroll 8") for (int range = 1; range < turn_ranges; ++range)
    value = size >= __builtin_bit_cast(double, uint64_t(1023 + 26 + 22 * range) << 52) ? turns.part[part][range] : value;
  return value;
}

// x = n pi/2 + r, for any float without a branch, so that loops stay vectorised; the quadrant is in the low bits of n.
// Infinities become NaN.
struct Quadrant {
  float r;
  uint32_t n;
};
BB_INLINE Quadrant reduce_angle(float x) {
  const double size = __builtin_fabsf(x), magic = 0x1.8p52;
  const double high = x * turn_part(0, size), middle = x * turn_part(1, size), low = x * turn_part(2, size);
  const double shifted = (high + middle + low) + magic;
  const double rest = ((high - (shifted - magic)) + middle) + low;
  return {float(rest * 0x1.921fb54442d18p0), uint32_t(__builtin_bit_cast(uint64_t, shifted))};
}

BB_INLINE float sin_of(Quadrant q) {
  const float z = q.r * q.r;
  float s = -0x1.995400p-13f;
  s = fused(s, z, 0x1.110778p-7f);
  s = fused(s, z, -0x1.555546p-3f);
  s = fused(q.r * z, s, q.r);
  float c = 0x1.99e910p-16f;
  c = fused(c, z, -0x1.6c0c2ap-10f);
  c = fused(c, z, 0x1.55554ap-5f);
  c = fused(z, fused(z, c, -0.5f), 1.0f);
  const float y = q.n & 1 ? c : s;
  return float_of(bits_of(y) ^ (q.n & 2) << 30);
}

}  // namespace detail

BB_INLINE float sin(float x) { return detail::sin_of(detail::reduce_angle(x)); }
BB_INLINE float cos(float x) {
  detail::Quadrant q = detail::reduce_angle(x);
  q.n += 1;
  return detail::sin_of(q);
}

BB_INLINE float pow(float x, float y) { return __builtin_powf(x, y); }

BB_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
BB_INLINE float floor(float x) { return __builtin_floorf(x); }
BB_INLINE float abs(float x) { return __builtin_fabsf(x); }
BB_INLINE float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
BB_INLINE float recip(float x) { return 1.0f / x; }

BB_INLINE double exp(double x) {
  const double magic = 0x1.8p52;
  const double shifted = detail::fused(x, 0x1.71547652b82fep0, magic);
  const double n = shifted - magic;
  const double r = detail::fused(n, -0x1.a39ef35793c76p-33, x - n * 0x1.62e42feep-1);
  double q = 0x1.ad7f2e6736db7p-26;
  q = detail::fused(q, r, 0x1.28ad9e60e9b14p-22);
  q = detail::fused(q, r, 0x1.71df25be539bcp-19);
  q = detail::fused(q, r, 0x1.a01999deffec7p-16);
  q = detail::fused(q, r, 0x1.a01a012a09580p-13);
  q = detail::fused(q, r, 0x1.6c16c1843a105p-10);
  q = detail::fused(q, r, 0x1.1111111127d25p-7);
  q = detail::fused(q, r, 0x1.5555555550838p-5);
  q = detail::fused(q, r, 0x1.55555555554f9p-3);
  q = detail::fused(q, r, 0x1.000000000000ap-1);
  const double p = 1.0 + detail::fused(r * r, q, r);
  double y = __builtin_bit_cast(double, __builtin_bit_cast(uint64_t, p) + (__builtin_bit_cast(uint64_t, shifted) << 52));
  y = x < -0x1.6232bdd7abcd2p9 ? 0.0 : y;                        // log of the smallest normal number
  return x <= 0x1.62e42fefa39efp9 ? y : x + __builtin_inf();     // log of the largest
}

// Reduced like that of floats, to log m = 2 atanh(s) with s = f / (2 + f), of which the first term is f itself but for what
// is taken from it.
BB_INLINE double log(double x) {
  const bool tiny = x < 0x1p-1022;
  const double scaled = tiny ? x * 0x1p54 : x;
  const uint64_t u = __builtin_bit_cast(uint64_t, scaled);
  const int64_t e = int64_t(u - 0x3fe6a09e667f3bcd) >> 52;  // the mantissa m goes to [sqrt(1/2), sqrt(2))
  const double f = __builtin_bit_cast(double, u - (uint64_t(e) << 52)) - 1.0;
  const double n = double(int32_t(e)) - (tiny ? 54.0 : 0.0);
  const double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
  double q = 0x1.2b5bd9a31aa2ep-3;
  q = detail::fused(q, z, 0x1.39fe16ad87f86p-3);
  q = detail::fused(q, z, 0x1.7462b6e311ac2p-3);
  q = detail::fused(q, z, 0x1.c71c62ddb431ap-3);
  q = detail::fused(q, z, 0x1.2492492df7663p-2);
  q = detail::fused(q, z, 0x1.99999999952abp-2);
  q = detail::fused(q, z, 0x1.5555555555558p-1);
  const double tail = detail::fused(s, detail::fused(z, q, half), n * 0x1.a39ef35793c76p-33);
  const double y = n * 0x1.62e42feep-1 + (f - (half - tail));
  const double outside = x == 0.0 ? -__builtin_inf() : __builtin_nan("");
  const double positive = x < __builtin_inf() ? y : x;
  return x > 0.0 ? positive : outside;
}

BB_INLINE double expm1(double x) { return __builtin_expm1(x); }
BB_INLINE double log1p(double x) { return __builtin_log1p(x); }
BB_INLINE double tanh(double x) { return __builtin_tanh(x); }
BB_INLINE double sigmoid(double x) { return 1.0 / (1.0 + bb::exp(-x)); }
BB_INLINE double silu(double x) { return x / (1.0 + bb::exp(-x)); }
BB_INLINE double erf(double x) { return __builtin_erf(x); }
BB_INLINE double gelu(double x) { return 0.5 * x * (1.0 + __builtin_erf(x * 0x1.6a09e667f3bcdp-1)); }
BB_INLINE double gelu_tanh(double x) {
  const double u2 = 2.0 * 0.79788456080286535588 * x * (1.0 + 0.044715 * (x * x));
  return x / (1.0 + bb::exp(-u2));
}
BB_INLINE double softplus(double x) { return (x < 0.0 ? 0.0 : x) + __builtin_log1p(bb::exp(-__builtin_fabs(x))); }
BB_INLINE double sin(double x) { return __builtin_sin(x); }
BB_INLINE double cos(double x) { return __builtin_cos(x); }
BB_INLINE double pow(double x, double y) { return __builtin_pow(x, y); }
BB_INLINE double sqrt(double x) { return __builtin_sqrt(x); }
BB_INLINE double floor(double x) { return __builtin_floor(x); }
BB_INLINE double abs(double x) { return __builtin_fabs(x); }
BB_INLINE double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
BB_INLINE double recip(double x) { return 1.0 / x; }

BB_INLINE int64_t abs(int64_t x) { return x < 0 ? -x : x; }
BB_INLINE int64_t floor(int64_t x) { return x; }

// The functions below take float, double or int64_t, both arguments of one type. NaN passes from either side.
template <class T> BB_INLINE T maximum(T a, T b) { return a > b || a != a ? a : b; }
template <class T> BB_INLINE T minimum(T a, T b) { return a < b || a != a ? a : b; }
template <class T> BB_INLINE T relu(T x) { return x < T(0) ? T(0) : x; }
template <class T> BB_INLINE T sign(T x) { return x > T(0) ? T(1) : x < T(0) ? T(-1) : x; }  // zero and NaN stay
template <class T> BB_INLINE T select(bool c, T a, T b) { return c ? a : b; }

// Division that rounds down, and the remainder with the sign of b, as Python's // and %. b must not be zero.
BB_INLINE int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }
BB_INLINE int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }
BB_INLINE int64_t floor_mod(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }

}  // namespace bb

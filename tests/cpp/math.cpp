// Checks bb_math.hpp, bb_reduce.hpp and bb_types.hpp: float functions against the C library in double, double functions against long
// double, over dense samples; special values; and every 16-bit pattern of the two half types.
#include "bb.hpp"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <utility>

static int failures = 0;

#define CHECK(condition)                                                  \
  do {                                                                    \
    if (!(condition)) {                                                   \
      printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);      \
      ++failures;                                                         \
    }                                                                     \
  } while (0)

static const double kInf = INFINITY, kNan = NAN;

static float bits(uint32_t u) {
  float x;
  memcpy(&x, &u, 4);
  return x;
}

// Error in units of the last place of the exact result, with a floor under which only the absolute error counts.
template <class T> static double ulps(T got, long double want, double floor) {
  if (isnan((double)want)) return isnan(got) ? 0 : 1e30;
  const T rounded = T(want);
  if (isinf((double)rounded) || isinf((double)got)) return got == rounded ? 0 : 1e30;
  if (isnan(got)) return 1e30;
  const double smallest = sizeof(T) == 4 ? 0x1p-126 : 0x1p-1022;
  if (got == 0 && fabs((double)want) < smallest) return 0;  // as bb_math.hpp allows
  int e;
  const double size = fmax(fabs((double)want), fmax(floor, smallest));
  frexp(size, &e);
  return double(fabsl((long double)got - want) / ldexpl(1, e - (sizeof(T) == 4 ? 24 : 53)));
}

// The largest error of `f` over floats from lo to hi, spaced evenly in value and, where log is set, in bit pattern.
// Evaluated in blocks through a simd loop, as generated code does, so that the vectorised form is what is checked.
template <class T, class F, class R>
static void accuracy(const char* name, F f, R reference, double lo, double hi, double limit, double floor = 0) {
  const long n = 1 << 17, block = 512;
  T x[block], y[block];
  double worst = 0, at = 0;
  for (long i = 0; i < n; i += block) {
    for (long j = 0; j < block; ++j) x[j] = T(lo + (hi - lo) * (double(i + j) + 0.37) / n);
#pragma omp simd
    for (long j = 0; j < block; ++j) y[j] = f(x[j]);
    for (long j = 0; j < block; ++j) {
      const double e = ulps<T>(y[j], reference((long double)x[j]), floor);
      if (e > worst) worst = e, at = x[j];
    }
  }
  const bool ok = worst <= limit;
  printf("%s %-12s [%g, %g]: %.2f ulp at %.9g (limit %g)\n", ok ? "  " : "!!", name, lo, hi, worst, at, limit);
  if (!ok) ++failures;
}

#define FLOAT(name, reference, lo, hi, limit, ...) \
  accuracy<float>(#name, [](float x) { return bb::name(x); }, [](double x) -> long double { return reference; }, lo, hi, limit, ##__VA_ARGS__)
#define DOUBLE(name, reference, lo, hi, limit, ...) \
  accuracy<double>(#name, [](double x) { return bb::name(x); }, [](long double x) -> long double { return reference; }, lo, hi, limit, ##__VA_ARGS__)

// Functions whose argument spans many magnitudes are sampled by bit pattern as well.
template <class F, class R> static void by_pattern(const char* name, F f, R reference, uint32_t lo, uint32_t hi, double limit, double floor = 0) {
  double worst = 0, at = 0;
  const uint64_t step = hi - lo < 1000 ? 1 : 9973;
  for (uint64_t u = lo; u < hi; u += step) {
    const float x = bits(uint32_t(u));
    const double e = ulps<float>(f(x), reference(double(x)), floor);
    if (e > worst) worst = e, at = x;
  }
  const bool ok = worst <= limit;
  printf("%s %-12s by pattern: %.2f ulp at %.9g (limit %g)\n", ok ? "  " : "!!", name, worst, at, limit);
  if (!ok) ++failures;
}
#define PATTERN(name, reference, lo, hi, limit, ...) \
  by_pattern(#name, [](float x) { return bb::name(x); }, [](double x) -> double { return reference; }, lo, hi, limit, ##__VA_ARGS__)

// All exponents of both signs, subnormal numbers, infinities and NaN.
#define EVERYWHERE(name, reference, limit)                        \
  PATTERN(name, reference, 0x00000000u, 0xffffffffu, limit);      \
  PATTERN(name, reference, 0x7f7ffff0u, 0x7f800010u, limit);      \
  PATTERN(name, reference, 0xff7ffff0u, 0xff800010u, limit);      \
  PATTERN(name, reference, 0x00000001u, 0x00800010u, limit);      \
  PATTERN(name, reference, 0x80000001u, 0x80800010u, limit)

// Without the fused operation, what mends a quotient is itself rounded.
constexpr double kTanhLimit = BB_FUSED ? 2 : 2.5;

// A function of vectors, where all lanes hold x.
template <class Function> static float of_vectors(float x) {
  bb::detail::Vector<float>::type four[4];
  for (auto& lanes : four) lanes = x - decltype(lanes + 0){};
  Function::template apply<4>(four);
  bb::detail::Vector<float>::type one = x - decltype(one){};
  Function::template apply<1>(&one);
  CHECK(bb::detail::bits_of(one[0]) == bb::detail::bits_of(four[0][0]));
  for (auto& lanes : four)
    for (int l = 0; l < bb::detail::Vector<float>::width; ++l)
      CHECK(bb::detail::bits_of(lanes[l]) == bb::detail::bits_of(four[0][0]));
  return four[0][0];
}
// The last patterns are those around the greatest argument whose exponential is finite, and the least where it is normal.
#define OF_VECTORS(function, reference, lo, hi, limit)                                                            \
  accuracy<float>(#function, of_vectors<bb::function>, [](double x) -> long double { return reference; }, lo, hi, \
                  limit);                                                                                         \
  for (const auto& [from, to] : {std::pair(0x00000000u, 0xffffffffu), std::pair(0x7f7ffff0u, 0x7f800010u),        \
                                 std::pair(0xff7ffff0u, 0xff800010u), std::pair(0x42b17200u, 0x42b17230u),        \
                                 std::pair(0xc2aeac40u, 0xc2aeac60u)})                                            \
  by_pattern(#function, of_vectors<bb::function>, [](double x) -> double { return reference; }, from, to, limit)

static void functions_of_vectors() {
  OF_VECTORS(Exp, exp(x), -87.3, 88.72, 1.6);
  OF_VECTORS(Exp, exp(x), -1, 1, 1.6);
  // Half a bit of bf16 is 2^15 units in the last place. Where exponentials end, its rounding makes them infinite anyway.
  const auto exact = [](double x) -> long double { return exp(x); };
  accuracy<float>("ExpRounded", of_vectors<bb::ExpRounded>, exact, -87.3, 88.72, 160);
  accuracy<float>("ExpRounded", of_vectors<bb::ExpRounded>, exact, -1, 0, 64);
  for (const auto& [from, to] : {std::pair(0x00000000u, 0x42b17200u), std::pair(0x42b17230u, 0xffffffffu),
                                 std::pair(0x7f7ffff0u, 0x7f800010u), std::pair(0xff7ffff0u, 0xff800010u)})
    by_pattern("ExpRounded", of_vectors<bb::ExpRounded>, [](double x) -> double { return exp(x); }, from, to, 160);
  CHECK(of_vectors<bb::ExpRounded>(0) == 1);
  OF_VECTORS(Tanh, tanh(x), -10, 10, kTanhLimit);
  OF_VECTORS(Tanh, tanh(x), -0.5, 0.5, kTanhLimit);
}

// Rows whose terms go through such a function: each term is made once, wherever it lies, and no other place is written.
static void rows_through_functions() {
  float x[150], kept[151], used[151];
  for (long n = 0; n <= 150; ++n) {
    for (long i = 0; i < n; ++i) x[i] = float((i * 37) % 41 - 20) / 8;
    kept[n] = used[n] = 7;
    const auto argument = [&](long c) { return x[c]; };
    const float sum = bb::sum_over<float>(n, bb::through<bb::Exp>(argument), bb::Keep{kept});
    const float twice = bb::sum_over<float>(
        n, bb::through<bb::Exp>(argument, [&](long c, float e) { return used[c] = 2 * e; }));
    for (long i = 0; i < n; ++i) CHECK(kept[i] == of_vectors<bb::Exp>(x[i]) && used[i] == 2 * kept[i]);
    CHECK(sum == bb::sum_over<float>(n, [&](long c) { return kept[c]; }) && twice == 2 * sum);
    CHECK(bb::max_over<float>(n, bb::through<bb::Tanh>(argument)) ==
          bb::max_over<float>(n, [&](long c) { return of_vectors<bb::Tanh>(x[c]); }));
    CHECK(kept[n] == 7 && used[n] == 7);
  }
}

static double sigmoid_of(double x) { return 1 / (1 + exp(-x)); }

static void float_accuracy() {
  FLOAT(exp, exp(x), -87.3, 88.72, 1.5);
  FLOAT(exp, exp(x), -1, 1, 1.5);
  PATTERN(exp, exp(x), 0x00000000u, 0x42b10000u, 1.5);
  PATTERN(exp, exp(x), 0x80000000u, 0xc2ae0000u, 1.5);
  FLOAT(expm1, expm1(x), -30, 88.72, 2);
  FLOAT(expm1, expm1(x), -1, 1, 2);
  PATTERN(expm1, expm1(x), 0x00800000u, 0x3f800000u, 2);
  PATTERN(expm1, expm1(x), 0x80800000u, 0xbf800000u, 2);
  PATTERN(log, log(x), 0x00000001u, 0x7f800000u, 1.5);
  FLOAT(log, log(x), 0.3, 3, 1.5);
  PATTERN(log1p, log1p(x), 0x00800000u, 0x7f800000u, 2.5);
  PATTERN(log1p, log1p(x), 0x80800000u, 0xbf800000u, 2.5);
  FLOAT(log1p, log1p(x), -0.999, 3, 2.5);
  FLOAT(tanh, tanh(x), -12, 12, kTanhLimit);
  FLOAT(tanh, tanh(x), -1, 1, kTanhLimit);
  PATTERN(tanh, tanh(x), 0x00800000u, 0x7f800000u, kTanhLimit);
  FLOAT(sigmoid, sigmoid_of(x), -87, 100, 2.5);
  FLOAT(sigmoid, sigmoid_of(x), -2, 2, 2.5);
  FLOAT(silu, x * sigmoid_of(x), -87, 100, 2.5);
  FLOAT(erf, erf(x), -5, 5, 2);
  FLOAT(erf, erf(x), -1, 1, 2);
  PATTERN(erf, erf(x), 0x00800000u, 0x7f800000u, 2);
  FLOAT(gelu, 0.5 * x * (1 + erf(x * M_SQRT1_2)), -6, 6, 3, 1.0);
  FLOAT(gelu_tanh, 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))), -6, 6, 3, 1.0);
  FLOAT(softplus, fmax(x, 0) + log1p(exp(-fabs(x))), -80, 100, 4);
  FLOAT(softplus, fmax(x, 0) + log1p(exp(-fabs(x))), -3, 3, 4);
  FLOAT(sin, sin(x), -10, 10, 2);
  FLOAT(sin, sin(x), -1e5, 1e5, 2);
  FLOAT(cos, cos(x), -10, 10, 2);
  FLOAT(cos, cos(x), -1e5, 1e5, 2);
  EVERYWHERE(sin, sin(x), 2);
  EVERYWHERE(cos, cos(x), 2);
  EVERYWHERE(exp, exp(x), 1.5);
  EVERYWHERE(expm1, expm1(x), 2);
  EVERYWHERE(log, log(x), 1.5);
  EVERYWHERE(log1p, log1p(x), 2.5);
  EVERYWHERE(tanh, tanh(x), kTanhLimit);
  EVERYWHERE(erf, erf(x), 2);
  PATTERN(sqrt, sqrt(x), 0x00800000u, 0x7f800000u, 0.5001);
  PATTERN(rsqrt, 1 / sqrt(x), 0x00800000u, 0x7f800000u, 1.5);
  PATTERN(recip, 1 / x, 0x00800000u, 0x7e800000u, 0.5001);
}

static void double_accuracy() {
  DOUBLE(exp, expl(x), -708, 709.7, 1.5);
  DOUBLE(exp, expl(x), -1, 1, 1.5);
  DOUBLE(expm1, expm1l(x), -5, 5, 1.5);
  DOUBLE(log, logl(x), 1e-3, 10, 1.5);
  DOUBLE(log, logl(x), 0.999, 1.001, 1.5);
  DOUBLE(log, logl(x), 1e-320, 1e-300, 1.5);
  DOUBLE(log, logl(x), 5e-324, 2e-308, 1.5);
  DOUBLE(log, logl(x), 1e300, 1.7e308, 1.5);
  DOUBLE(tanh, tanhl(x), -5, 5, 2.5);
  DOUBLE(sigmoid, 1 / (1 + expl(-x)), -700, 100, 2.5);
  DOUBLE(erf, erfl(x), -5, 5, 1.5);
  DOUBLE(gelu, x / 2 * (1 + erfl(x * 0.707106781186547524400844362104849039L)), -6, 6, 3, 1.0);
  DOUBLE(gelu_tanh, x / 2 * (1 + tanhl(0.797884560802865355879892119868763737L * (x + 0.044715 * x * x * x))), -6, 6, 4, 1.0);
  DOUBLE(softplus, fmaxl(x, 0) + log1pl(expl(-fabsl(x))), -700, 700, 3);
}

template <class T> static void special_values() {
  const T inf = T(kInf), nan = T(kNan);
  CHECK(bb::exp(-inf) == 0 && bb::exp(inf) == inf && isnan(bb::exp(nan)) && bb::exp(T(0)) == 1);
  CHECK(bb::exp(T(-1e4)) == 0 && bb::exp(T(-1e38)) == 0 && bb::exp(T(1e4)) == inf && bb::exp(T(1e38)) == inf);
  CHECK(bb::expm1(-inf) == -1 && bb::expm1(inf) == inf && isnan(bb::expm1(nan)) && bb::expm1(T(0)) == 0);
  CHECK(bb::expm1(T(-1e38)) == -1 && bb::expm1(T(1e38)) == inf);
  CHECK(bb::log(T(0)) == -inf && bb::log(inf) == inf && isnan(bb::log(nan)) && isnan(bb::log(T(-1))) && bb::log(T(1)) == 0);
  CHECK(isnan(bb::log(-inf)) && bb::log(T(-0.0)) == -inf);
  CHECK(bb::log1p(T(-1)) == -inf && bb::log1p(inf) == inf && isnan(bb::log1p(T(-2))) && isnan(bb::log1p(nan)) && bb::log1p(T(0)) == 0);
  CHECK(bb::tanh(inf) == 1 && bb::tanh(-inf) == -1 && isnan(bb::tanh(nan)) && bb::tanh(T(0)) == 0 && bb::tanh(T(-1e38)) == -1);
  CHECK(bb::sigmoid(T(1e4)) == 1 && bb::sigmoid(T(-1e4)) == 0 && bb::sigmoid(inf) == 1 && bb::sigmoid(-inf) == 0 && isnan(bb::sigmoid(nan)));
  CHECK(bb::silu(T(1e4)) == T(1e4) && bb::silu(T(-1e4)) == 0 && isnan(bb::silu(nan)) && bb::silu(inf) == inf);
  CHECK(bb::erf(inf) == 1 && bb::erf(-inf) == -1 && isnan(bb::erf(nan)) && bb::erf(T(0)) == 0 && bb::erf(T(1e30)) == 1);
  CHECK(bb::gelu(T(1e4)) == T(1e4) && bb::gelu(T(-1e4)) == 0 && isnan(bb::gelu(nan)));
  CHECK(bb::gelu_tanh(T(1e4)) == T(1e4) && bb::gelu_tanh(T(-1e4)) == 0 && isnan(bb::gelu_tanh(nan)));
  CHECK(bb::softplus(T(1e4)) == T(1e4) && bb::softplus(T(-1e4)) == 0 && isnan(bb::softplus(nan)));
  CHECK(bb::softplus(inf) == inf && bb::softplus(-inf) == 0);
  CHECK(isnan(bb::sin(inf)) && isnan(bb::cos(nan)) && bb::sin(T(0)) == 0 && bb::cos(T(0)) == 1);
  CHECK(bb::relu(T(-2)) == 0 && bb::relu(T(2)) == 2 && isnan(bb::relu(nan)) && bb::relu(-inf) == 0 && bb::relu(inf) == inf);
  CHECK(isnan(bb::maximum(nan, T(1))) && isnan(bb::maximum(T(1), nan)) && bb::maximum(T(1), T(2)) == 2 && bb::maximum(-inf, T(2)) == 2);
  CHECK(isnan(bb::minimum(nan, T(1))) && isnan(bb::minimum(T(1), nan)) && bb::minimum(T(1), T(2)) == 1 && bb::minimum(inf, T(2)) == 2);
  CHECK(bb::sign(T(-3)) == -1 && bb::sign(T(3)) == 1 && bb::sign(T(0)) == 0 && isnan(bb::sign(nan)) && bb::sign(-inf) == -1);
  CHECK(bb::sqrt(T(4)) == 2 && isnan(bb::sqrt(T(-1))) && bb::rsqrt(T(4)) == T(0.5) && bb::rsqrt(T(0)) == inf && bb::rsqrt(inf) == 0);
  CHECK(bb::recip(T(0)) == inf && bb::recip(T(4)) == T(0.25) && bb::abs(T(-2)) == 2 && bb::floor(T(-1.5)) == -2);
  CHECK(bb::pow(T(2), T(3)) == 8 && isnan(bb::pow(T(-2), T(0.5))) && bb::pow(T(-2), T(3)) == -8 && bb::pow(nan, T(0)) == 1);
  CHECK(bb::select(true, T(1), nan) == 1 && bb::select(false, nan, T(2)) == 2);
}

static void integers() {
  for (int64_t a = -7; a <= 7; ++a)
    for (int64_t b = -3; b <= 3; ++b) {
      if (b == 0) continue;
      CHECK(bb::floor_div(a, b) == (int64_t)floor((double)a / (double)b));
      CHECK(bb::floor_mod(a, b) == a - bb::floor_div(a, b) * b);
    }
  CHECK(bb::maximum(int64_t(2), int64_t(3)) == 3 && bb::minimum(int64_t(2), int64_t(3)) == 2);
  CHECK(bb::sign(int64_t(-2)) == -1 && bb::sign(int64_t(0)) == 0 && bb::abs(int64_t(-2)) == 2);
}

// The value of a binary format with E exponent and M mantissa bits, by definition.
static double value_of(uint16_t h, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int e = (h >> mantissa_bits) & ((1 << exponent_bits) - 1), m = h & ((1 << mantissa_bits) - 1);
  const double sign = h >> 15 ? -1 : 1;
  if (e == (1 << exponent_bits) - 1) return m ? kNan : sign * kInf;
  return sign * (e ? ldexp(1 + ldexp(m, -mantissa_bits), e - bias) : ldexp(m, 1 - bias - mantissa_bits));
}

// Every pattern loads as its value and stores back; between each two neighbours the lower part rounds down, the upper
// part up, and the middle to the even one.
template <class S> static void half_type(int exponent_bits, int mantissa_bits) {
  long bad = 0;
  for (uint32_t u = 0; u < 65536; ++u) {
    const S h{uint16_t(u)};
    const double want = value_of(uint16_t(u), exponent_bits, mantissa_bits);
    const float got = bb::load(h);
    if (isnan(want)) {
      bad += !isnan(got) || !isnan(bb::load(bb::store<S>(got)));
      continue;
    }
    bad += double(got) != want || signbit(got) != signbit(want) || bb::store<S>(got).bits != u;
    const double next = value_of(uint16_t(u + 1), exponent_bits, mantissa_bits);
    if ((u & 0x7fff) == 0x7fff || isnan(next) || isinf(want)) continue;
    const double above = isinf(next) ? 2 * want - value_of(uint16_t(u - 1), exponent_bits, mantissa_bits) : next;
    const float middle = float((want + above) / 2);
    const uint32_t even = u & 1 ? u + 1 : u;
    bad += bb::store<S>(middle).bits != even;
    bad += bb::store<S>(nextafterf(middle, float(want))).bits != u;
    bad += bb::store<S>(nextafterf(middle, middle > 0 ? INFINITY : -INFINITY)).bits != u + 1;
  }
  CHECK(bad == 0);
  CHECK(isinf(bb::load(bb::store<S>(INFINITY))) && isinf(bb::load(bb::store<S>(3.4e38f * (exponent_bits == 5 ? 1 : 1.001f)))));
  CHECK(isnan(bb::load(bb::store<S>(bits(0x7f800001)))) && isnan(bb::load(bb::store<S>(bits(0xffffffff)))));
}

// The same through a vectorised loop.
template <class S> static void half_type_in_a_loop() {
  static S in[65536], out[65536];
  static float x[65536];
  for (uint32_t u = 0; u < 65536; ++u) in[u].bits = uint16_t(u);
#pragma omp simd
  for (long i = 0; i < 65536; ++i) x[i] = bb::load(in[i]);
#pragma omp simd
  for (long i = 0; i < 65536; ++i) out[i] = bb::store<S>(x[i]);
  long bad = 0;
  for (uint32_t u = 0; u < 65536; ++u) bad += isnan(x[u]) ? !isnan(bb::load(out[u])) : out[u].bits != u;
  CHECK(bad == 0);
}

// All lengths around the vector widths: the value, each term asked for once, and NaN and infinities at every place.
template <class T> static void reductions() {
  T x[150];
  for (long n = 0; n <= 150; ++n) {
    int asked[150] = {};
    for (long i = 0; i < n; ++i) x[i] = T((i * 37) % 41 - 20);
    T sum = 0, top = T(-kInf), least = T(kInf);
    for (long i = 0; i < n; ++i) {
      sum += x[i];
      top = x[i] > top ? x[i] : top;
      least = x[i] < least ? x[i] : least;
    }
    CHECK(bb::sum_over<T>(n, [&](long c) { return ++asked[c], x[c]; }) == sum);
    for (long i = 0; i < n; ++i) CHECK(asked[i] == 1);
    CHECK(bb::max_over<T>(n, [&](long c) { return x[c]; }) == top);
    CHECK(bb::min_over<T>(n, [&](long c) { return x[c]; }) == least);
    CHECK(bb::prod_over<T>(n, [&](long c) { return c % 2 ? T(2) : T(0.5); }) == (n % 2 ? T(0.5) : T(1)));
    for (long i = 0; i < n; ++i) {
      const T kept = x[i];
      x[i] = T(kNan);
      CHECK(isnan(bb::max_over<T>(n, [&](long c) { return x[c]; })) && isnan(bb::min_over<T>(n, [&](long c) { return x[c]; })));
      x[i] = T(-kNan);
      CHECK(isnan(bb::max_over<T>(n, [&](long c) { return x[c]; })) && isnan(bb::sum_over<T>(n, [&](long c) { return x[c]; })));
      x[i] = T(kInf);
      CHECK(bb::max_over<T>(n, [&](long c) { return x[c]; }) == T(kInf));
      x[i] = T(-kInf);
      CHECK(bb::min_over<T>(n, [&](long c) { return x[c]; }) == T(-kInf));
      x[i] = kept;
    }
  }
  for (T& v : x) v = T(-kInf);
  CHECK(bb::max_over<T>(150, [&](long c) { return x[c]; }) == T(-kInf));
}

static void integer_reductions() {
  for (long n = 0; n < 70; ++n) {
    CHECK(bb::sum_over<int64_t>(n, [](long c) { return int64_t(c); }) == n * (n - 1) / 2);
    CHECK(bb::max_over<int64_t>(n, [](long c) { return int64_t(c - 100); }) == (n ? n - 101 : INT64_MIN));
    CHECK(bb::min_over<int64_t>(n, [](long c) { return int64_t(100 - c); }) == (n ? 101 - n : INT64_MAX));
  }
}

int main() {
  reductions<float>();
  reductions<double>();
  integer_reductions();
  float_accuracy();
  functions_of_vectors();
  rows_through_functions();
  double_accuracy();
  special_values<float>();
  special_values<double>();
  integers();
  half_type<bb::f16>(5, 10);
  half_type<bb::bf16>(8, 7);
  half_type_in_a_loop<bb::f16>();
  half_type_in_a_loop<bb::bf16>();
  CHECK(bb::load(int32_t(-3)) == -3 && bb::load(uint8_t(2)) == true && bb::store<uint8_t>(0.5f) == 1 && bb::store<int32_t>(int64_t(-7)) == -7);
  printf(failures ? "%d checks failed\n" : "all checks passed\n", failures);
  return failures != 0;
}

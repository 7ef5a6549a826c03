// Functions of a few vectors of floats at a time, for rows whose terms are little else: `through` takes such a function apart
// from what it is applied to and from what is made of its values.
//
//   total[r] = bb::sum_over<float>(n, bb::through<bb::Exp>([&](long c) { return s[c] - top[r]; },
//                                                          [&](long c, float e) { return y[c] = e; }));
//
// In a loop over numbers (bb_math.hpp) compilers finish one vector before they begin the next, whose instructions then
// wait for each other, and they use neither tables in registers nor instructions that scale by powers of two; loops of no
// more terms than these have they may leave to one number at a time. Errors are those of bb_math.hpp, which has the same
// functions of numbers.
#pragma once

#include "bb_math.hpp"
#include "bb_vector.hpp"

namespace bb {
namespace detail {

#define BB_EACH BB_UNROLL for (int j = 0; j < N; ++j)

#if defined(__AVX512F__)
// Compilers differ in the names of their functions for these.
BB_INLINE Vector<float>::type scale_lanes(Vector<float>::type x, Vector<float>::type n) {  // by 2 to the floor of n
  __asm__("vscalefps %2, %1, %0" : "=v"(x) : "v"(x), "v"(n));
  return x;
}
BB_INLINE Vector<float>::type within(Vector<float>::type least, Vector<float>::type x, Vector<float>::type most) {
  __asm__("vmaxps %0, %1, %0\n\tvminps %0, %2, %0" : "+&v"(x) : "v"(least), "v"(most));  // NaN stays
  return x;
}
BB_INLINE Vector<float>::type at_most(Vector<float>::type most, Vector<float>::type x) {
  __asm__("vminps %0, %1, %0" : "+v"(x) : "v"(most));  // NaN stays
  return x;
}
BB_INLINE Vector<float>::type estimate_reciprocal(Vector<float>::type x) {  // to 14 bits
  __asm__("vrcp14ps %0, %0" : "+v"(x));
  return x;
}
BB_INLINE Vector<float>::type nearest_integer(Vector<float>::type x) {
  __asm__("vrndscaleps $0, %0, %0" : "+v"(x));
  return x;
}
BB_INLINE Vector<float>::type look_up(Vector<float>::type table, Vector<float>::type place) {  // by its low four bits
  __asm__("vpermps %2, %1, %0" : "=v"(place) : "v"(place), "v"(table));
  return place;
}

// 2^(j / 16)
alignas(64) inline constexpr float sixteenths[16] = {
    0x1.000000p0f, 0x1.0b5586p0f, 0x1.172b84p0f, 0x1.2387a6p0f, 0x1.306fe0p0f, 0x1.3dea64p0f, 0x1.4bfdaep0f, 0x1.5ab07ep0f,
    0x1.6a09e6p0f, 0x1.7a1148p0f, 0x1.8ace54p0f, 0x1.9c4918p0f, 0x1.ae89fap0f, 0x1.c199bep0f, 0x1.d5818ep0f, 0x1.ea4afap0f};
#elif defined(__AVX2__) && defined(__FMA__)
BB_INLINE Vector<float>::type look_up(Vector<float>::type table, Vector<float>::type place) {  // by its low three bits
  __asm__("vpermps %2, %1, %0" : "=x"(place) : "x"(place), "x"(table));
  return place;
}

BB_INLINE Vector<int32_t>::type least_of(Vector<int32_t>::type x, Vector<int32_t>::type y) {
  __asm__("vpminsd %1, %0, %0" : "+x"(x) : "x"(y));
  return x;
}

// The bits of 2^(j / 8), less j in the place where 8 n has it once n is an exponent.
alignas(32) inline constexpr uint32_t eighths[8] = {
    0x3f800000, 0x3f7b95c2, 0x3f7837f0, 0x3f75fed7, 0x3f7504f3, 0x3f75672a, 0x3f7744fd, 0x3f7ac0c7};
#endif

#if !defined(__AVX512F__)
BB_INLINE Vector<float>::type at_most(Vector<float>::type most, Vector<float>::type x) { return x > most ? most : x; }
BB_INLINE Vector<float>::type estimate_reciprocal(Vector<float>::type x) { return 1.0f / x; }  // as good as there is
#endif

// Applies a function to vectors, several at a time step by step: from one after the other a processor cannot look far
// enough ahead to the next. Where registers are few, more than two would be kept in memory meanwhile.
template <class Function, int N> BB_INLINE void in_turns(Vector<float>::type* x) {
  constexpr int M = BB_VECTOR_REGISTERS == 32 || N < 2 ? N : 2;
  static_assert(N % M == 0);
  BB_UNROLL for (int j = 0; j < N; j += M) Function::template together<M>(x + j);
}

// The argument of e^x and e^x less what is simple in it, both as for numbers.
template <int N> struct ReducedLanes {
  Vector<float>::type r[N], shifted[N];
  BB_INLINE void reduce(const Vector<float>::type* x) {
    const Vector<float>::type none{}, magic = none + 0x1.8p23f;
    BB_EACH shifted[j] = fused_lanes(x[j], none + 0x1.715476p0f, magic);
    BB_EACH r[j] = fused_lanes(shifted[j] - magic, none - 0x1.62p-1f, x[j]);
    BB_EACH r[j] = fused_lanes(shifted[j] - magic, none - 0x1.c85fep-10f, r[j]);
  }
};
template <int N> BB_INLINE void exp_tail(Vector<float>::type* q, const Vector<float>::type* r) {
  const Vector<float>::type none{};
  BB_EACH q[j] = fused_lanes(r[j], none + 0x1.6a4d60p-10f, none + 0x1.12398ep-7f);
  BB_EACH q[j] = fused_lanes(q[j], r[j], none + 0x1.5558b0p-5f);
  BB_EACH q[j] = fused_lanes(q[j], r[j], none + 0x1.555492p-3f);
  BB_EACH q[j] = fused_lanes(q[j], r[j], none + 0x1.fffffcp-2f);
}

}  // namespace detail

// Vectors of e^x.
struct Exp {
  using vec = detail::Vector<float>::type;
  template <int N> static BB_INLINE void apply(vec* x) { detail::in_turns<Exp, N>(x); }

  template <int N> static BB_INLINE void together(vec* x) {
    using namespace detail;
    const vec none{};
#if defined(__AVX512F__)
    // x = n ln 2 + r with n a multiple of 1 / 16, whose last four bits are the last ones of `shifted`.
    const vec table = *(const vec*)sixteenths, magic = none + 0x1.8p19f;
    vec shifted[N], n[N], r[N], p[N], t[N];
    BB_EACH x[j] = within(none - 104.0f, x[j], none + 89.0f);
    BB_EACH shifted[j] = fused_lanes(x[j], none + 0x1.715476p0f, magic);
    BB_EACH n[j] = shifted[j] - magic;
    BB_EACH r[j] = fused_lanes(n[j], none - 0x1.62cp-1f, x[j]);
    BB_EACH r[j] = fused_lanes(n[j], none - 0x1.217f7ep-12f, r[j]);
    BB_EACH t[j] = look_up(table, shifted[j]);
    BB_EACH p[j] = fused_lanes(r[j], none + 0x1.555556p-3f, none + 0.5f);
    BB_EACH p[j] = fused_lanes(p[j], r[j], none + 1.0f);
    BB_EACH r[j] *= t[j];
    BB_EACH x[j] = scale_lanes(fused_lanes(p[j], r[j], t[j]), n[j]);
#elif defined(__AVX2__) && defined(__FMA__)
    using bits = Vector<uint32_t>::type;
    using whole = Vector<int32_t>::type;
    // x = n ln 2 + r with n a multiple of 1 / 8 and r at least 0, so that 2^n is infinite only where e^x is. As an integer
    // n + magic ends in 8 n. Much is done with integers, since there are more units for them than for multiplications.
    const vec magic = none + 0x1.8p20f, table = *(const Vector<float>::unaligned*)eighths;
    const whole most = whole{} + (0x49c00000 + 8 * 128);
    vec n[N], power[N], r[N], tail[N];
    BB_EACH n[j] = fused_lanes(x[j] - 0x1.62e43p-5f, none + 0x1.715476p0f, magic);  // the nearest to 1 / 16 less
    BB_EACH n[j] = vec(least_of(whole(n[j]), most));
    BB_EACH power[j] = vec(bits(look_up(table, n[j])) + (bits(n[j]) << 20));
    BB_EACH n[j] -= magic;
    BB_EACH r[j] = fused_lanes(n[j], none - 0x1.62cp-1f, x[j]);
    BB_EACH r[j] = fused_lanes(n[j], none - 0x1.217f7ep-12f, r[j]);
    BB_EACH tail[j] = fused_lanes(r[j], none + 0x1.63d002p-3f, none + 0x1.ffa2c6p-2f);
    BB_EACH tail[j] = fused_lanes(tail[j], r[j], none + 0x1.000054p0f);
    BB_EACH r[j] = fused_lanes(tail[j], r[j] * power[j], power[j]);
    BB_EACH x[j] = x[j] < -0x1.5d589ep6f ? none : r[j];  // log of the smallest normal number
#else
    using bits = Vector<uint32_t>::type;
    ReducedLanes<N> a;
    vec p[N];
    a.reduce(x);
    exp_tail<N>(p, a.r);
    BB_EACH p[j] = fused_lanes(fused_lanes(p[j], a.r[j], none + 1.0f), a.r[j], none + 1.0f);
    BB_EACH p[j] = vec(bits(p[j]) + (bits(a.shifted[j]) << 23));
    BB_EACH p[j] = x[j] < -0x1.5d589ep6f ? none : p[j];             // log of the smallest normal number
    BB_EACH x[j] = x[j] <= 0x1.62e42ep6f ? p[j] : x[j] + infinity;  // log of the largest; NaN lands here too
#endif
  }
};

// Vectors of e^x that are going to be rounded to bf16, which keeps 8 bits: these are right to 16. They take two thirds of
// the time.
struct ExpRounded {
  using vec = detail::Vector<float>::type;
  template <int N> static BB_INLINE void apply(vec* x) {
#if defined(__AVX512F__)
    using namespace detail;
    // With x / ln 2 = n + r it is 2^n 2^r, where |r| is at most 1 / 2 and 2^0 exact. Scaling by 2 to an infinity gives what
    // it should, whatever r is then.
    const vec none{};
    vec n[N], p[N];
    BB_EACH x[j] *= none + 0x1.715476p0f;
    BB_EACH n[j] = nearest_integer(x[j]);
    BB_EACH x[j] -= n[j];
    BB_EACH p[j] = fused_lanes(x[j], none + 0x1.3a02ccp-7f, none + 0x1.c9fc46p-5f);
    BB_EACH p[j] = fused_lanes(p[j], x[j], none + 0x1.ec0378p-3f);
    BB_EACH p[j] = fused_lanes(p[j], x[j], none + 0x1.62e12cp-1f);
    BB_EACH p[j] = fused_lanes(p[j], x[j], none + 1.0f);
    BB_EACH x[j] = scale_lanes(p[j], n[j]);
#else
    Exp::apply<N>(x);
#endif
  }
};

// Vectors of tanh(x).
struct Tanh {
  using vec = detail::Vector<float>::type;
  template <int N> static BB_INLINE void apply(vec* x) { detail::in_turns<Tanh, N>(x); }

  template <int N> static BB_INLINE void together(vec* x) {
    using namespace detail;
    using bits = Vector<uint32_t>::type;
    // With u = (e^(2 |x|) - 1) / 2 = 2^(n - 1) (e^r - 1) + (2^(n - 1) - 1 / 2) it is u / (1 + u): divided by what the sum
    // rounded is, and then mended by the remainder, which an estimate of the reciprocal is good enough for.
    const vec none{};
    vec u[N], q[N], half[N];
    BB_EACH u[j] = at_most(none + 10.0f, vec(bits(x[j]) & 0x7fffffffu));
    BB_EACH u[j] += u[j];
    ReducedLanes<N> a;
    a.reduce(u);
    exp_tail<N>(q, a.r);
    BB_EACH q[j] = fused_lanes(a.r[j] * a.r[j], q[j], a.r[j]);
    BB_EACH half[j] = vec((bits(a.shifted[j]) + 126) << 23);
    BB_EACH u[j] = fused_lanes(half[j], q[j], half[j] - 0.5f);
    BB_EACH q[j] = u[j] + 1.0f;
    BB_EACH half[j] = u[j] - (q[j] - 1.0f);
    BB_EACH {
      const vec inverse = estimate_reciprocal(q[j]), y = u[j] * inverse;
      const vec rest = fused_lanes(-half[j], y, fused_lanes(-q[j], y, u[j]));
      x[j] = vec(bits(fused_lanes(rest, inverse, y)) | (bits(x[j]) & 0x80000000u));
    }
  }
};

// What makes terms of a row in steps: `argument(c)` for each, `Function` for vectors of them, and then, where terms
// are not its values, `use(c, value)` for each.
struct Value {};
template <class Function, class Argument, class Use> struct Through {
  Argument argument;
  Use use;
};
template <class Function, class Argument, class Use = Value>
BB_INLINE Through<Function, Argument, Use> through(Argument argument, Use use = {}) {
  return {argument, use};
}

namespace detail {

// Sets the first `count` of L lanes to f(0), f(1), ..., and the others to one value. That is a condition and no shorter
// loop: whole vectors loaded after stores of a few lanes would have to wait for them.
template <int L, class T, class F> BB_INLINE void set_lanes(T* to, long count, T other, F f) {
  if (count == L) {
#pragma omp simd
    for (int l = 0; l < L; ++l) to[l] = f(l);
  } else {
#pragma omp simd
    for (int l = 0; l < L; ++l) to[l] = l < count ? f(l) : other;
  }
}

// The terms c, ..., c + count - 1 of a row, at most N vectors of them, and `other` for what is missing. They are counted in
// 32 bits, as many as a float has, so that what depends on the place fits into as many vectors.
template <int N, class T, class F> BB_INLINE void make_terms(T* terms, long c, long count, T other, F& f) {
  set_lanes<N * Vector<T>::width>(terms, count, other, [&](int l) __attribute__((always_inline)) { return f(c + l); });
}
template <int N, class Function, class Argument, class Use>
BB_INLINE void make_terms(float* terms, long c, long count, float other, Through<Function, Argument, Use>& f) {
  constexpr long W = Vector<float>::width, L = N * W;
  using vec = Vector<float>::type;
  alignas(BB_VECTOR_BYTES) float arguments[L], values[L];  // in registers, since loops over whole vectors are unrolled
  set_lanes<L>(arguments, count, 0.0f, [&](int l) __attribute__((always_inline)) { return f.argument(c + l); });
  vec x[N];
  BB_EACH x[j] = *(const vec*)(arguments + j * W);
  Function::template apply<N>(x);
  BB_EACH *(vec*)(values + j * W) = x[j];
  set_lanes<L>(terms, count, other, [&](int l) __attribute__((always_inline)) {
    if constexpr (same<Use, Value>) return values[l];
    else return f.use(c + l, values[l]);
  });
}

}  // namespace detail
}  // namespace bb

#undef BB_EACH

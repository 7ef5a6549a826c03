// Reductions along a row: sum_over, prod_over, max_over and min_over combine f(0), ..., f(n - 1) for a callable f, which
// may also store what it computes, so that one pass serves both:
//
//   total[r] = bb::sum_over<float>(n, [&](long c) { return y[c] = bb::exp(s[c] - top[r]); });
//
// f is called once for each c and is vectorised, so calls must not depend on one another. Terms are combined lane by
// lane in four vectors and then across them: not the order of the row, but the same order in every run. NaN passes
// through all four. A second argument, sum_over<float, 12>, is the greatest n there is, where that is known. What else is
// to go on meanwhile is called for each part of the row, with its first place, its terms and how many they are.
// Reductions down a column are not here: they are plain elementwise loops over rows.
#pragma once

#include "bb_lanes.hpp"
#include "bb_math.hpp"
#include "bb_round.hpp"
#include "bb_vector.hpp"

namespace bb {
namespace detail {

template <class T> constexpr T highest = T(__builtin_inff());
template <> inline constexpr int64_t highest<int64_t> = INT64_MAX;
template <class T> constexpr T lowest = T(-__builtin_inff());
template <> inline constexpr int64_t lowest<int64_t> = INT64_MIN;

// Combines the lower half of the lanes with the upper one, and so on with the result: half as wide each time, so that it is
// half the work.
template <class T, int N, class F, class V, int... I> BB_INLINE T across(V v, F combine, Lanes<I...>) {
  if constexpr (N == 2) {
    return combine(v[0], v[1]);
  } else {
    const auto lower = __builtin_shufflevector(v, v, I...), upper = __builtin_shufflevector(v, v, (I + N / 2)...);
    return across<T, N / 2>(combine(lower, upper), combine, typename MakeLanes<N / 4>::type{});
  }
}
template <class T, class F> BB_INLINE T across(typename Vector<T>::type v, F combine) {
  constexpr int N = Vector<T>::width;
  return across<T, N>(v, combine, typename MakeLanes<N / 2>::type{});
}

template <class T> struct SumLanes {
  using vec = typename Vector<T>::type;
  static constexpr T start = T(0);
  vec sum = vec{};
  BB_INLINE void add(vec x) { sum += x; }
  BB_INLINE void merge(const SumLanes& o) { sum += o.sum; }
  BB_INLINE T result() const {
    return across<T>(sum, [](auto a, auto b) __attribute__((always_inline)) { return a + b; });
  }
};

template <class T> struct ProductLanes {
  using vec = typename Vector<T>::type;
  static constexpr T start = T(1);
  vec product = vec{} + T(1);
  BB_INLINE void add(vec x) { product *= x; }
  BB_INLINE void merge(const ProductLanes& o) { product *= o.product; }
  BB_INLINE T result() const {
    return across<T>(product, [](auto a, auto b) __attribute__((always_inline)) { return a * b; });
  }
};

// Whether there were NaN among vectors.
template <class T> struct NaNs {
  using vec = typename Vector<T>::type;
  vec seen = vec{};
  BB_INLINE void look(vec x) { seen = x != x ? x : seen; }
  BB_INLINE void look_at_four(const vec* x) {
    BB_UNROLL for (int j = 0; j < 4; ++j) look(x[j]);
  }
  BB_INLINE T marked(T result) const {  // NaN if there were any
    return result + across<T>(seen, [](auto a, auto b) __attribute__((always_inline)) { return a + b; });
  }
};

#if defined(__AVX512F__)
// One comparison sees whether there is NaN in either of two vectors.
template <> struct NaNs<float> {
  using vec = Vector<float>::type;
  uint16_t ordered = 0xffff, too = 0xffff;  // lanes without NaN
  static BB_INLINE void compare(uint16_t& ordered, vec a, vec b) {
    __asm__("vcmpordps %2, %1, %0%{%0%}" : "+Yk"(ordered) : "v"(a), "v"(b));
  }
  BB_INLINE void look(vec x) { compare(ordered, x, x); }
  BB_INLINE void look_at_four(const vec* x) {
    compare(ordered, x[0], x[1]);
    compare(too, x[2], x[3]);
  }
  BB_INLINE float marked(float result) const { return (ordered & too) == 0xffff ? result : __builtin_nanf(""); }
};
#elif defined(__AVX__)
template <> struct NaNs<float> {
  using vec = Vector<float>::type;
  using bits = Vector<uint32_t>::type;
  bits seen = bits{};  // ones, which are NaN, in lanes that had any
  static BB_INLINE bits unordered(vec a, vec b) {
    __asm__("vcmpunordps %1, %0, %0" : "+x"(a) : "x"(b));
    return bits(a);
  }
  BB_INLINE void look(vec x) { seen |= unordered(x, x); }
  BB_INLINE void look_at_four(const vec* x) { seen |= unordered(x[0], x[1]) | unordered(x[2], x[3]); }
  BB_INLINE float marked(float result) const {
    return result + across<float>(vec(seen), [](auto a, auto b) __attribute__((always_inline)) { return a + b; });
  }
};
#endif

// Lanes are told with `end_run` after every `run` additions of four vectors at most. This is for those that any number of
// them may be added to: so many that their elements can still be counted.
struct Endless {
  static constexpr long run = any_length / 1024;
  BB_INLINE void end_run() {}
};

template <class T> struct Highest {
  static constexpr T start = lowest<T>;
  template <class V> static BB_INLINE V of(V a, V b) { return a > b ? a : b; }
};
template <class T> struct Least {
  static constexpr T start = highest<T>;
  template <class V> static BB_INLINE V of(V a, V b) { return a < b ? a : b; }
};

// The highest or the least term, of four vectors at a time. The processor's maximum drops NaN, so they are looked for
// beside it: that is much less to wait for than a maximum of two comparisons.
template <class T, class Pick> struct Extremes : Endless {
  using vec = typename Vector<T>::type;
  static constexpr T start = Pick::start;
  vec best[4] = {vec{} + start, vec{} + start, vec{} + start, vec{} + start};
  NaNs<T> nans;
  BB_INLINE void add(const vec* terms) {
    BB_UNROLL for (int j = 0; j < 4; ++j) best[j] = Pick::of(terms[j], best[j]);
    nans.look_at_four(terms);
  }
  BB_INLINE void add_one(vec terms) {
    best[0] = Pick::of(terms, best[0]);
    nans.look(terms);
  }
  BB_INLINE T result() const {
    const vec found = Pick::of(Pick::of(best[0], best[1]), Pick::of(best[2], best[3]));
    return nans.marked(across<T>(found, [](auto a, auto b) __attribute__((always_inline)) { return Pick::of(a, b); }));
  }
};

// Four vectors of terms at a time, each with lanes of its own.
template <class Lanes> struct Four : Endless {
  using vec = typename Lanes::vec;
  static constexpr auto start = Lanes::start;
  Lanes lanes[4];
  BB_INLINE void add(const vec* terms) {
    BB_UNROLL for (int j = 0; j < 4; ++j) lanes[j].add(terms[j]);
  }
  BB_INLINE void add_one(vec terms) { lanes[0].add(terms); }
  BB_INLINE auto result() {
    lanes[0].merge(lanes[1]);
    lanes[2].merge(lanes[3]);
    lanes[0].merge(lanes[2]);
    return lanes[0].result();
  }
};

// Floats are added up as such in runs of sixteen vectors, and the sums of runs as doubles: however long the row, its sum
// is wrong by little more than its own rounding, and costs little more than one of floats.
struct FloatSum {
  using vec = Vector<float>::type;
  using wide = Vector<double>::type;
  static constexpr float start = 0;
  static constexpr long run = 4;
  vec part{};
  BB_INLINE void add(const vec* terms) { add_one((terms[0] + terms[1]) + (terms[2] + terms[3])); }
  BB_INLINE void add_one(vec terms) { part += terms; }
  BB_INLINE void end_run() {
    low += lanes_from<0>(part, LanesOf<double>{});
    high += lanes_from<Vector<double>::width>(part, LanesOf<double>{});
    part = vec{};
  }
  BB_INLINE float result() {
    end_run();
    return float(across<double>(low + high, [](auto a, auto b) __attribute__((always_inline)) { return a + b; }));
  }

 private:
  wide low = wide{}, high = wide{};
  template <int First, int... I> static BB_INLINE wide lanes_from(vec v, Lanes<I...>) {
    const auto half = __builtin_shufflevector(v, v, (First + I)...);
#if defined(__AVX__)
    wide result;  // in one instruction, where GCC takes halves of it and goes through memory
    __asm__("vcvtps2pd %1, %0" : "=x"(result) : "x"(half));
    return result;
#else
    return __builtin_convertvector(half, wide);
#endif
  }
};

// Four vectors at a time, in runs of as many of these as the lanes ask for, then one by one, and what is left. Terms are
// added first: what is beside may store elsewhere, and compilers would keep them in memory over that.
template <class Lanes, class T, long Most, class F, class... Beside>
BB_INLINE T reduce_over(long n, F f, Beside&&... beside) {
  using vec = typename Vector<T>::type;
  constexpr long W = Vector<T>::width, L = 4 * W;
  Lanes lanes;
  long c = 0;
  for (const long whole = n / L * L; Most >= L && c < whole; lanes.end_run()) {
    const long end = whole - c <= Lanes::run * L ? whole : c + Lanes::run * L;
    for (; c < end; c += L) {
      alignas(BB_VECTOR_BYTES) T terms[L];  // lives in registers, since nothing else is kept in it
      make_terms<4>(terms, c, L, Lanes::start, f);
      lanes.add((const vec*)terms);
      (beside(c, terms, L), ...);
    }
  }
  for (; Most >= W && c + W <= n; c += W) {
    alignas(BB_VECTOR_BYTES) T terms[W];
    make_terms<1>(terms, c, W, Lanes::start, f);
    lanes.add_one(*(const vec*)terms);
    (beside(c, terms, W), ...);
  }
  if (c < n) {
    alignas(BB_VECTOR_BYTES) T terms[W];
    make_terms<1>(terms, c, n - c, Lanes::start, f);
    lanes.add_one(*(const vec*)terms);
    (beside(c, terms, n - c), ...);
  }
  return lanes.result();
}

template <class T> struct SumOf { using type = Four<SumLanes<T>>; };
template <> struct SumOf<float> { using type = FloatSum; };

}  // namespace detail

// What keeps the terms in a row as well.
struct Keep {
  float* to;
  template <long L> BB_INLINE void operator()(long c, const float (&terms)[L], long count) const {
    using vec = detail::Vector<float>::type;
    using mem = detail::Vector<float>::unaligned;
    constexpr long W = detail::Vector<float>::width;
    if (count == L) {
      BB_UNROLL for (int j = 0; j < L / W; ++j) *(mem*)(to + c + j * W) = *(const vec*)(terms + j * W);
    } else {
#pragma omp simd
      for (int l = 0; l < L; ++l) {
        if (l < count) to[c + l] = terms[l];
      }
    }
  }
};

// The same, rounded.
struct KeepRounded {
  bf16* to;
  template <long L> BB_INLINE void operator()(long c, const float (&terms)[L], long count) const {
    if constexpr (L == detail::rounded_at_once) detail::round_floats(to + c, terms, count);
    else detail::round_vector(to + c, terms, count);
  }
};

template <class T, long Most = detail::any_length, class F, class... Beside>
BB_INLINE T sum_over(long n, F f, Beside&&... beside) {
  return detail::reduce_over<typename detail::SumOf<T>::type, T, Most>(n, f, beside...);
}
template <class T, long Most = detail::any_length, class F, class... Beside>
BB_INLINE T prod_over(long n, F f, Beside&&... beside) {
  return detail::reduce_over<detail::Four<detail::ProductLanes<T>>, T, Most>(n, f, beside...);
}
template <class T, long Most = detail::any_length, class F, class... Beside>
BB_INLINE T max_over(long n, F f, Beside&&... beside) {
  return detail::reduce_over<detail::Extremes<T, detail::Highest<T>>, T, Most>(n, f, beside...);
}
template <class T, long Most = detail::any_length, class F, class... Beside>
BB_INLINE T min_over(long n, F f, Beside&&... beside) {
  return detail::reduce_over<detail::Extremes<T, detail::Least<T>>, T, Most>(n, f, beside...);
}

// The least and the greatest of `count` integers, `stride` apart; `count` is at least 1.
inline int64_t least(const int32_t* x, int64_t stride, int64_t count) {
  int32_t found = x[0];
  for (int64_t i = 1; i < count; ++i) found = x[i * stride] < found ? x[i * stride] : found;
  return found;
}
inline int64_t greatest(const int32_t* x, int64_t stride, int64_t count) {
  int32_t found = x[0];
  for (int64_t i = 1; i < count; ++i) found = x[i * stride] > found ? x[i * stride] : found;
  return found;
}

}  // namespace bb

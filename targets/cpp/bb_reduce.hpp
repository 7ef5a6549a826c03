// Reductions along a row: sum_over, prod_over, max_over and min_over combine f(0), ..., f(n - 1) for a callable f, which
// may also store what it computes, so that one pass serves both:
//
//   total[r] = bb::sum_over<float>(n, [&](long c) { return y[c] = bb::exp(s[c] - top[r]); });
//
// f is called once for each c and is vectorised, so calls must not depend on one another. Terms are combined lane by
// lane in four vectors and then across them: not the order of the row, but the same order in every run. NaN passes
// through all four. What else is to go on meanwhile is called for each part of the row, with its first place, its terms and
// how many they are. Reductions down a column are not here: they are plain elementwise loops over rows.
#pragma once

#include "bb_math.hpp"
#include "bb_round.hpp"
#include "bb_vector.hpp"

namespace bb {
namespace detail {

template <class T> constexpr T highest = T(__builtin_inff());
template <> inline constexpr int64_t highest<int64_t> = INT64_MAX;
template <class T> constexpr T lowest = T(-__builtin_inff());
template <> inline constexpr int64_t lowest<int64_t> = INT64_MIN;

// Lane H apart from each lane.
template <class T, int H, int... I>
BB_INLINE typename Vector<T>::type lanes_apart(typename Vector<T>::type v, Lanes<I...>) {
  return __builtin_shufflevector(v, v, (I ^ H)...);
}

// Combines lanes that are H apart, then H / 2, and so on; every lane ends with the result.
template <class T, int H, class F> BB_INLINE T across(typename Vector<T>::type v, F combine) {
  v = combine(v, lanes_apart<T, H>(v, LanesOf<T>{}));
  if constexpr (H > 1) return across<T, H / 2>(v, combine);
  else return v[0];
}

template <class T> struct SumLanes {
  using vec = typename Vector<T>::type;
  static constexpr T start = T(0);
  vec sum = vec{};
  BB_INLINE void add(vec x) { sum += x; }
  BB_INLINE void merge(const SumLanes& o) { sum += o.sum; }
  BB_INLINE T result() const {
    return across<T, Vector<T>::width / 2>(sum, [](vec a, vec b) __attribute__((always_inline)) { return a + b; });
  }
};

template <class T> struct ProductLanes {
  using vec = typename Vector<T>::type;
  static constexpr T start = T(1);
  vec product = vec{} + T(1);
  BB_INLINE void add(vec x) { product *= x; }
  BB_INLINE void merge(const ProductLanes& o) { product *= o.product; }
  BB_INLINE T result() const {
    return across<T, Vector<T>::width / 2>(product, [](vec a, vec b) __attribute__((always_inline)) { return a * b; });
  }
};

// The processor's maximum drops NaN, so NaN are gathered beside it: `bad` is zero until one is seen. That is much less
// to wait for than a maximum of two comparisons.
template <class T> struct MaximumLanes {
  using vec = typename Vector<T>::type;
  static constexpr T start = lowest<T>;
  vec top = vec{} + lowest<T>, bad = vec{};
  static BB_INLINE vec higher(vec a, vec b) { return a > b ? a : b; }
  BB_INLINE void add(vec x) {
    top = higher(x, top);
    bad = x != x ? x : bad;
  }
  BB_INLINE void merge(const MaximumLanes& o) {
    top = higher(o.top, top);
    bad += o.bad;
  }
  BB_INLINE T result() const {
    constexpr int half = Vector<T>::width / 2;
    return across<T, half>(top, [](vec a, vec b) __attribute__((always_inline)) { return higher(a, b); }) +
           across<T, half>(bad, [](vec a, vec b) __attribute__((always_inline)) { return a + b; });
  }
};

template <class T> struct MinimumLanes {
  using vec = typename Vector<T>::type;
  static constexpr T start = highest<T>;
  vec least = vec{} + highest<T>, bad = vec{};
  static BB_INLINE vec lower(vec a, vec b) { return a < b ? a : b; }
  BB_INLINE void add(vec x) {
    least = lower(x, least);
    bad = x != x ? x : bad;
  }
  BB_INLINE void merge(const MinimumLanes& o) {
    least = lower(o.least, least);
    bad += o.bad;
  }
  BB_INLINE T result() const {
    constexpr int half = Vector<T>::width / 2;
    return across<T, half>(least, [](vec a, vec b) __attribute__((always_inline)) { return lower(a, b); }) +
           across<T, half>(bad, [](vec a, vec b) __attribute__((always_inline)) { return a + b; });
  }
};

// Four vectors of terms at a time, each with lanes of its own.
template <class Lanes> struct Four {
  using vec = typename Lanes::vec;
  static constexpr auto start = Lanes::start;
  Lanes lanes[4];
  BB_INLINE void add(const vec* terms) {
    BB_UNROLL for (int j = 0; j < 4; ++j) lanes[j].add(terms[j]);
  }
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
  wide low = wide{}, high = wide{};
  template <int First, int... I> static BB_INLINE wide lanes_from(vec v, Lanes<I...>) {
    return __builtin_convertvector(__builtin_shufflevector(v, v, (First + I)...), wide);
  }
  vec part[4] = {};
  int filled = 0;
  BB_INLINE void add(const vec* terms) {
    BB_UNROLL for (int j = 0; j < 4; ++j) part[j] += terms[j];
    if (++filled == 4) widen();
  }
  BB_INLINE void widen() {
    const vec sum = (part[0] + part[1]) + (part[2] + part[3]);
    low += lanes_from<0>(sum, LanesOf<double>{});
    high += lanes_from<Vector<double>::width>(sum, LanesOf<double>{});
    BB_UNROLL for (int j = 0; j < 4; ++j) part[j] = vec{};
    filled = 0;
  }
  BB_INLINE float result() {
    if (filled) widen();
    constexpr int half = Vector<double>::width / 2;
    const auto add = [](wide a, wide b) __attribute__((always_inline)) { return a + b; };
    return float(across<double, half>(low + high, add));
  }
};

template <class Lanes, class T, class F, class... Beside> BB_INLINE T reduce_over(long n, F f, Beside&&... beside) {
  using vec = typename Vector<T>::type;
  constexpr long W = Vector<T>::width, L = 4 * W;
  Lanes lanes;
  long c = 0;
  for (; c + L <= n; c += L) {
    alignas(BB_VECTOR_BYTES) T terms[L];  // lives in registers, since nothing else is kept in it
#pragma omp simd
    for (long l = 0; l < L; ++l) terms[l] = f(c + l);
    (beside(c, terms, L), ...);
    lanes.add((const vec*)terms);
  }
  if (c < n) {
    alignas(BB_VECTOR_BYTES) T terms[L];
    for (long l = 0; l < L; ++l) terms[l] = Lanes::start;
#pragma omp simd
    for (long l = 0; l < n - c; ++l) terms[l] = f(c + l);
    (beside(c, terms, n - c), ...);
    lanes.add((const vec*)terms);
  }
  return lanes.result();
}

template <class T> struct SumOf { using type = Four<SumLanes<T>>; };
template <> struct SumOf<float> { using type = FloatSum; };

}  // namespace detail

// What keeps the terms, rounded, in a row as well.
struct KeepRounded {
  bf16* to;
  BB_INLINE void operator()(long c, const float* terms, long count) const {
    detail::round_floats(to + c, terms, count);
  }
};

template <class T, class F, class... Beside> BB_INLINE T sum_over(long n, F f, Beside&&... beside) {
  return detail::reduce_over<typename detail::SumOf<T>::type, T>(n, f, beside...);
}
template <class T, class F, class... Beside> BB_INLINE T prod_over(long n, F f, Beside&&... beside) {
  return detail::reduce_over<detail::Four<detail::ProductLanes<T>>, T>(n, f, beside...);
}
template <class T, class F, class... Beside> BB_INLINE T max_over(long n, F f, Beside&&... beside) {
  return detail::reduce_over<detail::Four<detail::MaximumLanes<T>>, T>(n, f, beside...);
}
template <class T, class F, class... Beside> BB_INLINE T min_over(long n, F f, Beside&&... beside) {
  return detail::reduce_over<detail::Four<detail::MinimumLanes<T>>, T>(n, f, beside...);
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

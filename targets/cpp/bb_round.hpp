// Rows of bf16 that are rounded from floats: left operands of block products in pairs (bb_tile.hpp), where they were
// computed. Processors that multiply such pairs also round two vectors in one instruction; compilers do not find it.
// It treats subnormal numbers as zero, as the products do.
#pragma once

#include "bb_types.hpp"
#include "bb_vector.hpp"

namespace bb {
namespace detail {

// How many floats `round_floats` takes at a time.
constexpr long rounded_at_once = 4 * Vector<float>::width;

// Stores the first `count` of `rounded_at_once` floats; those at `from` are aligned.
BB_INLINE void round_floats(bf16* to, const float* from, long count) {
  constexpr long L = rounded_at_once;
  bf16 part[L];
  bf16* const whole = count == L ? to : part;
#if defined(__AVX512BF16__)
  using vec = Vector<float>::type;
  typedef float pairs __attribute__((vector_size(64), aligned(2), may_alias));
  const vec* v = (const vec*)from;
  BB_UNROLL for (int j = 0; j < 2; ++j) {
    vec both;
    // Compilers differ in the names and the types of their functions for this.
    __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(both) : "v"(v[2 * j]), "v"(v[2 * j + 1]));
    *(pairs*)(whole + 32 * j) = both;
  }
#else
#pragma omp simd
  for (long l = 0; l < L; ++l) whole[l] = store<bf16>(from[l]);
#endif
  for (long l = 0; l < count && whole == part; ++l) to[l] = part[l];
}

// Stores the first `count` of a vector of floats; they are aligned.
BB_INLINE void round_vector(bf16* to, const float* from, long count) {
  constexpr long W = Vector<float>::width;
  bf16 part[W];
  bf16* const whole = count == W ? to : part;
#if defined(__AVX512BF16__)
  typedef float pairs __attribute__((vector_size(32), aligned(2), may_alias));
  pairs all;
  __asm__("vcvtneps2bf16 %1, %t0" : "=v"(all) : "v"(*(const Vector<float>::type*)from));
  *(pairs*)whole = all;
#else
#pragma omp simd
  for (long l = 0; l < W; ++l) whole[l] = store<bf16>(from[l]);
#endif
  for (long l = 0; l < count && whole == part; ++l) to[l] = part[l];
}

}  // namespace detail

// Stores f(0), ..., f(n - 1), rounded. f is vectorised, so calls must not depend on one another.
template <long Most = detail::any_length, class F> BB_INLINE void round_row(bf16* to, long n, F f) {
  constexpr long L = detail::rounded_at_once;
  for (long c = 0; c < n; c += L) {
    alignas(BB_VECTOR_BYTES) float values[L];
    const long count = n - c < L ? n - c : L;
    if (Most >= L && count == L) {
#pragma omp simd
      for (long l = 0; l < L; ++l) values[l] = f(c + l);
    } else {
      for (long l = count; l < L; ++l) values[l] = 0;
#pragma omp simd
      for (long l = 0; l < count; ++l) values[l] = f(c + l);
    }
    detail::round_floats(to + c, values, count);
  }
}

}  // namespace bb

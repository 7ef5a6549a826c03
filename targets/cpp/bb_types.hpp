// Storage types and their conversions. A generated kernel keeps values in memory as one of f32, f64, f16, bf16, i32
// or bool, and computes in float, double or int64_t; `load` and `store` are the only way between the two. f16 and bf16
// are storage only: they carry no arithmetic. All conversions are branch-free selects on integers, so that they
// vectorise inside `#pragma omp simd` loops; rounding is to nearest, ties to even, and infinities and NaN survive.
#pragma once

#include <stdint.h>

#define BB_INLINE inline __attribute__((always_inline))

namespace bb {

struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};

// The type in which values of a storage type are computed: compute_t<f16> is float.
template <class S> struct Compute { using type = S; };
template <> struct Compute<f16> { using type = float; };
template <> struct Compute<bf16> { using type = float; };
template <> struct Compute<int32_t> { using type = int64_t; };
template <> struct Compute<uint8_t> { using type = bool; };
template <class S> using compute_t = typename Compute<S>::type;

namespace detail {

BB_INLINE float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }
BB_INLINE uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }

// Moves exponent and mantissa into place, then mends the exponent: normal numbers by a constant, infinities and NaN by
// twice that, subnormal ones by a subtraction of floats, which renormalises them without touching subnormal floats.
BB_INLINE float float_of_half(uint16_t h) {
  const uint32_t rebias = (127 - 15) << 23;
  const uint32_t shifted = uint32_t(h & 0x7fff) << 13;
  const uint32_t exponent = shifted & 0x0f800000;
  const uint32_t normal = shifted + rebias;
  const uint32_t special = normal + rebias;
  const float subnormal = float_of(normal + (1u << 23)) - float_of(rebias + (1u << 23));
  uint32_t u = exponent == 0x0f800000 ? special : normal;
  u = exponent == 0 ? bits_of(subnormal) : u;
  return float_of(u | uint32_t(h & 0x8000) << 16);
}

BB_INLINE uint16_t half_of_float(float x) {
  const uint32_t magic = ((127 - 15) + (23 - 10) + 1) << 23;  // adding it leaves a subnormal half in the low bits
  const uint32_t sign = (bits_of(x) >> 16) & 0x8000;
  const uint32_t u = bits_of(x) & 0x7fffffff;
  const uint32_t subnormal = bits_of(float_of(u) + float_of(magic)) - magic;
  const uint32_t odd = (u >> 13) & 1;
  const uint32_t normal = (u - (uint32_t(127 - 15) << 23) + 0xfff + odd) >> 13;
  const uint32_t nan = 0x7e00 | ((u >> 13) & 0x3ff);
  uint32_t h = u < (uint32_t(113) << 23) ? subnormal : normal;
  h = u >= (uint32_t(143) << 23) ? 0x7c00 : h;  // 2^16 and above; rounding takes 65520 and above there by itself
  h = u > 0x7f800000 ? nan : h;
  return uint16_t(h | sign);
}

BB_INLINE uint16_t brain_of_float(float x) {
  const uint32_t u = bits_of(x);
  const uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  const uint32_t nan = (u >> 16) | 0x40;
  return uint16_t((u & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

template <class S> struct Store {
  template <class C> static BB_INLINE S from(C x) { return S(x); }
};
template <> struct Store<f16> {
  static BB_INLINE f16 from(float x) { return f16{half_of_float(x)}; }
};
template <> struct Store<bf16> {
  static BB_INLINE bf16 from(float x) { return bf16{brain_of_float(x)}; }
};
template <> struct Store<uint8_t> {
  template <class C> static BB_INLINE uint8_t from(C x) { return x != C(0); }
};

}  // namespace detail

BB_INLINE float load(float x) { return x; }
BB_INLINE double load(double x) { return x; }
BB_INLINE float load(f16 x) { return detail::float_of_half(x.bits); }
BB_INLINE float load(bf16 x) { return detail::float_of(uint32_t(x.bits) << 16); }
BB_INLINE int64_t load(int32_t x) { return x; }
BB_INLINE int64_t load(int64_t x) { return x; }
BB_INLINE bool load(uint8_t x) { return x != 0; }

// store<S>(x): the value of storage type S nearest to x, as in `y[i] = bb::store<bb::bf16>(t[i])`.
template <class S, class C> BB_INLINE S store(C x) { return detail::Store<S>::from(x); }

template <class S> BB_INLINE void fill(S* to, int64_t count, S value) {
  for (int64_t i = 0; i < count; ++i) to[i] = value;
}

}  // namespace bb

// Storage types and their conversions. A kernel keeps values in global and shared memory as one of f32, f64, f16,
// bf16, i32 or bool, and computes in float, double or int64_t; `load` and `store` are the way between the two. f16 and
// bf16 are storage only, and operands of tensor cores: they carry no arithmetic.
#pragma once

#include <stdint.h>

#define BB_INLINE __device__ __forceinline__

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

BB_INLINE float load(float x) { return x; }
BB_INLINE double load(double x) { return x; }
BB_INLINE float load(bf16 x) { return __uint_as_float(uint32_t(x.bits) << 16); }
BB_INLINE float load(f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
BB_INLINE int64_t load(int32_t x) { return x; }
BB_INLINE int64_t load(int64_t x) { return x; }
BB_INLINE bool load(uint8_t x) { return x != 0; }

namespace detail {

template <class S> struct Store {
  template <class C> static BB_INLINE S from(C x) { return S(x); }
};
template <> struct Store<f16> {
  static BB_INLINE f16 from(float x) {
    f16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
  }
};
template <> struct Store<bf16> {
  static BB_INLINE bf16 from(float x) {
    bf16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
  }
};
template <> struct Store<uint8_t> {
  template <class C> static BB_INLINE uint8_t from(C x) { return x != C(0); }
};

}  // namespace detail

// store<S>(x): the value of storage type S nearest to x.
template <class S, class C> BB_INLINE S store(C x) { return detail::Store<S>::from(x); }

// Two values as a pair of 16-bit numbers, the first in the low half.
template <class S> BB_INLINE uint32_t pair_of(float first, float second);
template <> BB_INLINE uint32_t pair_of<f16>(float first, float second) {
  uint32_t y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(second), "f"(first));
  return y;
}
template <> BB_INLINE uint32_t pair_of<bf16>(float first, float second) {
  uint32_t y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(second), "f"(first));
  return y;
}

}  // namespace bb

// Helpers of generated code outside of blocks; host and device share them.
static __host__ __device__ __forceinline__ int64_t bb_blocks(int64_t size, int64_t block) {
  return (size + block - 1) / block;
}
static BB_INLINE bool bb_inside(int64_t place, int64_t size) { return (place >= 0) & (place < size); }
// How many positions of an index a block that starts at `start` has.
static BB_INLINE int bb_count(int64_t size, int64_t start, int block) {
  const int64_t rest = size - start;
  return rest < block ? int(rest) : block;
}

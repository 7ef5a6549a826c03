// Vectors as wide as the processor's registers, by the compiler's vector extension: one source for AVX-512, AVX2, SSE2
// and NEON. What the block product and the reductions are written in; generated code does not use it.
#pragma once

#include "bb_fused.hpp"
#include "bb_types.hpp"

#include <stddef.h>
#include <stdint.h>

#if defined(__AVX512F__)
#define BB_VECTOR_BYTES 64
#define BB_VECTOR_REGISTERS 32
#elif defined(__AVX__)
#define BB_VECTOR_BYTES 32
#define BB_VECTOR_REGISTERS 16
#elif defined(__aarch64__)
#define BB_VECTOR_BYTES 16
#define BB_VECTOR_REGISTERS 32
#else
#define BB_VECTOR_BYTES 16
#define BB_VECTOR_REGISTERS 16
#endif

#define BB_UNROLL _Pragma("GCC unroll 16")

// Keeps a vector in its register: without it GCC reads a row of B from memory again for every row of A.
#if defined(__x86_64__)
#define BB_IN_REGISTER(v) __asm__("" : "+v"(v))
#elif defined(__aarch64__)
#define BB_IN_REGISTER(v) __asm__("" : "+w"(v))
#else
#define BB_IN_REGISTER(v) ((void)0)
#endif

namespace bb::detail {

template <class T> struct Vector {
  static constexpr int width = BB_VECTOR_BYTES / sizeof(T);
  typedef T type __attribute__((vector_size(BB_VECTOR_BYTES)));
  typedef T unaligned __attribute__((vector_size(BB_VECTOR_BYTES), aligned(alignof(T)), may_alias));
};

// Rows of at most `Most` entries may lie in less memory than the vectors that such rows never fill: compilers are not
// shown loops over those, of which they would warn. This is for rows of which nothing is known.
inline constexpr long any_length = PTRDIFF_MAX;

template <class A, class B> constexpr bool same = false;
template <class A> constexpr bool same<A, A> = true;

// a * b + c lane by lane, as `fused` for numbers. By the compilers' own names for the instruction: the header that has
// portable ones takes longer to compile than a kernel, and GCC does not make one instruction of a loop reliably.
template <class V> BB_INLINE V fused_lanes(V a, V b, V c) { return a * b + c; }
#if BB_FUSED
using Floats = Vector<float>::type;
using Doubles = Vector<double>::type;
#if __has_builtin(__builtin_elementwise_fma)
BB_INLINE Floats fused_lanes(Floats a, Floats b, Floats c) { return __builtin_elementwise_fma(a, b, c); }
BB_INLINE Doubles fused_lanes(Doubles a, Doubles b, Doubles c) { return __builtin_elementwise_fma(a, b, c); }
#elif defined(__AVX512F__)  // of all lanes, rounded as set
BB_INLINE Floats fused_lanes(Floats a, Floats b, Floats c) { return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4); }
BB_INLINE Doubles fused_lanes(Doubles a, Doubles b, Doubles c) { return __builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4); }
#elif defined(__FMA__)
BB_INLINE Floats fused_lanes(Floats a, Floats b, Floats c) { return __builtin_ia32_vfmaddps256(a, b, c); }
BB_INLINE Doubles fused_lanes(Doubles a, Doubles b, Doubles c) { return __builtin_ia32_vfmaddpd256(a, b, c); }
#else
template <class V> BB_INLINE V fused_each(V a, V b, V c) {
  BB_UNROLL for (size_t l = 0; l < sizeof(V) / sizeof(a[0]); ++l) c[l] = fused(a[l], b[l], c[l]);
  return c;
}
BB_INLINE Floats fused_lanes(Floats a, Floats b, Floats c) { return fused_each(a, b, c); }
BB_INLINE Doubles fused_lanes(Doubles a, Doubles b, Doubles c) { return fused_each(a, b, c); }
#endif
#endif

// The lane numbers 0, ..., N - 1 as template arguments, for shuffles.
template <int...> struct Lanes {};
template <int N, int... I> struct MakeLanes : MakeLanes<N - 1, N - 1, I...> {};
template <int... I> struct MakeLanes<0, I...> { using type = Lanes<I...>; };
template <class T> using LanesOf = typename MakeLanes<Vector<T>::width>::type;

}  // namespace bb::detail

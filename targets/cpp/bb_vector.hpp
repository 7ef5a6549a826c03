// Vectors as wide as the processor's registers, by the compiler's vector extension: one source for AVX-512, AVX2, SSE2
// and NEON. What the block product and the reductions are written in; generated code does not use it.
#pragma once

#include "bb_types.hpp"

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

template <class A, class B> constexpr bool same = false;
template <class A> constexpr bool same<A, A> = true;

// The lane numbers 0, ..., N - 1 as template arguments, for shuffles.
template <int...> struct Lanes {};
template <int N, int... I> struct MakeLanes : MakeLanes<N - 1, N - 1, I...> {};
template <int... I> struct MakeLanes<0, I...> { using type = Lanes<I...>; };
template <class T> using LanesOf = typename MakeLanes<Vector<T>::width>::type;

}  // namespace bb::detail

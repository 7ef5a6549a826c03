// Multiply-add rounded once, where the processor has an instruction for it; elsewhere it is rounded twice. What block
// products and polynomials are written in. Everything else is built with -ffp-contract=off: a compiler that contracts as
// it likes rounds x * s in one way where a maximum is taken and in another where the maximum is subtracted.
#pragma once

#include "bb_types.hpp"

#if defined(__FMA__) || defined(__AVX512F__) || defined(__aarch64__) || defined(__FP_FAST_FMAF)
#define BB_FUSED 1
#else
#define BB_FUSED 0
#endif

namespace bb::detail {

template <class T> BB_INLINE T fused(T a, T b, T c) { return a * b + c; }  // integers

// a * b + c for numbers; vectorises inside `#pragma omp simd` loops.
BB_INLINE float fused(float a, float b, float c) { return BB_FUSED ? __builtin_fmaf(a, b, c) : a * b + c; }
BB_INLINE double fused(double a, double b, double c) { return BB_FUSED ? __builtin_fma(a, b, c) : a * b + c; }

}  // namespace bb::detail

#ifndef TWO_KERNELS_H
#define TWO_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The program two_kernels, computed by 2 kernels.
 *
 *   X: input; m x n; single precision numbers
 *   Y: output, written; m; single precision numbers
 *   T: memory for intermediate results, allocated by the caller; its contents do not matter; m x n; single precision numbers
 *   size_m: the extent of m
 *   size_n: the extent of n
 *   threads: how many threads to use, at least 1; the result does not depend on it
 *
 * Arrays are dense and row-major. Outputs and intermediate memory must not overlap any other array. */
void bb_two_kernels(
    const float* X,
    float* Y,
    float* T,
    int64_t size_m,
    int64_t size_n,
    int threads);

#ifdef __cplusplus
}
#endif

#endif

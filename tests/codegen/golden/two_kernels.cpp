#include "bb.hpp"

#include <omp.h>
#include <stddef.h>
#include <stdint.h>

[[maybe_unused]] static int64_t bb_blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }
[[maybe_unused]] static size_t bb_aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }
[[maybe_unused]] static bool bb_inside(int64_t place, int64_t size) { return (place >= 0) & (place < size); }

namespace generated {

// In parallel over m, n. Reads X; writes T.
static void first(const float* __restrict X, float* __restrict T, int64_t size_m, int64_t size_n, int threads) {
  constexpr int64_t block_m = 4;
  constexpr int64_t block_n = 8;
  #pragma omp parallel num_threads(threads) firstprivate(size_m, size_n)
  {
    #pragma omp for collapse(2) schedule(static)
    for (int64_t m_number = 0; m_number < bb_blocks(size_m, block_m); ++m_number)
    for (int64_t n_number = 0; n_number < bb_blocks(size_n, block_n); ++n_number) {
      const int64_t m0 = m_number * block_m;
      const int64_t m_count = bb::minimum(block_m, size_m - m0);
      const int64_t n0 = n_number * block_n;
      const int64_t n_count = bb::minimum(block_n, size_n - n0);
      float* const T_block = T + (m0 * size_n + n0);
      const float* const X_block = X + (m0 * size_n + n0);

      // T[m, n] = exp(X[m, n])
      for (int64_t row = 0; row < m_count; ++row) {
        #pragma omp simd
        for (int64_t col = 0; col < n_count; ++col) {
          T_block[row * size_n + col] = bb::exp(X_block[row * size_n + col]);
        }
      }
    }
  }
}

// In parallel over m. Reads T; writes Y.
static void second(
    const float* __restrict T,
    float* __restrict Y,
    int64_t size_m,
    int64_t size_n,
    int threads) {
  constexpr int64_t block_m = 3;
  constexpr int64_t block_n = 5;
  #pragma omp parallel num_threads(threads) firstprivate(size_m, size_n)
  {
    #pragma omp for schedule(static)
    for (int64_t m_number = 0; m_number < bb_blocks(size_m, block_m); ++m_number) {
      const int64_t m0 = m_number * block_m;
      const int64_t m_count = bb::minimum(block_m, size_m - m0);
      alignas(64) float total[block_m];
      alignas(64) float row_sum_1[block_m];
      float* const Y_block = Y + m0;

      // total = 0
      #pragma omp simd
      for (int64_t row = 0; row < m_count; ++row) total[row] = 0.0f;
      for (int64_t n_number = 0; n_number < bb_blocks(size_n, block_n); ++n_number) {
        const int64_t n0 = n_number * block_n;
        const int64_t n_count = bb::minimum(block_n, size_n - n0);
        const float* const T_block = T + (m0 * size_n + n0);

        // total := total + row_sum(T[m, n])
        for (int64_t row = 0; row < m_count; ++row) {
          row_sum_1[row] = bb::sum_over<float, block_n>(n_count, [&](int64_t col) {
            return T_block[row * size_n + col];
          });
        }
        #pragma omp simd
        for (int64_t row = 0; row < m_count; ++row) total[row] = total[row] + row_sum_1[row];
      }

      // Y[m] = total
      #pragma omp simd
      for (int64_t row = 0; row < m_count; ++row) Y_block[row] = total[row];
    }
  }
}

}  // namespace generated

extern "C" void bb_two_kernels(const float* X, float* Y, float* T, int64_t size_m, int64_t size_n, int threads) {
  generated::first(X, T, size_m, size_n, threads);
  generated::second(T, Y, size_m, size_n, threads);
}

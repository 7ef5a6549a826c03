#include "bb.hpp"

#include <omp.h>
#include <stddef.h>
#include <stdint.h>

[[maybe_unused]] static int64_t bb_blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }
[[maybe_unused]] static size_t bb_aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }
[[maybe_unused]] static bool bb_inside(int64_t place, int64_t size) { return (place >= 0) & (place < size); }

namespace generated {

// In parallel over m. Reads X, g; writes Y.
static void layer_norm_kernel(
    const float* __restrict X,
    const float* __restrict g,
    float* __restrict Y,
    int64_t size_m,
    int64_t size_k,
    int threads) {
  constexpr int64_t block_m = 8;
  constexpr int64_t block_k = 8;
  const bool Y_streamed = size_m * size_k * sizeof(float) > bb::streamed_bytes;
  #pragma omp parallel num_threads(threads) firstprivate(size_m, size_k)
  {
    #pragma omp for schedule(static)
    for (int64_t m_number = 0; m_number < bb_blocks(size_m, block_m); ++m_number) {
      const int64_t m0 = m_number * block_m;
      const int64_t m_count = bb::minimum(block_m, size_m - m0);
      alignas(64) float total[block_m];
      alignas(64) float mean[block_m];
      alignas(64) float square[block_m];
      alignas(64) float scale[block_m];
      alignas(64) float row_sum_1[block_m];
      alignas(64) float row_sum_2[block_m];

      // total = 0
      #pragma omp simd
      for (int64_t row = 0; row < m_count; ++row) total[row] = 0.0f;
      for (int64_t k_number = 0; k_number < bb_blocks(size_k, block_k); ++k_number) {
        const int64_t k0 = k_number * block_k;
        const int64_t k_count = bb::minimum(block_k, size_k - k0);
        const float* const X_block = X + (m0 * size_k + k0);

        // total := total + row_sum(X[m, k])
        for (int64_t row = 0; row < m_count; ++row) {
          row_sum_1[row] = bb::sum_over<float, block_k>(k_count, [&](int64_t col) {
            return X_block[row * size_k + col];
          });
        }
        #pragma omp simd
        for (int64_t row = 0; row < m_count; ++row) total[row] = total[row] + row_sum_1[row];
      }

      // mean = total / size(k)
      #pragma omp simd
      for (int64_t row = 0; row < m_count; ++row) mean[row] = total[row] / float(size_k);

      // square = 0
      #pragma omp simd
      for (int64_t row = 0; row < m_count; ++row) square[row] = 0.0f;
      for (int64_t k_number = 0; k_number < bb_blocks(size_k, block_k); ++k_number) {
        const int64_t k0 = k_number * block_k;
        const int64_t k_count = bb::minimum(block_k, size_k - k0);
        const float* const X_block = X + (m0 * size_k + k0);

        // square := square + row_sum(row_shift(X[m, k], -mean) ^ 2)
        for (int64_t row = 0; row < m_count; ++row) {
          const float negate_value = -mean[row];
          row_sum_2[row] = bb::sum_over<float, block_k>(k_count, [&](int64_t col) {
            const float row_shift_value = X_block[row * size_k + col] + negate_value;
            return row_shift_value * row_shift_value;
          });
        }
        #pragma omp simd
        for (int64_t row = 0; row < m_count; ++row) square[row] = square[row] + row_sum_2[row];
      }

      // scale = rsqrt(square / size(k) + 1e-05)
      #pragma omp simd
      for (int64_t row = 0; row < m_count; ++row) scale[row] = bb::rsqrt((square[row] / float(size_k)) + 1e-05f);
      for (int64_t k_number = 0; k_number < bb_blocks(size_k, block_k); ++k_number) {
        const int64_t k0 = k_number * block_k;
        const int64_t k_count = bb::minimum(block_k, size_k - k0);
        float* const Y_block = Y + (m0 * size_k + k0);
        const float* const X_block = X + (m0 * size_k + k0);
        const float* const g_block = g + k0;

        // Y[m, k] = col_scale(row_scale(row_shift(X[m, k], -mean), scale), g[k])
        for (int64_t row = 0; row < m_count; ++row) {
          const float negate_value_1 = -mean[row];
          const float scale_entry = scale[row];
          bb::write_row<block_k>(Y_block + row * size_k, k_count, Y_streamed, [&](int64_t col) {
            return ((X_block[row * size_k + col] + negate_value_1) * scale_entry) * g_block[col];
          });
        }
        if (Y_streamed) bb::settle_streams();
      }
    }
  }
}

}  // namespace generated

extern "C" void bb_layer_norm(const float* X, const float* g, float* Y, int64_t size_m, int64_t size_k, int threads) {
  generated::layer_norm_kernel(X, g, Y, size_m, size_k, threads);
}

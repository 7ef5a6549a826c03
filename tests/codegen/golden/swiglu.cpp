#include "bb.hpp"

#include <omp.h>
#include <stddef.h>
#include <stdint.h>

[[maybe_unused]] static int64_t bb_blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }
[[maybe_unused]] static size_t bb_aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }
[[maybe_unused]] static bool bb_inside(int64_t place, int64_t size) { return (place >= 0) & (place < size); }

namespace generated {

// In parallel over m. Reads X, W1, W3, W2; writes Y.
static void swiglu_kernel(
    const float* __restrict X,
    const float* __restrict W1,
    const float* __restrict W3,
    const float* __restrict W2,
    float* __restrict Y,
    int64_t size_m,
    int64_t size_d,
    int64_t size_f,
    int threads) {
  constexpr int64_t block_m = 8;
  constexpr int64_t block_d = 8;
  constexpr int64_t block_f = 11;
  constexpr int64_t block_e = 8;
  #pragma omp parallel num_threads(threads) firstprivate(size_m, size_d, size_f)
  {
    const size_t bytes_acc = bb_aligned(bb_blocks(size_d, block_e) * block_m * block_e * sizeof(float));
    char* memory = bb::workspace(bytes_acc);
    float* const acc = reinterpret_cast<float*>(memory);
    #pragma omp for schedule(static)
    for (int64_t m_number = 0; m_number < bb_blocks(size_m, block_m); ++m_number) {
      const int64_t m0 = m_number * block_m;
      const int64_t m_count = bb::minimum(block_m, size_m - m0);
      alignas(64) float up[block_m * block_f];
      alignas(64) float gate[block_m * block_f];
      alignas(64) float multiply_1[block_m * block_f];
      for (int64_t e_number = 0; e_number < bb_blocks(size_d, block_e); ++e_number) {
        const int64_t e0 = e_number * block_e;
        const int64_t e_count = bb::minimum(block_e, size_d - e0);
        float* const acc_e = acc + (e_number * block_m * block_e);

        // acc[e] = 0
        for (int64_t row = 0; row < m_count; ++row) {
          #pragma omp simd
          for (int64_t col = 0; col < e_count; ++col) acc_e[row * block_e + col] = 0.0f;
        }
      }
      for (int64_t f_number = 0; f_number < bb_blocks(size_f, block_f); ++f_number) {
        const int64_t f0 = f_number * block_f;
        const int64_t f_count = bb::minimum(block_f, size_f - f0);
        if (size_d == 0) {

          // up = 0
          for (int64_t row = 0; row < m_count; ++row) {
            #pragma omp simd
            for (int64_t col = 0; col < f_count; ++col) up[row * block_f + col] = 0.0f;
          }
        }
        if (size_d == 0) {

          // gate = 0
          for (int64_t row = 0; row < m_count; ++row) {
            #pragma omp simd
            for (int64_t col = 0; col < f_count; ++col) gate[row * block_f + col] = 0.0f;
          }
        }
        for (int64_t d_number = 0; d_number < bb_blocks(size_d, block_d); ++d_number) {
          const int64_t d0 = d_number * block_d;
          const int64_t d_count = bb::minimum(block_d, size_d - d0);
          const float* const X_block = X + (m0 * size_d + d0);
          const float* const W1_block = W1 + (d0 * size_f + f0);
          const float* const W3_block = W3 + (d0 * size_f + f0);

          // up := up + dot(X[m, d], transpose(W1[d, f]))
          if (d_number == 0) bb::dot_kn_set(up, block_f, X_block, size_d, W1_block, size_f, m_count, f_count, d_count);
          else bb::dot_kn_add(up, block_f, X_block, size_d, W1_block, size_f, m_count, f_count, d_count);

          // gate := gate + dot(X[m, d], transpose(W3[d, f]))
          if (d_number == 0) bb::dot_kn_set(gate, block_f, X_block, size_d, W3_block, size_f, m_count, f_count, d_count);
          else bb::dot_kn_add(gate, block_f, X_block, size_d, W3_block, size_f, m_count, f_count, d_count);
        }
        for (int64_t e_number = 0; e_number < bb_blocks(size_d, block_e); ++e_number) {
          const int64_t e0 = e_number * block_e;
          const int64_t e_count = bb::minimum(block_e, size_d - e0);
          float* const acc_e = acc + (e_number * block_m * block_e);
          const float* const W2_block = W2 + (f0 * size_d + e0);

          // acc[e] := acc[e] + dot(silu(up) * gate, transpose(W2[f, e]))
          for (int64_t row = 0; row < m_count; ++row) {
            #pragma omp simd
            for (int64_t col = 0; col < f_count; ++col) {
              multiply_1[row * block_f + col] = bb::silu(up[row * block_f + col]) * gate[row * block_f + col];
            }
          }
          bb::dot_kn_add(acc_e, block_e, multiply_1, block_f, W2_block, size_d, m_count, e_count, f_count);
        }
      }
      for (int64_t e_number = 0; e_number < bb_blocks(size_d, block_e); ++e_number) {
        const int64_t e0 = e_number * block_e;
        const int64_t e_count = bb::minimum(block_e, size_d - e0);
        float* const Y_block = Y + (m0 * size_d + e0);
        float* const acc_e = acc + (e_number * block_m * block_e);

        // Y[m, e] = acc[e]
        for (int64_t row = 0; row < m_count; ++row) {
          #pragma omp simd
          for (int64_t col = 0; col < e_count; ++col) Y_block[row * size_d + col] = acc_e[row * block_e + col];
        }
      }
    }
  }
}

}  // namespace generated

extern "C" void bb_swiglu(
    const float* X,
    const float* W1,
    const float* W3,
    const float* W2,
    float* Y,
    int64_t size_m,
    int64_t size_d,
    int64_t size_f,
    int threads) {
  generated::swiglu_kernel(X, W1, W3, W2, Y, size_m, size_d, size_f, threads);
}

#include "bb.hpp"

#include <omp.h>
#include <stddef.h>
#include <stdint.h>

[[maybe_unused]] static int64_t bb_blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }
[[maybe_unused]] static size_t bb_aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }
[[maybe_unused]] static bool bb_inside(int64_t place, int64_t size) { return (place >= 0) & (place < size); }

namespace generated {

// In parallel over m, l. Reads Q, K, V; writes O.
static void attention_kernel(
    const float* __restrict Q,
    const float* __restrict K,
    const float* __restrict V,
    float* __restrict O,
    int64_t size_m,
    int64_t size_n,
    int64_t size_d,
    int64_t size_l,
    int threads) {
  constexpr int64_t block_m = 64;
  constexpr int64_t block_n = 64;
  constexpr int64_t block_d = 64;
  constexpr int64_t block_l = 64;
  #pragma omp parallel num_threads(threads) firstprivate(size_m, size_n, size_d, size_l)
  {
    #pragma omp for collapse(2) schedule(static)
    for (int64_t m_number = 0; m_number < bb_blocks(size_m, block_m); ++m_number)
    for (int64_t l_number = 0; l_number < bb_blocks(size_l, block_l); ++l_number) {
      const int64_t m0 = m_number * block_m;
      const int64_t m_count = bb::minimum(block_m, size_m - m0);
      const int64_t l0 = l_number * block_l;
      const int64_t l_count = bb::minimum(block_l, size_l - l0);
      alignas(64) float M[block_m];
      alignas(64) float c[block_m];
      alignas(64) float acc[block_m * block_l];
      alignas(64) float S[block_m * block_n];
      alignas(64) float M_new[block_m];
      alignas(64) float w[block_m];
      alignas(64) float E[block_m * block_n];
      alignas(64) float row_max_1[block_m];
      alignas(64) float row_sum_1[block_m];
      alignas(64) float where_1[block_m];
      alignas(64) float packed_1[bb::packed_size<float>(64, 64)];
      float* const O_block = O + (m0 * size_l + l0);

      // M = -inf
      #pragma omp simd
      for (int64_t row = 0; row < m_count; ++row) M[row] = -INFINITY;

      // c = 0
      #pragma omp simd
      for (int64_t row = 0; row < m_count; ++row) c[row] = 0.0f;

      // acc = 0
      for (int64_t row = 0; row < m_count; ++row) {
        #pragma omp simd
        for (int64_t col = 0; col < l_count; ++col) acc[row * block_l + col] = 0.0f;
      }
      for (int64_t n_number = 0; n_number < bb_blocks(size_n, block_n); ++n_number) {
        const int64_t n0 = n_number * block_n;
        const int64_t n_count = bb::minimum(block_n, size_n - n0);
        const float* const V_block = V + (n0 * size_l + l0);
        if (size_d == 0) {

          // S = 0
          for (int64_t row = 0; row < m_count; ++row) {
            #pragma omp simd
            for (int64_t col = 0; col < n_count; ++col) S[row * block_n + col] = 0.0f;
          }
        }
        for (int64_t d_number = 0; d_number < bb_blocks(size_d, block_d); ++d_number) {
          const int64_t d0 = d_number * block_d;
          const int64_t d_count = bb::minimum(block_d, size_d - d0);
          const float* const K_block = K + (n0 * size_d + d0);
          const float* const Q_block = Q + (m0 * size_d + d0);

          // S := S + dot(Q[m, d], K[n, d])
          bb::pack_nk(packed_1, K_block, size_d, d_count, n_count);
          if (d_number == 0) bb::dot_set(S, block_n, Q_block, size_d, packed_1, m_count, n_count, d_count);
          else bb::dot_add(S, block_n, Q_block, size_d, packed_1, m_count, n_count, d_count);
        }

        const float sqrt_value = float(bb::sqrt(double(size_d)));
        for (int64_t turn = 0; turn <= m_count; ++turn) {
          if (turn < m_count) {
            const int64_t row = turn;
            // S = where(col_spread(n, m) > row_spread(m, n), -inf, S / sqrt(size(d)))
            // row_max_1 = row_max(S)
            const int32_t first = bb::column_bound((m0 + row) + 1 - n0);
            row_max_1[row] = bb::max_over<float>(n_count, [&](int64_t col) {
              return S[row * block_n + col] = bb::select(int32_t(col) >= first, -INFINITY, S[row * block_n + col] / sqrt_value);
            });
          }
          if (turn > 0) {
            const int64_t row = turn - 1;
            // M_new = maximum(M, row_max_1)
            M_new[row] = bb::maximum(M[row], row_max_1[row]);
            // E = exp(row_shift(S, where(M_new == -inf, 0, -M_new)))
            // row_sum_1 = row_sum(E)
            const float where_value = bb::select(M_new[row] == -INFINITY, 0.0f, -M_new[row]);
            row_sum_1[row] = bb::sum_over<float>(n_count, bb::through<bb::Exp>([&](int64_t col) {
              return S[row * block_n + col] + where_value;
            }), bb::Keep{E + row * block_n});
          }
        }

        // w = where(M == M_new, 1, exp(M - M_new))
        #pragma omp simd
        for (int64_t row = 0; row < m_count; ++row) {
          w[row] = bb::select(M[row] == M_new[row], 1.0f, bb::exp(M[row] - M_new[row]));
        }

        // c := c * w + row_sum(E)
        #pragma omp simd
        for (int64_t row = 0; row < m_count; ++row) c[row] = (c[row] * w[row]) + row_sum_1[row];

        // acc := row_scale(acc, w) + dot(E, transpose(V[n, l]))
        bb::pack_kn(packed_1, V_block, size_l, n_count, l_count);
        for (int64_t row = 0; row < m_count; ++row) {
          const float w_entry = w[row];
          #pragma omp simd
          for (int64_t col = 0; col < l_count; ++col) acc[row * block_l + col] = acc[row * block_l + col] * w_entry;
        }
        bb::dot_add(acc, block_l, E, block_n, packed_1, m_count, l_count, n_count);

        // M := M_new
        #pragma omp simd
        for (int64_t row = 0; row < m_count; ++row) M[row] = M_new[row];
      }

      // O[m, l] = row_scale(acc, where(c == 0, 0, recip(c)))
      #pragma omp simd
      for (int64_t row = 0; row < m_count; ++row) {
        where_1[row] = bb::select(c[row] == 0.0f, 0.0f, bb::recip(c[row]));
      }
      for (int64_t row = 0; row < m_count; ++row) {
        const float where_1_entry = where_1[row];
        #pragma omp simd
        for (int64_t col = 0; col < l_count; ++col) {
          O_block[row * size_l + col] = acc[row * block_l + col] * where_1_entry;
        }
      }
    }
  }
}

}  // namespace generated

extern "C" void bb_attention(
    const float* Q,
    const float* K,
    const float* V,
    float* O,
    int64_t size_m,
    int64_t size_n,
    int64_t size_d,
    int64_t size_l,
    int threads) {
  generated::attention_kernel(Q, K, V, O, size_m, size_n, size_d, size_l, threads);
}

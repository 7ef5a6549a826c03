#include "bb.hpp"

#include <omp.h>
#include <stddef.h>
#include <stdint.h>

[[maybe_unused]] static int64_t bb_blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }
[[maybe_unused]] static size_t bb_aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }
[[maybe_unused]] static bool bb_inside(int64_t place, int64_t size) { return (place >= 0) & (place < size); }

namespace generated {

// In parallel over m, n. Reads X; writes Y.
static void half_type_shift_kernel(
    const bb::f16* __restrict X,
    float* __restrict Y,
    int64_t size_m,
    int64_t size_n,
    int threads) {
  constexpr int64_t block_m = 4;
  constexpr int64_t block_n = 8;
  const bool Y_streamed = size_m * size_n * sizeof(float) > bb::streamed_bytes;
  #pragma omp parallel num_threads(threads) firstprivate(size_m, size_n)
  {
    #pragma omp for collapse(2) schedule(static)
    for (int64_t m_number = 0; m_number < bb_blocks(size_m, block_m); ++m_number)
    for (int64_t n_number = 0; n_number < bb_blocks(size_n, block_n); ++n_number) {
      const int64_t m0 = m_number * block_m;
      const int64_t m_count = bb::minimum(block_m, size_m - m0);
      const int64_t n0 = n_number * block_n;
      const int64_t n_count = bb::minimum(block_n, size_n - n0);
      float* const Y_block = Y + (m0 * size_n + n0);

      // Y[m, n] = X[m, n + 1]
      for (int64_t row = 0; row < m_count; ++row) {
        bb::write_row<block_n>(Y_block + row * size_n, n_count, Y_streamed, [&](int64_t col) {
          const int64_t X_at = (n0 + col) + 1;
          const bool X_inside = bb_inside(X_at, size_n);
          return X_inside ? bb::load(X[(m0 + row) * size_n + X_at]) : 0.0f;
        });
      }
      if (Y_streamed) bb::settle_streams();
    }
  }
}

}  // namespace generated

extern "C" void bb_half_type_shift(const bb::f16* X, float* Y, int64_t size_m, int64_t size_n, int threads) {
  generated::half_type_shift_kernel(X, Y, size_m, size_n, threads);
}

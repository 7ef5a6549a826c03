#include "bb.hpp"

#include <omp.h>
#include <stddef.h>
#include <stdint.h>

[[maybe_unused]] static int64_t bb_blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }
[[maybe_unused]] static size_t bb_aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }
[[maybe_unused]] static bool bb_inside(int64_t place, int64_t size) { return (place >= 0) & (place < size); }

namespace generated {

static BB_INLINE float weight(float a, float b) {
  return bb::select(a == b, 1.0f, bb::exp(a - b));
}

static BB_INLINE float double_1(float a) {
  const float weight_value = weight(a, 0.0f);
  return (weight_value + weight_value);
}

// In parallel over m, n. Reads X; writes Y.
static void user_operator_kernel(
    const float* __restrict X,
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
      const float* const X_block = X + (m0 * size_n + n0);

      // Y[m, n] = double(weight(X[m, n], 0.5) * 0.25)
      for (int64_t row = 0; row < m_count; ++row) {
        bb::write_row<block_n>(Y_block + row * size_n, n_count, Y_streamed, [&](int64_t col) {
          return double_1(weight(X_block[row * size_n + col], 0.5f) * 0.25f);
        });
      }
      if (Y_streamed) bb::settle_streams();
    }
  }
}

}  // namespace generated

extern "C" void bb_user_operator(const float* X, float* Y, int64_t size_m, int64_t size_n, int threads) {
  generated::user_operator_kernel(X, Y, size_m, size_n, threads);
}

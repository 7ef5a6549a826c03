// Block products of f32 on tensor cores, for programs that ask for them: operands are rounded to tf32, whose fraction
// has ten bits, to the nearest and ties away from 0; sums are in single precision. Operands lie as those of bb_dot.cuh do.
//
// An instruction multiplies eight contracted positions at once, of which a thread holds two. Both operands agree on which
// these are, so that it makes no difference to the sum: four apart where both are in shared memory, as whole fragments
// are loaded from tiles; neighbours where the left one is in registers, as a matrix has them. Tiles that are read
// otherwise than in whole fragments are wide ones.
#pragma once

#include "bb_dot.cuh"

namespace bb {
namespace detail {

struct tf32;
BB_MMA(tf32, "tf32", 8)
#undef BB_MMA

BB_INLINE uint32_t tf32_of(float x) {
  uint32_t y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
}

// Four 8 x 4 matrices of a tile, rounded. A row of 16 bytes is a row of four entries.
BB_INLINE void load_matrices_tf32(uint32_t (&r)[4], const float* row) {
  load_matrices(r, row);
#pragma unroll
  for (int k = 0; k < 4; ++k) r[k] = tf32_of(__uint_as_float(r[k]));
}

// Fragments of the left operand: 16 rows from `row`, 8 contracted positions from `k`, two of them four apart in a thread.
template <int M, int K, int W, int P>
BB_INLINE void left_fragment_tf32(uint32_t (&a)[4], Tile<float, M, K, W, P> left, int row, int k) {
  load_matrices_tf32(a, left.at(row + lane() % 16, k + lane() / 16 * 4));
}
template <class Of> BB_INLINE void left_fragment_tf32(uint32_t (&a)[4], Transposed<Of> left, int row, int k) {
#pragma unroll
  for (int r = 0; r < 4; ++r) a[r] = tf32_of(*left.at(row + lane() / 4 + r % 2 * 8, k + lane() % 4 + r / 2 * 4));
}
// Fragments of the right operand for 16 columns of the product: two for the first eight, two for the others.
template <int N, int K, int W, int P>
BB_INLINE void right_fragment_tf32(uint32_t (&b)[4], Tile<float, N, K, W, P> right, int column, int k) {
  load_matrices_tf32(b, right.at(column + lane() % 8 + lane() / 16 * 8, k + lane() / 8 % 2 * 4));
}
template <class Of> BB_INLINE void right_fragment_tf32(uint32_t (&b)[4], Transposed<Of> right, int column, int k) {
#pragma unroll
  for (int r = 0; r < 4; ++r) b[r] = tf32_of(*right.at(column + lane() / 4 + r / 2 * 8, k + lane() % 4 + r % 2 * 4));
}
// The same where the two are neighbours.
template <int N, int K, int W, int P>
BB_INLINE void right_neighbours_tf32(uint32_t (&b)[4], Tile<float, N, K, W, P> right, int column, int k) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float* at = right.at(column + lane() / 4 + half * 8, k + lane() % 4 * 2);
    const Pair<float> two = *reinterpret_cast<const Pair<float>*>(at);
    b[2 * half] = tf32_of(two.first);
    b[2 * half + 1] = tf32_of(two.second);
  }
}
template <class Of> BB_INLINE void right_neighbours_tf32(uint32_t (&b)[4], Transposed<Of> right, int column, int k) {
#pragma unroll
  for (int r = 0; r < 4; ++r) b[r] = tf32_of(*right.at(column + lane() / 4 + r / 2 * 8, k + lane() % 4 * 2 + r % 2));
}

}  // namespace detail

// K contracted positions, with the left operand in shared memory.
template <int K, int M, int N, int W, class Left, class Right>
BB_INLINE void dot_add_tf32(Matrix<float, M, N, W>& target, Left left, Right right) {
  detail::multiply_blocks<detail::tf32, K>(
      target,
      [&](uint32_t (&a)[4], int strip, int k) { detail::left_fragment_tf32(a, left, detail::first_row<M, W>(strip), k); },
      [&](uint32_t (&b)[4], int column, int k) { detail::right_fragment_tf32(b, right, column, k); });
}
// With the left operand in registers, of which `count` columns count.
template <int K, int M, int N, int W, class Right>
BB_INLINE void dot_add_tf32(Matrix<float, M, N, W>& target, const Matrix<float, M, K, W>& left, Right right, int count) {
  detail::multiply_blocks<detail::tf32, K>(
      target,
      [&](uint32_t (&a)[4], int strip, int k) {
        const int column = k + lane() % 4 * 2;
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          const bool is_held = r % 2 < halves_held<M>;
          const float x = left.data[strip][k / group_columns][is_held ? r % 2 * 2 + r / 2 : 0];
          a[r] = detail::tf32_of(is_held && column + r / 2 < count ? x : 0.0f);
        }
      },
      [&](uint32_t (&b)[4], int column, int k) { detail::right_neighbours_tf32(b, right, column, k); });
}

}  // namespace bb

// Block products: target = target + left right', where the rows of `right` are the product's columns. Operands of 16
// bits meet in tensor cores (mma.sync, sums in single precision); all others are multiplied and added entry by entry.
//
// The left operand is a tile, a transposed tile, or a matrix in registers; the right one a tile or a transposed tile.
// Tiles hold zeros outside of their counts.
#pragma once

#include "bb_copy.cuh"

namespace bb {
namespace detail {

// The instruction for operands of a type, and how many contracted positions it takes.
template <class S> struct Fragments;
#define BB_MMA(TYPE, NAME, DEPTH)                                                                                    \
  template <> struct Fragments<TYPE> {                                                                               \
    static constexpr int depth = DEPTH;                                                                              \
    static BB_INLINE void multiply_add(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {            \
      asm volatile("mma.sync.aligned.m16n8k" #DEPTH ".row.col.f32." NAME "." NAME ".f32 {%0, %1, %2, %3}, "          \
                   "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                                   \
                   : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                  \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                                  \
    }                                                                                                                \
  };
BB_MMA(bf16, "bf16", 16)
BB_MMA(f16, "f16", 16)

BB_INLINE void load_matrices(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
BB_INLINE void load_matrices_transposed(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

// Fragments of the left operand: 16 rows from `row`, 16 of the contracted positions from `k`. Lane l gives the address
// of row l % 8 of matrix l / 8; the matrices are the upper left, lower left, upper right and lower right quarter.
template <class S, int M, int K, int W> BB_INLINE void left_fragment(uint32_t (&a)[4], Tile<S, M, K, W> tile, int row, int k) {
  load_matrices(a, tile.at(row + lane() % 16, k + lane() / 16 * 8));
}
template <class S, int K, int M, int W>
BB_INLINE void left_fragment(uint32_t (&a)[4], Transposed<Tile<S, K, M, W>> tile, int row, int k) {
  load_matrices_transposed(a, tile.of.at(k + lane() % 8 + lane() / 16 * 8, row + lane() / 8 % 2 * 8));
}
// Fragments of the right operand for 16 columns of the product: two for the first eight, two for the others.
template <class S, int N, int K, int W> BB_INLINE void right_fragment(uint32_t (&b)[4], Tile<S, N, K, W> tile, int column, int k) {
  load_matrices(b, tile.at(column + lane() % 8 + lane() / 16 * 8, k + lane() / 8 % 2 * 8));
}
template <class S, int K, int N, int W>
BB_INLINE void right_fragment(uint32_t (&b)[4], Transposed<Tile<S, K, N, W>> tile, int column, int k) {
  load_matrices_transposed(b, tile.of.at(k + lane() % 16, column + lane() / 16 * 8));
}

// The rows of a strip, moved to the tile's last ones where they are beyond it: those results do not matter.
template <int M, int W> BB_INLINE int first_row(int strip) {
  const int row = (warp() * strips<M, W> + strip) * strip_rows, last = round_up(M, strip_rows) - strip_rows;
  if constexpr (strips<M, W> * strip_rows * W > round_up(M, strip_rows)) return row < last ? row : last;
  return row;
}

// Fragment by fragment: `left_of` loads those of a strip, `right_of` those of 16 columns, at a contracted position.
template <class S, int K, int M, int N, int W, class Left, class Right>
BB_INLINE void multiply_blocks(float (&target)[strips<M, W>][column_groups<N>][4], Left left_of, Right right_of) {
#pragma unroll
  for (int k = 0; k < K; k += Fragments<S>::depth) {
    uint32_t a[strips<M, W>][4];
#pragma unroll
    for (int strip = 0; strip < strips<M, W>; ++strip) left_of(a[strip], strip, k);
#pragma unroll
    for (int group = 0; group < column_groups<N>; group += 2) {
      uint32_t b[4];
      right_of(b, group * group_columns, k);
#pragma unroll
      for (int strip = 0; strip < strips<M, W>; ++strip) {
        Fragments<S>::multiply_add(target[strip][group], a[strip], b[0], b[1]);
        if (group + 1 < column_groups<N>) Fragments<S>::multiply_add(target[strip][group + 1], a[strip], b[2], b[3]);
      }
    }
  }
}
// The lower half of a strip that is not held begins as zeros, and is lost.
template <class S, int K, int M, int N, int W, class Left, class Right>
BB_INLINE void multiply_blocks(Matrix<float, M, N, W>& target, Left left_of, Right right_of) {
  if constexpr (halves_held<M> == 2) {
    multiply_blocks<S, K, M, N, W>(target.data, left_of, right_of);
  } else {
    float whole[strips<M, W>][column_groups<N>][4];
#pragma unroll
    for (int group = 0; group < column_groups<N>; ++group) {
#pragma unroll
      for (int r = 0; r < 4; ++r) whole[0][group][r] = r < 2 ? target.data[0][group][r % 2] : 0.0f;
    }
    multiply_blocks<S, K, M, N, W>(whole, left_of, right_of);
#pragma unroll
    for (int group = 0; group < column_groups<N>; ++group) {
#pragma unroll
      for (int r = 0; r < 2; ++r) target.data[0][group][r] = whole[0][group][r];
    }
  }
}

}  // namespace detail

// On tensor cores, K contracted positions, with the left operand in shared memory.
template <int K, int M, int N, int W, class Left, class Right>
BB_INLINE void dot_add(Matrix<float, M, N, W>& target, Left left, Right right) {
  using S = typename Right::element;
  detail::multiply_blocks<S, K>(
      target,
      [&](uint32_t (&a)[4], int strip, int k) { detail::left_fragment(a, left, detail::first_row<M, W>(strip), k); },
      [&](uint32_t (&b)[4], int column, int k) { detail::right_fragment(b, right, column, k); });
}
// With the left operand in registers, of which `count` columns count: it is rounded to the right one's type.
template <int K, int M, int N, int W, class Right>
BB_INLINE void dot_add(Matrix<float, M, N, W>& target, const Matrix<float, M, K, W>& left, Right right, int count) {
  using S = typename Right::element;
  detail::multiply_blocks<S, K>(
      target,
      [&](uint32_t (&a)[4], int strip, int k) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int group = k / group_columns + half;
          const int column = group * group_columns + lane() % 4 * 2;
#pragma unroll
          for (int low = 0; low < 2; ++low) {
            float x = 0, y = 0;
            if (group < column_groups<K> && low < halves_held<M>) {
              const auto& held = left.data[strip][group < column_groups<K> ? group : 0];
              x = column < count ? held[low < halves_held<M> ? 2 * low : 0] : 0.0f;
              y = column + 1 < count ? held[low < halves_held<M> ? 2 * low + 1 : 1] : 0.0f;
            }
            a[2 * half + low] = pair_of<S>(x, y);
          }
        }
      },
      [&](uint32_t (&b)[4], int column, int k) { detail::right_fragment(b, right, column, k); });
}

namespace detail {
BB_INLINE float fused(float a, float b, float c) { return ::fmaf(a, b, c); }
BB_INLINE double fused(double a, double b, double c) { return ::fma(a, b, c); }
BB_INLINE int64_t fused(int64_t a, int64_t b, int64_t c) { return a * b + c; }
}  // namespace detail

// Entry by entry, over `count` contracted positions, rounded once for a multiplication and its addition.
template <class T, int M, int N, int W, class Left, class Right>
BB_INLINE void dot_add_entries(Matrix<T, M, N, W>& target, Left left, Right right, int count) {
#pragma unroll 2
  for (int k = 0; k < count; ++k) {
    T a[rows_held<M, W>];
#pragma unroll
    for (int i = 0; i < rows_held<M, W>; ++i) a[i] = left.entry(row_of<M, W>(i), k);
#pragma unroll
    for (int j = 0; j < columns_held<N>; ++j) {
      const T b = right.entry(column_of(j), k);
#pragma unroll
      for (int i = 0; i < rows_held<M, W>; ++i) target(i, j) = detail::fused(a[i], b, target(i, j));
    }
  }
}

}  // namespace bb

// Folds of blocks in registers: along the columns within a warp, down the rows and over vectors across all warps. Each
// takes what a thread has folded by itself, and the same associative function; every order of threads gives the same
// result, bit by bit.
#pragma once

#include "bb_blocks.cuh"

namespace bb {

template <class T> BB_INLINE T exchanged(T x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }

// One row: the four threads that hold it.
template <class T, class F> BB_INLINE T across_columns(T x, F combine) {
  x = combine(x, exchanged(x, 1));
  return combine(x, exchanged(x, 2));
}
// One column of a warp's rows: the eight threads that hold it.
template <class T, class F> BB_INLINE T across_rows(T x, F combine) {
  x = combine(x, exchanged(x, 4));
  x = combine(x, exchanged(x, 8));
  return combine(x, exchanged(x, 16));
}

// What each warp has folded of C columns, one below the other in shared memory.
template <class T, int C, int W> struct Partial {
  using element = T;
  static constexpr int columns = round_up(C, 16);
  static constexpr int bytes = round_up(W * columns * int(sizeof(T)), 16);
  T* data;
  BB_INLINE explicit Partial(unsigned char* memory) : data(reinterpret_cast<T*>(memory)) {}
  BB_INLINE void put(int column, T x) const { data[warp() * columns + column] = x; }
  template <class F> BB_INLINE T total(int column, F combine) const {
    // Threads may have rows beyond the columns that were folded: what they read there does not matter.
    constexpr int folded = column_groups<C> * group_columns;
    column = column < folded ? column : folded - 1;
    T x = data[column];
#pragma unroll
    for (int w = 1; w < W; ++w) x = combine(x, data[w * columns + column]);
    return x;
  }
};

}  // namespace bb

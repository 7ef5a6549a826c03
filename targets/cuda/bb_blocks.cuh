// Where blocks live. A thread block has W warps of 32 threads, and computes with blocks of at most R rows and C columns.
//
// In registers, a matrix is spread over the threads as tensor cores leave it: warp w has strips of 16 rows, one below
// the other; in a strip a thread has two rows, eight apart, and of every eight columns two neighbours. Of a block of at
// most eight rows nothing is held for the lower half of its strip. A vector is spread as the rows of a matrix are, so
// that four threads hold each entry. In shared memory, a block is a tile of rows
// padded so that what a warp reads at once lies in different banks.
#pragma once

#include "bb_types.cuh"

namespace bb {

constexpr int warp_size = 32, strip_rows = 16, group_columns = 8;

__host__ __device__ constexpr int round_up(int x, int unit) { return (x + unit - 1) / unit * unit; }

// How many strips a warp has, and how many rows and columns a thread has.
template <int R, int W> constexpr int strips = (R + strip_rows * W - 1) / (strip_rows * W);
template <int R> constexpr int halves_held = R > strip_rows / 2 ? 2 : 1;
template <int R, int W> constexpr int rows_held = halves_held<R> * strips<R, W>;
template <int C> constexpr int column_groups = (C + group_columns - 1) / group_columns;
template <int C> constexpr int columns_held = 2 * column_groups<C>;

BB_INLINE int lane() { return threadIdx.x % warp_size; }
BB_INLINE int warp() { return threadIdx.x / warp_size; }

// The row of the block that is a thread's i-th, and the column that is its j-th.
template <int R, int W> BB_INLINE int row_of(int i) {
  return (warp() * strips<R, W> + i / 2) * strip_rows + i % 2 * 8 + lane() / 4;
}
BB_INLINE int column_of(int j) { return j / 2 * group_columns + lane() % 4 * 2 + j % 2; }

// Whether this thread is the one of those that hold a vector's entry, or a number, that stores it.
BB_INLINE bool stores_rows() { return lane() % 4 == 0; }
BB_INLINE bool stores_number() { return threadIdx.x == 0; }

// A place of the block: threads may have rows and columns beyond its count.
BB_INLINE int within(int place, int count) { return place < count ? place : count - 1; }

template <class T, int R, int C, int W> struct Matrix {
  T data[strips<R, W>][column_groups<C>][2 * halves_held<R>];
  BB_INLINE T& operator()(int i, int j) { return data[i / 2][j / 2][i % 2 * 2 + j % 2]; }
  BB_INLINE T operator()(int i, int j) const { return data[i / 2][j / 2][i % 2 * 2 + j % 2]; }
};
template <class T, int R, int W> struct Vector {
  T data[rows_held<R, W>];
  BB_INLINE T& operator()(int i) { return data[i]; }
  BB_INLINE T operator()(int i) const { return data[i]; }
};

// What a thread has of a row in eight columns: two neighbours, as they are stored. `j` counts its columns in the block.
template <class S> struct alignas(2 * sizeof(S)) Pair {
  S first, second;
  BB_INLINE compute_t<S> operator()(int j) const { return load(j % 2 ? second : first); }
};

// A tile of shared memory. Its rows and columns are padded to whole fragments, and each row by some bytes more: by 16,
// eight rows of a fragment lie in different banks.
template <class S, int R, int C, int W, int Padding = 16> struct Tile {
  using element = S;
  static constexpr int rows = round_up(R, strip_rows), columns = round_up(C, 16);
  static constexpr int pitch = columns + Padding / int(sizeof(S));
  static constexpr int bytes = rows * pitch * int(sizeof(S));
  S* data;
  BB_INLINE explicit Tile(unsigned char* memory) : data(reinterpret_cast<S*>(memory)) {}
  BB_INLINE S* at(int row, int column) const { return data + row * pitch + column; }
  // An entry. Threads may have rows beyond the tile: what they read there does not matter.
  BB_INLINE compute_t<S> entry(int row, int column) const { return load(*at(row_inside(row), column)); }
  // What a thread has of a row in a group of columns, read at once.
  BB_INLINE Pair<S> pair(int row, int group) const {
    return *reinterpret_cast<const Pair<S>*>(at(row_inside(row), column_of(2 * group)));
  }
  // The entry of the transposed tile.
  BB_INLINE compute_t<S> turned(int row, int column) const {
    if constexpr (strips<C, W> * strip_rows * W > columns) row = row < columns ? row : columns - 1;
    return load(*at(column, row));
  }

 private:
  static BB_INLINE int row_inside(int row) {
    if constexpr (strips<R, W> * strip_rows * W > rows) return row < rows ? row : rows - 1;
    return row;
  }
};
// A tile of which threads read pairs of entries, or four rows at once: padded so that pairs of four rows, and eight
// columns of four rows, lie in different banks.
template <class S, int R, int C, int W>
using WideTile = Tile<S, R, C, W, sizeof(S) < 2 ? 16 : group_columns * int(sizeof(S))>;
// The same for a vector.
template <class S, int C, int W> struct Strip {
  using element = S;
  static constexpr int columns = round_up(C, 16);
  static constexpr int bytes = round_up(columns * int(sizeof(S)), 16);
  S* data;
  BB_INLINE explicit Strip(unsigned char* memory) : data(reinterpret_cast<S*>(memory)) {}
  BB_INLINE S* at(int, int place) const { return data + place; }
  BB_INLINE compute_t<S> operator()(int place) const {
    if constexpr (strips<C, W> * strip_rows * W > columns) place = place < columns ? place : columns - 1;
    return load(data[place]);
  }
};

// Tiles or strips one after another: a list, or a ring whose tiles are used in turn.
template <class T> struct Several {
  unsigned char* memory;
  BB_INLINE explicit Several(unsigned char* at) : memory(at) {}
  BB_INLINE T operator[](int64_t number) const { return T(memory + int(number) * T::bytes); }
};

// A tile seen with rows and columns exchanged.
template <class Of> struct Transposed {
  using element = typename Of::element;
  Of of;
  BB_INLINE const element* at(int row, int column) const { return of.at(column, row); }
  BB_INLINE compute_t<element> entry(int row, int column) const { return of.turned(row, column); }
};
template <class Of> BB_INLINE Transposed<Of> transposed(Of of) { return {of}; }

}  // namespace bb

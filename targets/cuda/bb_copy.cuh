// Copies between memories: `stage` brings a block of global memory to shared memory, asynchronously where addresses
// allow, and `publish` writes a block from registers to shared memory, where other threads read it in another order.
// Both fill what is outside of the block's count with zeros, so that products may use whole fragments. Who waits when
// is the kernel's business.
#pragma once

#include "bb_blocks.cuh"

namespace bb {

BB_INLINE uint32_t shared_address(const void* place) { return uint32_t(__cvta_generic_to_shared(place)); }

// Copies `valid` of 16 bytes, and zeros for the rest.
BB_INLINE void copy_async(void* to, const void* from, int valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(valid)
               : "memory");
}
BB_INLINE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for all but the last `Pending` groups that this thread committed, then for the other threads.
template <int Pending> BB_INLINE void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
  __syncthreads();
}

// Waits for every copy that this thread began.
BB_INLINE void finish_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

namespace detail {

// A thread's share of `total` pieces of work: as many rounds for all, in the last of which some have nothing to do.
template <int total, int W, int at_once, class F> BB_INLINE void share(F work) {
  constexpr int threads = W * warp_size, rounds = (total + threads - 1) / threads;
#pragma unroll at_once
  for (int round = 0; round < rounds; ++round) {
    const int n = round * threads + int(threadIdx.x);
    if (total % threads == 0 || n < total) work(n);
  }
}

// A block of R rows and C columns whose columns lie side by side, 16 bytes at a time. Where a thread's copies can all be
// of the same columns, they differ in their row alone.
template <int R, int C, int W, class To, class S>
BB_INLINE void stage_chunks(To to, const S* from, int64_t row_stride, int rows, int columns) {
  constexpr int chunk = 16 / int(sizeof(S)), chunks = C / chunk, threads = W * warp_size;
  const auto bytes_at = [&](int column) {
    const int left = columns - column;
    return (left <= 0 ? 0 : left < chunk ? left : chunk) * int(sizeof(S));
  };
  if constexpr (threads % chunks == 0) {
    constexpr int step = threads / chunks, rounds = (R + step - 1) / step;
    const int first = int(threadIdx.x) / chunks, column = int(threadIdx.x) % chunks * chunk, bytes = bytes_at(column);
#pragma unroll 2
    for (int round = 0; round < rounds; ++round) {
      const int row = first + round * step;
      if (R % step == 0 || row < R) copy_async(to.at(row, column), from + row * row_stride + column, row < rows ? bytes : 0);
    }
  } else {
    share<R * chunks, W, 4>([&](int n) {
      const int row = n / chunks, column = n % chunks * chunk;
      copy_async(to.at(row, column), from + row * row_stride + column, row < rows ? bytes_at(column) : 0);
    });
  }
}
template <int R, int C, int W, class To, class S>
BB_INLINE void stage_entries(To to, const S* from, int64_t row_stride, int64_t column_stride, int rows, int columns) {
  share<R * C, W, 1>([&](int n) {
    const int row = n / C, column = n % C;
    *to.at(row, column) = row < rows && column < columns ? from[row * row_stride + column * column_stride] : S{};
  });
}
template <class S> BB_INLINE bool in_chunks(const S* from, int64_t row_stride, int64_t column_stride) {
  return column_stride == 1 && ((reinterpret_cast<uintptr_t>(from) | uintptr_t(row_stride) * sizeof(S)) & 15) == 0;
}

}  // namespace detail

template <class S, int R, int C, int W, int P>
BB_INLINE void stage(Tile<S, R, C, W, P> to, const S* from, int64_t row_stride, int64_t column_stride, int rows, int columns) {
  using T = Tile<S, R, C, W, P>;
  if (detail::in_chunks(from, row_stride, column_stride))
    detail::stage_chunks<T::rows, T::columns, W>(to, from, row_stride, rows, columns);
  else
    detail::stage_entries<T::rows, T::columns, W>(to, from, row_stride, column_stride, rows, columns);
}
template <class S, int C, int W>
BB_INLINE void stage(Strip<S, C, W> to, const S* from, int64_t stride, int count) {
  using T = Strip<S, C, W>;
  if (detail::in_chunks(from, 0, stride)) detail::stage_chunks<1, T::columns, W>(to, from, 0, 1, count);
  else detail::stage_entries<1, T::columns, W>(to, from, 0, stride, 1, count);
}

template <class S, int R, int C, int W, int P>
BB_INLINE void publish(Tile<S, R, C, W, P> to, const Matrix<compute_t<S>, R, C, W>& from, int rows, int columns) {
  using T = Tile<S, R, C, W, P>;
#pragma unroll
  for (int i = 0; i < 2 * strips<R, W>; ++i) {
    const int row = row_of<R, W>(i);
    if (strips<R, W> * strip_rows * W > T::rows && row >= T::rows) continue;
#pragma unroll
    for (int j = 0; j < T::columns / 4; ++j) {
      const int column = column_of(j);
      const bool is_held = i < rows_held<R, W> && j < columns_held<C>, counts = row < rows && column < columns;
      *to.at(row, column) = is_held && counts ? store<S>(from(is_held ? i : 0, is_held ? j : 0)) : S{};
    }
  }
}
template <class S, int C, int W>
BB_INLINE void publish(Strip<S, C, W> to, const Vector<compute_t<S>, C, W>& from, int count) {
  using T = Strip<S, C, W>;
#pragma unroll
  for (int i = 0; i < 2 * strips<C, W>; ++i) {
    const int place = row_of<C, W>(i);
    const bool is_held = i < rows_held<C, W>;
    if (place < T::columns && stores_rows())
      *to.at(0, place) = is_held && place < count ? store<S>(from(is_held ? i : 0)) : S{};
  }
}

}  // namespace bb

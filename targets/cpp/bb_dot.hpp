// Block products: C = A B and C += A B for row-major A (m x k) and C (m x n), and B in packed panels, as it lies in
// memory, packed in passing, or packed whole ahead. The loops over blocks, the choice of block sizes and the threads are
// the generated kernel's. Sums run over ascending p from zero within one call, and are then stored or added to C (of
// widened bf16 a stretch of p at a time), so that a result depends on nothing but the operands and the block sizes.
// Nothing outside A, C and the size of B is read or written.
#pragma once

#include "bb_pack.hpp"
#include "bb_tile.hpp"

namespace bb {
namespace detail {

// One panel of a packed matrix, from its row p0 on.
template <class S, int V>
BB_INLINE void packed_panel(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, long p0, long m, long columns, long k, bool add) {
  constexpr long width = V * Vector<sum_t<S>>::width;
  if constexpr (V <= panel_vectors) panel<S, V>(c, ldc, a, lda, b + p0 * width, width, m, columns, k, add);
}

// Pairs of bf16 are worth keeping only where an instruction multiplies them. Elsewhere a stretch of rows of some panels
// is widened, and then some rows of A at a time: much less work than widening both at every multiplication.
#if defined(__AVX512BF16__)
template <class S> constexpr bool is_widened = false;
#else
template <class S> constexpr bool is_widened = same<S, bf16>;
#endif

inline void widen_pairs(float* to, const bf16* from, long width, long rows) {
  for (long p = 0; p < rows; ++p, to += width)
#pragma omp simd
    for (long l = 0; l < width; ++l) to[l] = load(from[(p / 2 * width + l) * 2 + p % 2]);
}

inline void dot_widened(
    float* c, long ldc, const bf16* a, long lda, const bf16* b, long depth, long p0, long m, long n, long k, bool add) {
  constexpr long W = Vector<float>::width, N = panel_width<float>, stretch = 64, panels = 8, some = 4 * full_tile_rows;
  alignas(BB_VECTOR_BYTES) float right[stretch * panels * N], left[some * stretch];
  for (long j0 = 0; j0 < n; j0 += panels * N, c += panels * N, b += panels * N * depth) {
    const long wide = n - j0 < panels * N ? n - j0 : panels * N;
    for (long p = 0; p == 0 || p < k; p += stretch) {
      const long rows = k - p < stretch ? k - p : stretch;
      for (long j = 0; j < wide; j += N) {
        const long columns = wide - j < N ? wide - j : N, width = (columns + W - 1) / W * W;
        widen_pairs(right + j * stretch, b + j * depth + (p0 + p) * width, width, rows);
      }
      for (long i = 0; i < m; i += some) {
        const long taken = m - i < some ? m - i : some;
        for (long r = 0; r < taken; ++r)
#pragma omp simd
          for (long l = 0; l < rows; ++l) left[r * stretch + l] = load(a[(i + r) * lda + p + l]);
        for (long j = 0; j < wide; j += N) {
          const long columns = wide - j < N ? wide - j : N, vectors = (columns + W - 1) / W;
          float* const to = c + i * ldc + j;
          const float* const from = right + j * stretch;
          const bool more = add || p > 0;
          switch (vectors) {
            case 1: packed_panel<float, 1>(to, ldc, left, stretch, from, 0, taken, columns, rows, more); break;
            case 2: packed_panel<float, 2>(to, ldc, left, stretch, from, 0, taken, columns, rows, more); break;
            case 3: packed_panel<float, 3>(to, ldc, left, stretch, from, 0, taken, columns, rows, more); break;
            case 4: packed_panel<float, 4>(to, ldc, left, stretch, from, 0, taken, columns, rows, more); break;
          }
        }
      }
    }
  }
}

// Rows p0, ..., p0 + k - 1 of a packed matrix of `depth` rows.
template <class S>
void dot(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, long depth, long p0, long m, long n, long k, bool add) {
  if constexpr (is_widened<S>) return dot_widened(c, ldc, a, lda, b, depth, p0, m, n, k, add);
  constexpr long W = Vector<sum_t<S>>::width, N = panel_width<S>;
  for (long j = 0; j < n; j += N, b += N * depth) {
    const long columns = n - j < N ? n - j : N;
    switch ((columns + W - 1) / W) {
      case 1: packed_panel<S, 1>(c + j, ldc, a, lda, b, p0, m, columns, k, add); break;
      case 2: packed_panel<S, 2>(c + j, ldc, a, lda, b, p0, m, columns, k, add); break;
      case 3: packed_panel<S, 3>(c + j, ldc, a, lda, b, p0, m, columns, k, add); break;
      case 4: packed_panel<S, 4>(c + j, ldc, a, lda, b, p0, m, columns, k, add); break;
    }
  }
}

}  // namespace detail

// C = A B, where b is what a pack function made of B; C need not be initialised. With k = 0, C becomes zero.
template <class S>
BB_INLINE void dot_set(sum_t<S>* c, long ldc, const S* a, long lda, const S* b, long m, long n, long k) {
  detail::dot<S>(c, ldc, a, lda, b, packed_rows<S>(k), 0, m, n, k, false);
}

// C += A B.
template <class S>
BB_INLINE void dot_add(sum_t<S>* c, long ldc, const S* a, long lda, const S* b, long m, long n, long k) {
  detail::dot<S>(c, ldc, a, lda, b, packed_rows<S>(k), 0, m, n, k, true);
}

namespace detail {

// One row of C, by whole rows of B: memory is then read in long runs, which is all that this product depends on.
template <class T>
void row_kn(T* __restrict c, const T* a, const T* b, long ldb, long n, long k, bool add) {
  for (long j = 0; j < n && !add; ++j) c[j] = T(0);
  long p = 0;
  for (; p + 8 <= k; p += 8, a += 8, b += 8 * ldb) {
#pragma omp simd
    for (long j = 0; j < n; ++j) {
      const T first = fused(a[0], b[j], a[1] * b[j + ldb]), second = fused(a[2], b[j + 2 * ldb], a[3] * b[j + 3 * ldb]);
      const T third = fused(a[4], b[j + 4 * ldb], a[5] * b[j + 5 * ldb]);
      const T fourth = fused(a[6], b[j + 6 * ldb], a[7] * b[j + 7 * ldb]);
      c[j] += (first + second) + (third + fourth);
    }
  }
  for (; p < k; ++p, ++a, b += ldb) {
#pragma omp simd
    for (long j = 0; j < n; ++j) c[j] = fused(a[0], b[j], c[j]);
  }
}

// B as it lies in memory. Its last columns, where they do not fill a vector, are packed aside, a stretch of rows at a
// time, since reading whole vectors there would leave the matrix.
template <class T>
void dot_kn(T* c, long ldc, const T* a, long lda, const T* b, long ldb, long m, long n, long k, bool add) {
  if (m == 1) return row_kn<T>(c, a, b, ldb, n, k, add);
  constexpr long W = Vector<T>::width, N = panel_width<T>, stretch = 128;
  const long whole = n / W * W, full = n / N * N;
  for (long j = 0; j < full; j += N) {
    const long ahead = j + N < full ? N : k * ldb - j;  // the next panel, or the first one of the rows below
    full_panel<T>(c + j, ldc, a, lda, b + j, ldb, nullptr, m, k, add, ahead);
  }
  if (full < whole) {
    const long j = full, columns = whole - full;
    switch (columns / W) {
      case 1: panel<T, 1>(c + j, ldc, a, lda, b + j, ldb, m, columns, k, add); break;
      case 2: panel<T, 2>(c + j, ldc, a, lda, b + j, ldb, m, columns, k, add); break;
      case 3: if constexpr (panel_vectors > 2) panel<T, 3>(c + j, ldc, a, lda, b + j, ldb, m, columns, k, add); break;
    }
  }
  if (whole == n) return;
  alignas(BB_VECTOR_BYTES) T aside[stretch * W];
  for (long p = 0; p == 0 || p < k; p += stretch) {
    const long rows = k - p < stretch ? k - p : stretch;
    pack_kn(aside, b + p * ldb + whole, ldb, rows, n - whole);
    panel<T, 1>(c + whole, ldc, a + p, lda, aside, W, m, n - whole, rows, add || p > 0);
  }
}

}  // namespace detail

// The products for a row-major k x n matrix b that is not packed: for products of few rows, which do not repay packing.
// A single row is summed eight terms at a time; blocks as wide as b serve it best.
template <class T>
BB_INLINE void dot_kn_set(T* c, long ldc, const T* a, long lda, const T* b, long ldb, long m, long n, long k) {
  detail::dot_kn<T>(c, ldc, a, lda, b, ldb, m, n, k, false);
}
template <class T>
BB_INLINE void dot_kn_add(T* c, long ldc, const T* a, long lda, const T* b, long ldb, long m, long n, long k) {
  detail::dot_kn<T>(c, ldc, a, lda, b, ldb, m, n, k, true);
}

namespace detail {

// Whether caches keep k rows of a panel where they lie. Rows at a distance that a large power of two divides share few
// places there: no more than a cache of this size has of them. Processors with narrower vectors have smaller caches.
constexpr size_t near_cache = BB_VECTOR_BYTES == 64 ? 1 << 20 : 1 << 18;
template <class T> bool stays_in_caches(long ldb, long k) {
  const size_t step = size_t(ldb) * sizeof(T);
  return size_t(k) * (step & -step) <= near_cache;
}

// So many rows repay a copy of what all their tiles read: it lies in one run, and its vectors in whole lines.
constexpr long rows_worth_a_copy = 16 * full_tile_rows;

// B as it lies in memory; the last panel, if it is not full, is packed before it is used.
template <class T>
void dot_in_passing(
    T* c, long ldc, const T* a, long lda, const T* b, long ldb, T* panel, long next, long m, long n, long k, bool add) {
  constexpr long N = panel_width<T>;
  T* const packed = m < rows_worth_a_copy && stays_in_caches<T>(ldb, k) ? nullptr : panel;
  for (; n >= N; n -= N, c += N, b += N, next -= N)
    full_panel<T>(c, ldc, a, lda, b, ldb, packed, m, k, add, n >= 2 * N ? N : next);
  if (n == 0) return;
  pack_kn(panel, b, ldb, k, n);
  dot<T>(c, ldc, a, lda, panel, k, 0, m, n, k, add);
}

}  // namespace detail

// The products for a row-major k x n matrix b whose panels, where that is worth it, are packed in passing: while the
// first rows of C are computed. `panel` has room for k rows of one. What is read next, usually, lies `next` elements
// behind b.
template <class T>
BB_INLINE void dot_in_passing_set(
    T* c, long ldc, const T* a, long lda, const T* b, long ldb, T* panel, long next, long m, long n, long k) {
  detail::dot_in_passing<T>(c, ldc, a, lda, b, ldb, panel, next, m, n, k, false);
}
template <class T>
BB_INLINE void dot_in_passing_add(
    T* c, long ldc, const T* a, long lda, const T* b, long ldb, T* panel, long next, long m, long n, long k) {
  detail::dot_in_passing<T>(c, ldc, a, lda, b, ldb, panel, next, m, n, k, true);
}

namespace detail {

// One row of C and several full panels, which lie `apart` elements from one another. Memory is read at so many places at a
// time: processors foresee each of them by themselves and get more from memory than of one panel after the other.
constexpr int panels_at_once = 8 / panel_vectors;
template <class S> void row_of_panels(sum_t<S>* c, const S* a, const S* b, long apart, long k, bool add) {
  using vec = typename Vector<sum_t<S>>::type;
  using mem = typename Vector<sum_t<S>>::unaligned;
  constexpr int P = panels_at_once, V = panel_vectors;
  constexpr long W = Vector<sum_t<S>>::width, N = panel_width<S>, G = panel_group<S>;
  vec sum[P][V];
  BB_UNROLL for (int q = 0; q < P; ++q)
    BB_UNROLL for (int j = 0; j < V; ++j) sum[q][j] = vec{};
  const auto step = [&](long p, long left) __attribute__((always_inline)) {
    vec x;
    if constexpr (G == 1) x = a[p] - vec{};
    else x = pair_of(a + p, left);
    BB_UNROLL for (int q = 0; q < P; ++q)
      BB_UNROLL for (int j = 0; j < V; ++j) {
        const vec row = *(const mem*)(b + q * apart + p * N + j * W * G);
        if constexpr (G == 1) sum[q][j] = fused_lanes(row, x, sum[q][j]);
        else sum[q][j] = add_pairs(sum[q][j], row, x);
      }
  };
  long p = 0;
  for (; p + G <= k; p += G) step(p, G);
  if (p < k) step(p, k - p);
  BB_UNROLL for (int q = 0; q < P; ++q)
    BB_UNROLL for (int j = 0; j < V; ++j) {
      mem* const to = (mem*)(c + q * N + j * W);
      *to = add ? sum[q][j] + *to : sum[q][j];
    }
}

// Whether tiles of the same rows should follow one another, from panel to panel, instead of those of the same panel. Rows
// of C that lie far apart are best visited along, not across. All panels of the block must have room in the cache behind
// the nearest, which reads them ahead since they lie in long runs, and one be so long that the nearest would not keep it
// anyway.
constexpr long nearest_cache = 1 << 15, rows_worth_it = 4 * full_tile_rows;
template <class S> BB_INLINE bool goes_by_rows(long ldc, long m, long n, long k) {
  if (panel_lines > 1 || is_widened<S> || m < rows_worth_it || ldc < 2 * n) return false;
  const size_t row = size_t(k) * sizeof(S);
  return row * panel_width<S> > size_t(nearest_cache) / 2 && row * size_t(n) <= near_cache;
}

template <class S>
void dot_prepared(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, long depth, long p0, long j0, long m, long n, long k,
    bool add) {
  constexpr long N = panel_width<S>;
  depth = packed_rows<S>(depth);
  b += j0 * depth;
  if (goes_by_rows<S>(ldc, m, n, k)) {
    const long whole = n / N * N;
    rows_of_panels<S>(c, ldc, a, lda, b + p0 * N, N * depth, m, whole, k, add);
    n -= whole, c += whole, b += whole * depth;
  }
  if (constexpr long some = panels_at_once * N; m == 1 && panel_lines == 1 && !is_widened<S>)
    for (; n >= some; n -= some, c += some, b += some * depth) row_of_panels<S>(c, a, b + p0 * N, N * depth, k, add);
  for (; n >= N && !is_widened<S>; n -= N, c += N, b += N * depth)
    full_panel<S>(c, ldc, a, lda, b + p0 * N, N, nullptr, m, k, add, n >= 2 * N ? N * depth : N * k);
  dot<S>(c, ldc, a, lda, b, depth, p0, m, n, k, add);
}

}  // namespace detail

// How many of a block's rows a product takes at once whose result is stored where it is made: no more than the caches keep
// of A while B's blocks pass, halved as often as that takes. Tiles divide any number of rows among them.
template <class S> constexpr int64_t rows_kept_near(int64_t rows, int64_t contracted) {
  while (detail::panel_lines == 1 && rows >= 4 * detail::rows_worth_it &&
         size_t(rows) * size_t(contracted) * sizeof(S) > detail::near_cache)
    rows = (rows + 1) / 2;
  return rows;
}

// The products for a block of a matrix of `depth` rows that was packed ahead: k rows from p0 on, and n columns from j0
// on, where a panel must begin; unless they are the last columns of it or of a block that was packed apart, n is a
// multiple of the panel's width. j0 counts packed columns. Of bf16, p0 must be even.
template <class S>
BB_INLINE void dot_prepared_set(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, long depth, long p0, long j0, long m, long n, long k) {
  detail::dot_prepared<S>(c, ldc, a, lda, b, depth, p0, j0, m, n, k, false);
}
template <class S>
BB_INLINE void dot_prepared_add(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, long depth, long p0, long j0, long m, long n, long k) {
  detail::dot_prepared<S>(c, ldc, a, lda, b, depth, p0, j0, m, n, k, true);
}

namespace detail {

// Where a row of a panel is more than a line, a panel comes in time as it is: its rows are read one after another.
template <class S>
void dot_kept(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, size_t all, long m, long n, long k, bool add) {
  if (panel_lines == 1 && !is_widened<S> && all * sizeof(S) >= near_cache)
    return dot_prepared<S>(c, ldc, a, lda, b, k, 0, 0, m, n, k, add);
  dot<S>(c, ldc, a, lda, b, packed_rows<S>(k), 0, m, n, k, add);
}

}  // namespace detail

// The products for an operand that was packed for other rows already. It lies among `all` elements that are used one after
// another: tiles ask for the next panel where the nearest caches cannot hold so many.
template <class S>
BB_INLINE void dot_kept_set(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, size_t all, long m, long n, long k) {
  detail::dot_kept<S>(c, ldc, a, lda, b, all, m, n, k, false);
}
template <class S>
BB_INLINE void dot_kept_add(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, size_t all, long m, long n, long k) {
  detail::dot_kept<S>(c, ldc, a, lda, b, all, m, n, k, true);
}

}  // namespace bb

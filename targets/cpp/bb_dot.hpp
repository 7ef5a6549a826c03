// Block products: C = A B and C += A B for row-major A (m x k) and C (m x n), and B in packed panels. This is the
// register-tiled inner kernel and the packing only; the loops over blocks, the choice of block sizes and the threads are
// the generated kernel's. Sums run over ascending p from zero within one call, and are then stored or added to C, so
// that a result depends on nothing but the operands and the block sizes.
//
// A panel holds `panel_width<T>` columns (the last one fewer, in whole vectors): element (p, j) of a panel of width w is
// at panel[p * w + j], missing columns are zero, and panels follow one another. Nothing outside A, C and the packed
// size of B is read or written.
//
// A and B may also be bf16; C is then float. Panels hold such numbers in pairs of rows, element (p, j) at
// panel[(p / 2 * w + j) * 2 + p % 2], with a row of zeros after an odd last one: what the processor's dot products of
// pairs take, where it has them. Those treat subnormal numbers as zero.
#pragma once

#include "bb_types.hpp"
#include "bb_vector.hpp"

#include <stddef.h>

namespace bb {
namespace detail {

// Vectors across a full panel. Tile shapes leave registers for the row of B and one broadcast element of A.
constexpr int panel_vectors = BB_VECTOR_REGISTERS == 32 ? 4 : 2;

constexpr int tile_rows(int vectors) {
  return vectors == 4 ? 6 : vectors == 2 && BB_VECTOR_REGISTERS == 16 ? 6 : 8;
}

}  // namespace detail

// What products of a type are summed in.
template <class S> using sum_t = compute_t<S>;

// Rows that lie together in a panel.
template <class S> constexpr long panel_group = detail::same<S, bf16> ? 2 : 1;

// Columns in a full packed panel, and rows in a full register tile: block sizes that are multiples of them lose nothing.
template <class S> constexpr long panel_width = detail::panel_vectors * detail::Vector<sum_t<S>>::width;
constexpr long full_tile_rows = detail::tile_rows(detail::panel_vectors);

// Rows of a packed matrix, and the elements that it occupies.
template <class S> constexpr long packed_rows(long k) { return (k + panel_group<S> - 1) / panel_group<S> * panel_group<S>; }
template <class S> constexpr size_t packed_size(long k, long n) {
  const long w = detail::Vector<sum_t<S>>::width;
  return size_t(packed_rows<S>(k)) * size_t((n + w - 1) / w * w);
}

namespace detail {

// Blocks of a large matrix are short pieces of rows, which the processor does not foresee: it must be asked for them,
// into the nearest cache (level 3) or the one behind it (level 2). Addresses past the matrix are harmless to ask for, but
// must not be formed as pointers.
template <int Level, class S> BB_INLINE void prefetch(const S* from, long offset) {
  const uintptr_t place = reinterpret_cast<uintptr_t>(from) + uintptr_t(offset) * sizeof(S);
  __builtin_prefetch(reinterpret_cast<const void*>(place), 0, Level);
}

// The sums of products of a group of rows of B, held in one vector, with the same group of one row of A.
template <class T> BB_INLINE typename Vector<T>::type group_of(const T* a, long) {
  return *a - typename Vector<T>::type{};  // in every lane; adding would lose the sign of a zero
}
template <class T> BB_INLINE typename Vector<T>::type add_products(
    typename Vector<T>::type sum, typename Vector<T>::type row, typename Vector<T>::type x) {
  return fused_lanes(row, x, sum);
}

// A pair of bf16 in every lane; `left` counts the elements that there are.
BB_INLINE Vector<float>::type group_of(const bf16* a, long left) {
  uint32_t pair = 0;
  __builtin_memcpy(&pair, a, left > 1 ? 4 : 2);  // the first one lies in the low half
  return Vector<float>::type(pair - Vector<uint32_t>::type{});
}
BB_INLINE Vector<float>::type add_pairs(
    Vector<float>::type sum, Vector<float>::type row, Vector<float>::type x) {
#if defined(__AVX512BF16__)
  // Compilers differ in the name and the types of their function for this.
  __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(row), "v"(x));
  return sum;
#else
  using bits = Vector<uint32_t>::type;
  const auto low = [](Vector<float>::type v) { return Vector<float>::type(bits(v) << 16); };
  const auto high = [](Vector<float>::type v) { return Vector<float>::type(bits(v) & 0xffff0000u); };
  return fused_lanes(high(row), high(x), fused_lanes(low(row), low(x), sum));
#endif
}

// One register tile: R rows and V whole vectors of columns of C. Beside each row of B it asks for `Asked` vectors that
// lie `ahead` elements further on.
template <class S, int R, int V, int Asked>
__attribute__((noinline)) void tile(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, long ldb, long k, bool add, long ahead) {
  using T = sum_t<S>;
  using vec = typename Vector<T>::type;
  using mem = typename Vector<T>::unaligned;
  constexpr long W = Vector<T>::width, G = panel_group<S>;
  vec sum[R][V];
  BB_UNROLL for (int i = 0; i < R; ++i)
    BB_UNROLL for (int j = 0; j < V; ++j) sum[i][j] = vec{};
  const auto step = [&](long p, long left) __attribute__((always_inline)) {
    vec row[V];
    BB_UNROLL for (int j = 0; j < Asked; ++j) prefetch<2>(b, ahead + j * W * G);
    BB_UNROLL for (int j = 0; j < V; ++j) {
      row[j] = *(const mem*)(b + j * W * G);
      if (R > 1) BB_IN_REGISTER(row[j]);
    }
    BB_UNROLL for (int i = 0; i < R; ++i) {
      const vec x = group_of(a + i * lda + p, left);
      BB_UNROLL for (int j = 0; j < V; ++j) {
        if constexpr (G == 1) sum[i][j] = add_products<T>(sum[i][j], row[j], x);
        else sum[i][j] = add_pairs(sum[i][j], row[j], x);
      }
    }
    b += ldb * G;
  };
  long p = 0;
  for (; p + G <= k; p += G) step(p, G);
  if (p < k) step(p, k - p);
  if (add) {
    BB_UNROLL for (int i = 0; i < R; ++i)
      BB_UNROLL for (int j = 0; j < V; ++j) sum[i][j] += *(const mem*)(c + i * ldc + j * W);
  }
  BB_UNROLL for (int i = 0; i < R; ++i)
    BB_UNROLL for (int j = 0; j < V; ++j) *(mem*)(c + i * ldc + j * W) = sum[i][j];
}

template <class S, int V, int Asked = 0>
BB_INLINE void tile_of_rows(
    long rows, sum_t<S>* c, long ldc, const S* a, long lda, const S* b, long ldb, long k, bool add, long ahead = 0) {
  constexpr int most = tile_rows(V);
  switch (rows) {
    case 1: return tile<S, 1, V, Asked>(c, ldc, a, lda, b, ldb, k, add, ahead);
    case 2: return tile<S, 2, V, Asked>(c, ldc, a, lda, b, ldb, k, add, ahead);
    case 3: return tile<S, 3, V, Asked>(c, ldc, a, lda, b, ldb, k, add, ahead);
    case 4: return tile<S, 4, V, Asked>(c, ldc, a, lda, b, ldb, k, add, ahead);
    case 5: return tile<S, 5, V, Asked>(c, ldc, a, lda, b, ldb, k, add, ahead);
    case 6: return tile<S, 6, V, Asked>(c, ldc, a, lda, b, ldb, k, add, ahead);
    case 7: return tile<S, most < 7 ? most : 7, V, Asked>(c, ldc, a, lda, b, ldb, k, add, ahead);
    case 8: return tile<S, most < 8 ? most : 8, V, Asked>(c, ldc, a, lda, b, ldb, k, add, ahead);
  }
}

// All rows against one panel of V vectors, in tiles as equal as possible: 13 rows go as 5 + 4 + 4. Where fewer than
// V whole vectors of columns are wanted, a tile is made aside and its valid columns are copied.
template <class S, int V>
void panel(sum_t<S>* c, long ldc, const S* a, long lda, const S* b, long ldb, long m, long columns, long k, bool add) {
  constexpr long W = Vector<sum_t<S>>::width;
  using T = sum_t<S>;
  alignas(BB_VECTOR_BYTES) T aside[tile_rows(V) * V * W];
  const long tiles = (m + tile_rows(V) - 1) / tile_rows(V);
  for (long t = 0; t < tiles; ++t) {
    const long rows = m / tiles + (t < m % tiles);
    if (columns == V * W) {
      tile_of_rows<S, V>(rows, c, ldc, a, lda, b, ldb, k, add);
    } else {
      tile_of_rows<S, V>(rows, aside, V * W, a, lda, b, ldb, k, false);
      for (long i = 0; i < rows; ++i)
        for (long l = 0; l < columns; ++l) c[i * ldc + l] = (add ? c[i * ldc + l] : T(0)) + aside[i * V * W + l];
    }
    c += rows * ldc;
    a += rows * lda;
  }
}

// All rows against a full panel of a matrix in main memory. Tile after tile asks for some of the columns `ahead`, so that
// memory is read all the time, and not by the first tile alone while the others wait for nothing but their sums.
template <class S>
void full_panel(sum_t<S>* c, long ldc, const S* a, long lda, const S* b, long ldb, long m, long k, bool add, long ahead) {
  constexpr int V = panel_vectors, W = Vector<sum_t<S>>::width;
  const long tiles = (m + tile_rows(V) - 1) / tile_rows(V);
  const long share = tiles == 1 ? V : tiles < V ? (V + 1) / 2 : 1;
  for (long t = 0; t < tiles; ++t) {
    const long rows = m / tiles + (t < m % tiles), from = ahead + t * share * W * panel_group<S>;
    if (t * share >= V) tile_of_rows<S, V>(rows, c, ldc, a, lda, b, ldb, k, add);
    else if (share == V) tile_of_rows<S, V, V>(rows, c, ldc, a, lda, b, ldb, k, add, from);
    else if (share > 1) tile_of_rows<S, V, (V + 1) / 2>(rows, c, ldc, a, lda, b, ldb, k, add, from);
    else tile_of_rows<S, V, 1>(rows, c, ldc, a, lda, b, ldb, k, add, from);
    c += rows * ldc;
    a += rows * lda;
  }
}

// One panel of a packed matrix, from its row p0 on.
template <class S, int V>
BB_INLINE void packed_panel(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, long p0, long m, long columns, long k, bool add) {
  constexpr long width = V * Vector<sum_t<S>>::width;
  if constexpr (V <= panel_vectors) panel<S, V>(c, ldc, a, lda, b + p0 * width, width, m, columns, k, add);
}

// Rows p0, ..., p0 + k - 1 of a packed matrix of `depth` rows.
template <class S>
void dot(sum_t<S>* c, long ldc, const S* a, long lda, const S* b, long depth, long p0, long m, long n, long k, bool add) {
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

// Transposes a W x W tile held in W vectors: swaps the off-diagonal halves, then those of each half, and so on.
// Step H swaps lane bit H with row bit H.
template <int H, class T, int... I>
BB_INLINE void swap_halves(typename Vector<T>::type& lo, typename Vector<T>::type& hi, Lanes<I...>) {
  constexpr int W = Vector<T>::width;
  const typename Vector<T>::type a = lo, b = hi;
  lo = __builtin_shufflevector(a, b, (I & H ? I - H + W : I)...);
  hi = __builtin_shufflevector(a, b, (I & H ? I + W : I + H)...);
}

template <class T, int H> BB_INLINE void transpose(typename Vector<T>::type* rows) {
  constexpr int W = Vector<T>::width;
  if constexpr (H > 0) {
    BB_UNROLL for (int i = 0; i < W; ++i)
      if (!(i & H)) swap_halves<H, T>(rows[i], rows[i + H], LanesOf<T>{});
    transpose<T, H / 2>(rows);
  }
}

// `count` elements of any storage type as one vector of T, the rest zero.
template <class T, class S> BB_INLINE typename Vector<T>::type load_vector(const S* src, long count) {
  constexpr int W = Vector<T>::width;
  S part[W] = {};
  if (count < W) {
    for (long l = 0; l < count; ++l) part[l] = src[l];
    src = part;
  }
  if constexpr (same<S, T>) {
    return *(const typename Vector<T>::unaligned*)src;
  } else {
    alignas(BB_VECTOR_BYTES) T x[W];
#pragma omp simd
    for (int l = 0; l < W; ++l) x[l] = T(load(src[l]));
    return *(const typename Vector<T>::type*)x;
  }
}

}  // namespace detail

// Packs element (p, j) = src[p * stride_k + j * stride_n]. The general case; the two below are faster where they apply.
template <class T, class S>
void pack_strided(T* dst, const S* src, long stride_k, long stride_n, long k, long n) {
  constexpr long W = detail::Vector<T>::width, N = panel_width<T>;
  for (long j = 0; j < n; j += N) {
    const long columns = n - j < N ? n - j : N, width = (columns + W - 1) / W * W;
    const S* from = src + j * stride_n;
    for (long p = 0; p < k; ++p, from += stride_k, dst += width) {
      for (long l = 0; l < columns; ++l) dst[l] = T(load(from[l * stride_n]));
      for (long l = columns; l < width; ++l) dst[l] = T(0);
    }
  }
}

// Packs a row-major k x n matrix, element (p, j) = src[p * ld + j]. Whole rows are read at a time, so that a page of
// the source is visited once.
template <class T, class S> void pack_kn(T* dst, const S* src, long ld, long k, long n) {
  constexpr long W = detail::Vector<T>::width, N = panel_width<T>;
  // Some rows ahead is also where the block below begins, which is usually packed next.
  constexpr long rows_ahead = 8;
  const long whole = n / N * N, columns = n - whole, width = (columns + W - 1) / W * W;
  for (long p = 0; p < k; ++p) {
    const S* from = src + p * ld;
    for (long j = 0; j < whole; j += N) {
      T* to = dst + j * k + p * N;
      for (long l = 0; l < N; l += 64 / long(sizeof(S))) detail::prefetch<3>(from + j + l, rows_ahead * ld);
#pragma omp simd
      for (long l = 0; l < N; ++l) to[l] = T(load(from[j + l]));
    }
    T* to = dst + whole * k + p * width;
    for (long l = 0; l < columns; ++l) to[l] = T(load(from[whole + l]));
    for (long l = columns; l < width; ++l) to[l] = T(0);
  }
}

// Packs the transpose of a row-major n x k matrix, element (p, j) = src[j * ld + p].
template <class T, class S> void pack_nk(T* dst, const S* src, long ld, long k, long n) {
  using vec = typename detail::Vector<T>::type;
  using mem = typename detail::Vector<T>::unaligned;
  constexpr long W = detail::Vector<T>::width, N = panel_width<T>;
  for (long j = 0; j < n; j += N) {
    const long columns = n - j < N ? n - j : N, width = (columns + W - 1) / W * W;
    for (long l = 0; l < columns; l += W) {
      const S* from = src + (j + l) * ld;
      const long rows = columns - l < W ? columns - l : W;
      for (long p = 0; p < k; p += W) {
        vec x[W];
        const long some = k - p < W ? k - p : W;
        BB_UNROLL for (int r = 0; r < W; ++r)
          x[r] = r < rows ? detail::load_vector<T>(from + r * ld + p, some) : vec{};
        detail::transpose<T, W / 2>(x);
        T* to = dst + p * width + l;
        BB_UNROLL for (int r = 0; r < W; ++r)
          if (r < some) *(mem*)(to + r * width) = x[r];
      }
    }
    dst += k * width;
  }
}

// The same for bf16 that stay bf16, in pairs of rows.
inline void pack_strided(bf16* dst, const bf16* src, long stride_k, long stride_n, long k, long n) {
  constexpr long W = detail::Vector<float>::width, N = panel_width<bf16>;
  for (long j = 0; j < n; j += N) {
    const long columns = n - j < N ? n - j : N, width = (columns + W - 1) / W * W;
    const bf16* from = src + j * stride_n;
    for (long p = 0; p < k; p += 2, from += 2 * stride_k, dst += 2 * width)
      for (long l = 0; l < width; ++l) {
        dst[2 * l] = l < columns ? from[l * stride_n] : bf16{};
        dst[2 * l + 1] = l < columns && p + 1 < k ? from[stride_k + l * stride_n] : bf16{};
      }
  }
}

inline void pack_kn(bf16* dst, const bf16* src, long ld, long k, long n) {
  constexpr long N = panel_width<bf16>, rows_ahead = 8;
  const long whole = n / N * N, rows = packed_rows<bf16>(k);
  for (long p = 0; p + 1 < k; p += 2)
    for (long j = 0; j < whole; j += N) {
      const bf16 *even = src + p * ld + j, *odd = even + ld;
      bf16* to = dst + j * rows + p * N;
      for (long l = 0; l < N; l += 32) {
        detail::prefetch<3>(even + l, rows_ahead * ld);
        detail::prefetch<3>(odd + l, rows_ahead * ld);
      }
#pragma omp simd
      for (long l = 0; l < N; ++l) {
        to[2 * l].bits = even[l].bits;
        to[2 * l + 1].bits = odd[l].bits;
      }
    }
  if (k % 2)
    for (long j = 0; j < whole; j += N) pack_strided(dst + j * rows + (k - 1) * N, src + (k - 1) * ld + j, ld, 1, 1, N);
  pack_strided(dst + whole * rows, src + whole, ld, 1, k, n - whole);
}

// Pairs lie together in the source already: it is the transpose of a matrix of pairs.
inline void pack_nk(bf16* dst, const bf16* src, long ld, long k, long n) {
  using vec = detail::Vector<float>::type;
  using mem = detail::Vector<float>::unaligned;
  typedef float pairs __attribute__((vector_size(BB_VECTOR_BYTES), aligned(2), may_alias));
  constexpr long W = detail::Vector<float>::width, N = panel_width<bf16>;
  const long rows = packed_rows<bf16>(k);
  for (long j = 0; j < n; j += N) {
    const long columns = n - j < N ? n - j : N, width = (columns + W - 1) / W * W;
    for (long l = 0; l < columns; l += W)
      for (long p = 0; p < k; p += 2 * W) {
        const bf16* from = src + (j + l) * ld + p;
        const long some = k - p < 2 * W ? k - p : 2 * W;
        vec x[W];
        BB_UNROLL for (int r = 0; r < W; ++r) {
          bf16 part[2 * W] = {};
          if (l + r >= columns) {
            x[r] = vec{};
          } else if (some == 2 * W) {
            x[r] = *(const pairs*)(from + r * ld);
          } else {
            for (long i = 0; i < some; ++i) part[i] = from[r * ld + i];
            x[r] = *(const pairs*)part;
          }
        }
        detail::transpose<float, W / 2>(x);
        bf16* to = dst + p * width + l * 2;
        BB_UNROLL for (int r = 0; r < W; ++r)
          if (2 * r < some) *(mem*)(to + r * 2 * width) = x[r];
      }
    dst += rows * width;
  }
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
    full_panel<T>(c + j, ldc, a, lda, b + j, ldb, m, k, add, ahead);
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

// Packs a whole k x n matrix ahead of the products that use it, on all threads: row-major, or the transpose of a
// row-major n x k matrix.
template <class T, class S> void prepare_kn(T* dst, const S* src, long k, long n, int threads) {
  constexpr long N = panel_width<T>;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (long j = 0; j < n; j += N) pack_kn(dst + j * packed_rows<T>(k), src + j, n, k, n - j < N ? n - j : N);
}
template <class T, class S> void prepare_nk(T* dst, const S* src, long k, long n, int threads) {
  constexpr long N = panel_width<T>;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (long j = 0; j < n; j += N) pack_nk(dst + j * packed_rows<T>(k), src + j * k, k, k, n - j < N ? n - j : N);
}

namespace detail {

template <class S>
void dot_prepared(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, long depth, long p0, long j0, long m, long n, long k, bool add) {
  constexpr long N = panel_width<S>;
  depth = packed_rows<S>(depth);
  b += j0 * depth;
  for (; n >= N; n -= N, c += N, b += N * depth)
    full_panel<S>(c, ldc, a, lda, b + p0 * N, N, m, k, add, n >= 2 * N ? N * depth : N * k);
  dot<S>(c, ldc, a, lda, b, depth, p0, m, n, k, add);
}

}  // namespace detail

// The products for a block of a matrix of `depth` rows that was packed ahead: k rows from p0 on, and n columns from j0
// on, where a panel must begin; unless they are its last columns, n is a multiple of the panel's width. Of bf16, p0 must
// be even.
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

}  // namespace bb

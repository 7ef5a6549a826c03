// The inner kernel of block products: register tiles of C, and all rows of A against one panel of columns of B. How B is
// packed into panels is here too, since tiles read it; packing it is bb_pack.hpp, whole products are bb_dot.hpp.
//
// A panel holds `panel_width<S>` columns (the last one fewer, in whole vectors): element (p, j) of a panel of width w is
// at panel[p * w + j], missing columns are zero, and panels follow one another.
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

// Rows of a packed matrix, its columns and the elements that it occupies.
template <class S> constexpr long packed_rows(long k) {
  return (k + panel_group<S> - 1) / panel_group<S> * panel_group<S>;
}
template <class S> constexpr long packed_columns(long n) {
  const long w = detail::Vector<sum_t<S>>::width;
  return (n + w - 1) / w * w;
}
template <class S> constexpr size_t packed_size(long k, long n) {
  return size_t(packed_rows<S>(k)) * size_t(packed_columns<S>(n));
}

namespace detail {

// Blocks of a large matrix are short pieces of rows, which the processor does not foresee: it must be asked for them,
// into the nearest cache (level 3) or the one behind it (level 2). Addresses past the matrix are harmless to ask for, but
// must not be formed as pointers.
template <class S> BB_INLINE uintptr_t address(const S* from, long offset) {
  return reinterpret_cast<uintptr_t>(from) + uintptr_t(offset) * sizeof(S);
}
template <int Level> BB_INLINE void prefetch(uintptr_t place) {
  __builtin_prefetch(reinterpret_cast<const void*>(place), 0, Level);
}

// What a tile does beside its sums, with each of its rows of B: nothing,
struct Nothing {
  template <class vec> BB_INLINE void operator()(const vec*) {}
};
// or it asks for the lines of a row that is wanted soon, one row below the other,
constexpr long line = 64;
constexpr int panel_lines = panel_vectors * BB_VECTOR_BYTES <= line ? 1 : panel_vectors * BB_VECTOR_BYTES / line;
struct Asking {
  uintptr_t place, step;
  BB_INLINE void ask() {
    BB_UNROLL for (int j = 0; j < panel_lines; ++j) prefetch<2>(place + j * line);
    place += step;
  }
  template <class vec> BB_INLINE void operator()(const vec*) { ask(); }
};
// or only once in `period` rows,
struct AskingSeldom {
  Asking rows;
  long period;
  template <class vec> BB_INLINE void operator()(const vec*) {}
};
// or it packs the rows of a whole panel, and asks for those some way ahead.
template <class T> struct Packing {
  T* to;
  Asking ahead;
  template <class vec> BB_INLINE void operator()(const vec* row) {
    ahead(row);
    BB_UNROLL for (int j = 0; j < panel_vectors; ++j)
      *(typename Vector<T>::unaligned*)(to + j * Vector<T>::width) = row[j];
    to += panel_vectors * Vector<T>::width;
  }
};

// A pair of bf16 in every lane; `left` counts the elements that there are.
BB_INLINE Vector<float>::type pair_of(const bf16* a, long left) {
  uint32_t pair = 0;
  __builtin_memcpy(&pair, a, left > 1 ? 4 : 2);  // the first one lies in the low half
  return Vector<float>::type(pair - Vector<uint32_t>::type{});
}
// The sum with the products of both elements of each pair.
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

// One register tile: R rows and V whole vectors of columns of C.
template <class S, int R, int V, class Beside>
__attribute__((noinline)) void tile(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, long ldb, long k, bool add, Beside beside) {
  using T = sum_t<S>;
  using vec = typename Vector<T>::type;
  using mem = typename Vector<T>::unaligned;
  constexpr long W = Vector<T>::width, G = panel_group<S>;
  vec sum[R][V];
  BB_UNROLL for (int i = 0; i < R; ++i)
    BB_UNROLL for (int j = 0; j < V; ++j) sum[i][j] = vec{};
  // What the sums are added to is there when they are made, even if it comes from another cache. Tiles of more lines
  // would ask for too many at once.
  if (add && panel_lines == 1)
    BB_UNROLL for (int i = 0; i < R; ++i) prefetch<3>(address(c, i * ldc));
  const auto step = [&](long p, long left) __attribute__((always_inline)) {
    vec row[V];
    BB_UNROLL for (int j = 0; j < V; ++j) {
      row[j] = *(const mem*)(b + j * W * G);
      if (R > 1) BB_IN_REGISTER(row[j]);
    }
    beside(row);
    BB_UNROLL for (int i = 0; i < R; ++i) {
      vec x;
      if constexpr (G == 1) x = a[i * lda + p] - vec{};  // in every lane; adding would lose the sign of a zero
      else x = pair_of(a + i * lda + p, left);
      BB_UNROLL for (int j = 0; j < V; ++j) {
        if constexpr (G == 1) sum[i][j] = fused_lanes(row[j], x, sum[i][j]);
        else sum[i][j] = add_pairs(sum[i][j], row[j], x);
      }
    }
    b += ldb * G;
  };
  long p = 0;
  if constexpr (same<Beside, AskingSeldom>) {
    for (const long whole = k / G * G, some = beside.period * G; p < whole;) {
      beside.rows.ask();
      for (const long end = whole - p < some ? whole : p + some; p < end; p += G) step(p, G);
    }
  } else {
    for (; p + G <= k; p += G) step(p, G);
  }
  if (p < k) step(p, k - p);
  if (add) {
    BB_UNROLL for (int i = 0; i < R; ++i)
      BB_UNROLL for (int j = 0; j < V; ++j) sum[i][j] += *(const mem*)(c + i * ldc + j * W);
  }
  BB_UNROLL for (int i = 0; i < R; ++i)
    BB_UNROLL for (int j = 0; j < V; ++j) *(mem*)(c + i * ldc + j * W) = sum[i][j];
}

template <class S, int V, class Beside = Nothing>
BB_INLINE void tile_of_rows(
    long rows, sum_t<S>* c, long ldc, const S* a, long lda, const S* b, long ldb, long k, bool add, Beside beside = {}) {
  constexpr int most = tile_rows(V);
  switch (rows) {
    case 1: return tile<S, 1, V>(c, ldc, a, lda, b, ldb, k, add, beside);
    case 2: return tile<S, 2, V>(c, ldc, a, lda, b, ldb, k, add, beside);
    case 3: return tile<S, 3, V>(c, ldc, a, lda, b, ldb, k, add, beside);
    case 4: return tile<S, 4, V>(c, ldc, a, lda, b, ldb, k, add, beside);
    case 5: return tile<S, 5, V>(c, ldc, a, lda, b, ldb, k, add, beside);
    case 6: return tile<S, 6, V>(c, ldc, a, lda, b, ldb, k, add, beside);
    case 7: return tile<S, most < 7 ? most : 7, V>(c, ldc, a, lda, b, ldb, k, add, beside);
    case 8: return tile<S, most < 8 ? most : 8, V>(c, ldc, a, lda, b, ldb, k, add, beside);
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
      for (long i = 0; i < rows; ++i)  // there are fewer columns than V * W: compilers are told
        for (long l = 0; l < columns && l < V * W; ++l) c[i * ldc + l] = (add ? c[i * ldc + l] : T(0)) + aside[i * V * W + l];
    }
    c += rows * ldc;
    a += rows * lda;
  }
}

// All rows against full panels, which lie `apart` elements from one another: a tile's rows meet all panels, then the next.
template <class S>
void rows_of_panels(sum_t<S>* c, long ldc, const S* a, long lda, const S* b, long apart, long m, long n, long k, bool add) {
  constexpr long N = panel_width<S>;
  const long tiles = (m + full_tile_rows - 1) / full_tile_rows;
  for (long t = 0; t < tiles; ++t) {
    const long rows = m / tiles + (t < m % tiles);
    const S* from = b;
    for (long j = 0; j < n; j += N, from += apart)
      tile_of_rows<S, panel_vectors>(rows, c + j, ldc, a, lda, from, N, k, add);
    c += rows * ldc;
    a += rows * lda;
  }
}

// All rows against a full panel of a matrix in main memory. Tile after tile asks for some rows of the panel `ahead`, so that
// memory is read all the time, and not by the first tile alone while the others wait for nothing but their sums: now and
// then or, if they are few, at once. Rows need not begin with a line: it is the last line of each that no other panel
// asked for, and so the last byte that is asked for. With `packed`, which has room for the panel, the first tile packs it for
// the others.
template <class S>
void full_panel(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, long ldb, S* packed, long m, long k, bool add, long ahead) {
  constexpr int V = panel_vectors, W = Vector<sum_t<S>>::width, G = panel_group<S>;
  constexpr long rows_ahead = 16, most_asking = 8, most_at_once = 8 / panel_lines;
  const long tiles = (m + tile_rows(V) - 1) / tile_rows(V), first = packed && tiles > 1 ? 1 : 0;
  const long asking = tiles - first, period = asking < most_asking ? asking : most_asking;
  const long stretch = (k / G + period - 1) / period;
  const uintptr_t step = uintptr_t(ldb) * G * sizeof(S);
  Asking soon{address(b, ahead) + line - 1, step}, now{address(b, 0) + line - 1, step};
  for (long t = 0; t < tiles; ++t) {
    const long rows = m / tiles + (t < m % tiles);
    if (t < first) {
      for (long p = 0; p < k && p < rows_ahead; ++p) now.ask();
      if constexpr (G == 1) tile_of_rows<S, V>(rows, c, ldc, a, lda, b, ldb, k, add, Packing<S>{packed, now});
      b = packed;
      ldb = V * W;
    } else if (t - first >= period) {
      tile_of_rows<S, V>(rows, c, ldc, a, lda, b, ldb, k, add);
    } else if (stretch <= most_at_once) {
      for (long i = 0; i < stretch; ++i) soon.ask();
      tile_of_rows<S, V>(rows, c, ldc, a, lda, b, ldb, k, add);
    } else {
      if (period == 1) tile_of_rows<S, V>(rows, c, ldc, a, lda, b, ldb, k, add, soon);
      else tile_of_rows<S, V>(rows, c, ldc, a, lda, b, ldb, k, add, AskingSeldom{soon, period});
      soon.place += uintptr_t(stretch) * step;
    }
    c += rows * ldc;
    a += rows * lda;
  }
}

}  // namespace detail
}  // namespace bb

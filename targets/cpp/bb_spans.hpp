// Blocks of which a mask shows only a span of each row's columns: from begin[i] to before past[i] of row i. Whole groups
// of `span_unit` columns are worked on, so that vectors stay whole; what a row lacks in its first and last group is up to
// who works on it. Products leave out what a tile of rows does not need.
#pragma once

#include "bb_dot.hpp"

namespace bb {

constexpr int64_t span_unit = 16;

// The columns of a row that are worked on, of `count`.
BB_INLINE int64_t span_begin(int64_t begin) { return begin / span_unit * span_unit; }
BB_INLINE int64_t span_past(int64_t past, int64_t count) {
  past = (past + span_unit - 1) / span_unit * span_unit;
  return past < count ? past : count;
}

// A bound of columns, of which a block has fewer than 2^31, in as many bits.
BB_INLINE int32_t column_bound(int64_t bound) {
  return int32_t(bound < INT32_MIN ? INT32_MIN : bound > INT32_MAX ? INT32_MAX : bound);
}

// Gives a row a value where it has not been worked on.
template <class T> BB_INLINE void fill_outside(T* row, int64_t first, int64_t past, int64_t count, T value) {
  for (int64_t c = 0; c < first; ++c) row[c] = value;
  for (int64_t c = past < first ? first : past; c < count; ++c) row[c] = value;
}

namespace detail {

// The columns that some of the rows need.
struct Span {
  long begin, past;
};
BB_INLINE Span joined_spans(const int64_t* begin, const int64_t* past, long rows) {
  Span all{INT64_MAX, 0};
  for (long i = 0; i < rows; ++i) {
    if (begin[i] >= past[i]) continue;
    all.begin = begin[i] < all.begin ? begin[i] : all.begin;
    all.past = past[i] > all.past ? past[i] : all.past;
  }
  return all;
}

// Whether every row needs all columns, as in most blocks beside a mask's edge.
BB_INLINE bool all_are_whole(const int64_t* begin, const int64_t* past, long rows, long columns) {
  bool whole = true;
  for (long i = 0; i < rows; ++i) whole &= begin[i] <= 0 && past[i] >= columns;
  return whole;
}

// A tile of rows against a panel of whole vectors, of which `columns` are wanted.
template <class S>
BB_INLINE void spanned_tile(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, long ldb, long rows, long columns, long k, bool add) {
  constexpr long W = Vector<sum_t<S>>::width;
  switch ((columns + W - 1) / W) {
    case 1: panel<S, 1>(c, ldc, a, lda, b, ldb, rows, columns, k, add); break;
    case 2: panel<S, 2>(c, ldc, a, lda, b, ldb, rows, columns, k, add); break;
    case 3: if constexpr (panel_vectors > 2) panel<S, 3>(c, ldc, a, lda, b, ldb, rows, columns, k, add); break;
    case 4: if constexpr (panel_vectors > 2) panel<S, 4>(c, ldc, a, lda, b, ldb, rows, columns, k, add); break;
  }
}

// Calls f(panel of b, its width, its first column, its columns, first row, rows, their span) for all panels and tiles.
template <class S, class F>
BB_INLINE void each_tile(const S* b, const int64_t* begin, const int64_t* past, long m, long n, long k, F f) {
  constexpr long W = Vector<sum_t<S>>::width, N = panel_width<S>;
  const long tiles = (m + full_tile_rows - 1) / full_tile_rows, depth = packed_rows<S>(k);
  for (long j = 0; j < n; j += N, b += N * depth) {
    const long columns = n - j < N ? n - j : N, width = (columns + W - 1) / W * W;
    for (long t = 0, i = 0; t < tiles; ++t) {
      const long rows = m / tiles + (t < m % tiles);
      f(b, width, j, columns, i, rows, joined_spans(begin + i, past + i, rows));
      i += rows;
    }
  }
}

template <class S>
void dot_wanted(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, const int64_t* begin, const int64_t* past, long m, long n,
    long k, bool add) {
  if (all_are_whole(begin, past, m, n)) return dot<S>(c, ldc, a, lda, b, packed_rows<S>(k), 0, m, n, k, add);
  const auto tile = [&](const S* panel, long width, long j, long columns, long i, long rows, Span span)
      __attribute__((always_inline)) {
    if (span.begin >= span.past) return;
    const long from = span_begin(span.begin) - j, to = span_past(span.past, n) - j;
    const long first = from > 0 ? from : 0, last = to < columns ? to : columns;
    if (first < last)
      spanned_tile<S>(c + i * ldc + j + first, ldc, a + i * lda, lda, panel + first * panel_group<S>, width, rows,
                      last - first, k, add);
  };
  each_tile<S>(b, begin, past, m, n, k, tile);
}

template <class S>
void dot_terms(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, const int64_t* begin, const int64_t* past, long m, long n,
    long k, bool add) {
  if (all_are_whole(begin, past, m, k)) return dot<S>(c, ldc, a, lda, b, packed_rows<S>(k), 0, m, n, k, add);
  const auto tile = [&](const S* panel, long width, long j, long columns, long i, long rows, Span span)
      __attribute__((always_inline)) {
    const bool none = span.begin >= span.past;
    if (none && add) return;
    const long first = none ? 0 : span.begin / panel_group<S> * panel_group<S>, terms = none ? 0 : span.past - first;
    spanned_tile<S>(c + i * ldc + j, ldc, a + i * lda + first, lda, panel + first * width, width, rows, columns, terms,
                    add);
  };
  each_tile<S>(b, begin, past, m, n, k, tile);
}

}  // namespace detail

// C = A B and C += A B, where of C only the groups of columns are made that meet a row's span, or of a neighbour's.
template <class S>
BB_INLINE void dot_wanted_set(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, const int64_t* begin, const int64_t* past, long m, long n,
    long k) {
  detail::dot_wanted<S>(c, ldc, a, lda, b, begin, past, m, n, k, false);
}
template <class S>
BB_INLINE void dot_wanted_add(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, const int64_t* begin, const int64_t* past, long m, long n,
    long k) {
  detail::dot_wanted<S>(c, ldc, a, lda, b, begin, past, m, n, k, true);
}

// The products of an A that is zero outside its rows' spans.
template <class S>
BB_INLINE void dot_terms_set(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, const int64_t* begin, const int64_t* past, long m, long n,
    long k) {
  detail::dot_terms<S>(c, ldc, a, lda, b, begin, past, m, n, k, false);
}
template <class S>
BB_INLINE void dot_terms_add(
    sum_t<S>* c, long ldc, const S* a, long lda, const S* b, const int64_t* begin, const int64_t* past, long m, long n,
    long k) {
  detail::dot_terms<S>(c, ldc, a, lda, b, begin, past, m, n, k, true);
}

}  // namespace bb

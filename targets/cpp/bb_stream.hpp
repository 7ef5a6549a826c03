// Rows on their way from and to memory. Results that nobody reads soon `write_row` can store past the caches, which spares
// reading the memory first and keeps what is in the caches there. `beside` folds of a row `row_ahead` fetches what is read
// next and `row_behind` stores the row before, so that memory never waits. Which rows are worth it is for the kernel to say.
#pragma once

#include "bb_types.hpp"
#include "bb_vector.hpp"

#include <stddef.h>

namespace bb {

// Results that together take more than this have left the caches before they are read, wherever they are stored.
constexpr size_t streamed_bytes = size_t(32) << 20;

// Whether it is worth while to fetch rows of a tensor of so many bytes, and to store others, beside the work on one row: the
// tensor may lie in no cache, and the rows, `distance` elements apart, are longer than what that takes to begin with.
template <class S> BB_INLINE bool are_fetched(const S*, long distance, size_t bytes) {
  return distance * long(sizeof(S)) >= 2048 && bytes > streamed_bytes / 2;
}

namespace detail {

// One vector of any storage type; `to` is aligned to its size.
BB_INLINE void store_past_caches(void* to, const void* from) {
#if defined(__AVX512F__) && !defined(__clang__)
  typedef long long vec __attribute__((vector_size(64), may_alias));
  __builtin_ia32_movntdq512((vec*)to, *(const vec*)from);
#elif defined(__AVX__) && !defined(__AVX512F__) && !defined(__clang__)
  typedef long long vec __attribute__((vector_size(32), may_alias));
  __builtin_ia32_movntdq256((vec*)to, *(const vec*)from);
#elif defined(__SSE2__) && !defined(__clang__)
  typedef long long vec __attribute__((vector_size(16), may_alias));
  __builtin_ia32_movntdq((vec*)to, *(const vec*)from);
#else
  typedef long long vec __attribute__((vector_size(BB_VECTOR_BYTES), may_alias));
#if defined(__clang__)
  __builtin_nontemporal_store(*(const vec*)from, (vec*)to);
#else
  *(vec*)to = *(const vec*)from;
#endif
#endif
}

}  // namespace detail

// Lets other threads see what this one has stored past the caches: to be called before they are told that it is there.
BB_INLINE void settle_streams() {
#if defined(__SSE2__)
  __builtin_ia32_sfence();
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// What fetches the row that lies `distance` elements after `row`, as far as the second cache: each call asks for so many
// more of its elements. There need not be such a row.
template <class S> class RowAhead {
  uintptr_t next;

 public:
  BB_INLINE RowAhead(const S* row, long distance)
      : next(reinterpret_cast<uintptr_t>(row) + uintptr_t(distance) * sizeof(S)) {}
  BB_INLINE void operator()(long count) {
    constexpr long line = 64;
    const long bytes = count * long(sizeof(S));
    for (long b = 0; b < bytes; b += line) __builtin_prefetch((const void*)(next + uintptr_t(b)), 0, 2);
    next += uintptr_t(bytes);
  }
};
template <class S> BB_INLINE RowAhead<S> row_ahead(const S* row, long distance) { return {row, distance}; }

// What goes on with `work` beside a fold of a row: for each part of the row it is called with how many elements so many
// quarters of the part are.
template <int Quarters, class Work> struct Beside {
  Work& work;
  template <class T> BB_INLINE void operator()(long, const T*, long count) const { work(count * Quarters / 4); }
};
template <int Quarters, class Work> BB_INLINE Beside<Quarters, Work> beside(Work& work) { return {work}; }

namespace detail {

// Stores f(c), ..., f(c + count - 1) past the caches, which are whole aligned vectors; at most four of floats. All are
// computed before the first is stored: what is read after a store to a place as far into its page waits for it.
template <class S, class F> BB_INLINE void stream_part(S* to, long c, long count, F& f) {
  constexpr long L = BB_VECTOR_BYTES / long(sizeof(S));
  alignas(BB_VECTOR_BYTES) S part[BB_VECTOR_BYTES];
  BB_UNROLL for (long first = 0; first < count; first += L) {
#pragma omp simd
    for (long l = 0; l < L; ++l) part[first + l] = f(c + first + l);
  }
  BB_UNROLL for (long l = 0; l < count; l += L) store_past_caches(to + c + l, part + l);
}

// How many entries there are, of at most n, before the first whole vector that is aligned.
template <class S> BB_INLINE long unaligned(const S* to, long n) {
  const long first = long((0 - reinterpret_cast<uintptr_t>(to)) % BB_VECTOR_BYTES / sizeof(S));
  return first < n ? first : n;
}

}  // namespace detail

// Stores f(0), ..., f(n - 1) to a row. f is vectorised, so calls must not depend on one another.
template <long Most = detail::any_length, class S, class F>
BB_INLINE void write_row(S* __restrict to, long n, bool streamed, F f) {
  constexpr long L = BB_VECTOR_BYTES / long(sizeof(S));
  long c = 0;
  if (Most >= L && streamed) {
    for (const long first = detail::unaligned(to, n); c < first; ++c) to[c] = f(c);
    for (; c + L <= n; c += L) detail::stream_part(to, c, L, f);
  }
#pragma omp simd
  for (long l = c; l < n; ++l) to[l] = f(l);
}

// What stores f(0), ..., f(n - 1) to a row past the caches: each call stores so many more of them, and the end what is
// left; nothing if there `is` no such row.
template <long Most, class S, class F> class RowBehind {
  static constexpr long L = BB_VECTOR_BYTES / long(sizeof(S));
  S* const to;
  const long n, first;
  F f;
  long c, due = 0;

  BB_INLINE void store(long count) {
    if (c + count > n) return;
    detail::stream_part(to, c, count, f);
    c += count;
  }

 public:
  BB_INLINE RowBehind(bool is, S* to, long n, F f)
      : to(to), n(is ? n : 0), first(detail::unaligned(to, this->n)), f(f), c(first) {}
  RowBehind(const RowBehind&) = delete;
  BB_INLINE void operator()(long count) {
    if (Most < L) return;
    if (count % L == 0) return store(count);
    for (due += count; due >= L; due -= L) store(L);
  }
  BB_INLINE ~RowBehind() {
    for (; Most >= L && c + L <= n; c += L) detail::stream_part(to, c, L, f);
    for (; c < n; ++c) to[c] = f(c);
    for (c = 0; c < first; ++c) to[c] = f(c);
  }
};
template <long Most = detail::any_length, class S, class F>
BB_INLINE RowBehind<Most, S, F> row_behind(bool is, S* to, long n, F f) {
  return {is, to, n, f};
}

}  // namespace bb

// Rows on their way from and to memory. Results that nobody reads soon `write_row` can store past the caches, which spares
// reading the memory first and keeps what is in the caches there. While something is computed, `row_ahead` fetches what is
// read next and `row_behind` stores the row before. Which rows are worth it is for the kernel to say.
#pragma once

#include "bb_types.hpp"
#include "bb_vector.hpp"

#include <stddef.h>

namespace bb {

// Results that together take more than this have left the caches before they are read, wherever they are stored.
constexpr size_t streamed_bytes = size_t(32) << 20;

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

// What fetches the row that lies `distance` elements after `row`, as far as the second cache: called for each part of the
// row at hand, it asks for the same part of the later one. There need not be a later one.
template <class S> struct RowAhead {
  uintptr_t later;
  template <class T> BB_INLINE void operator()(long first, const T*, long count) const {
    constexpr long line = 64;
    const uintptr_t begin = later + uintptr_t(first) * sizeof(S);
    for (long b = 0; b < count * long(sizeof(S)); b += line) __builtin_prefetch((const void*)(begin + uintptr_t(b)), 0, 2);
  }
};
template <class S> BB_INLINE RowAhead<S> row_ahead(const S* row, long distance) {
  return {reinterpret_cast<uintptr_t>(row) + uintptr_t(distance) * sizeof(S)};
}

namespace detail {

// Stores f(c), ..., f(c + count - 1) past the caches, which are whole aligned vectors; at most four of floats.
template <class S, class F> BB_INLINE void stream_part(S* to, long c, long count, F& f) {
  constexpr long L = BB_VECTOR_BYTES / long(sizeof(S));
  alignas(BB_VECTOR_BYTES) S part[BB_VECTOR_BYTES];
#pragma omp simd
  for (long l = 0; l < count; ++l) part[l] = f(c + l);
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

// What stores f(0), ..., f(n - 1) to a row past the caches, part by part as it is called for those of the row at hand, and
// what is left in the end; nothing if there `is` no such row.
template <long Most, class S, class F> class RowBehind {
  static constexpr long L = BB_VECTOR_BYTES / long(sizeof(S));
  S* const to;
  const long n;
  F f;
  long c = 0;

 public:
  BB_INLINE RowBehind(bool is, S* to, long n, F f) : to(to), n(is ? n : 0), f(f) {
    for (const long first = detail::unaligned(to, this->n); c < first; ++c) to[c] = f(c);
  }
  template <class T> BB_INLINE void operator()(long, const T*, long count) {
    if (Most < L || count % L != 0 || c + count > n) return;
    detail::stream_part(to, c, count, f);
    c += count;
  }
  BB_INLINE ~RowBehind() {
    for (; Most >= L && c + L <= n; c += L) detail::stream_part(to, c, L, f);
    for (; c < n; ++c) to[c] = f(c);
  }
};
template <long Most = detail::any_length, class S, class F>
BB_INLINE RowBehind<Most, S, F> row_behind(bool is, S* to, long n, F f) {
  return {is, to, n, f};
}

}  // namespace bb

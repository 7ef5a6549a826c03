// Rows of results that nobody reads soon: `write_row` can store them past the caches, which spares reading the memory
// first and keeps what is in the caches there. Which results are worth it is for the kernel to say.
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

// Stores f(0), ..., f(n - 1) to a row. f is vectorised, so calls must not depend on one another.
template <class S, class F> BB_INLINE void write_row(S* __restrict to, long n, bool streamed, F f) {
  long c = 0;
  if (streamed) {
    constexpr long L = BB_VECTOR_BYTES / long(sizeof(S));
    const long first = long((0 - reinterpret_cast<uintptr_t>(to)) % BB_VECTOR_BYTES / sizeof(S));
    for (; c < first && c < n; ++c) to[c] = f(c);
    alignas(BB_VECTOR_BYTES) S part[L];
    for (; c + L <= n; c += L) {
#pragma omp simd
      for (long l = 0; l < L; ++l) part[l] = f(c + l);
      detail::store_past_caches(to + c, part);
    }
  }
#pragma omp simd
  for (long l = c; l < n; ++l) to[l] = f(l);
}

}  // namespace bb

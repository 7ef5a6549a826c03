// Packs right operands of block products into the panels of bb_tile.hpp: blocks of any storage type when a kernel needs
// them, and whole matrices ahead of all products.
#pragma once

#include "bb_tile.hpp"

namespace bb {
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
      for (long l = 0; l < N; l += 64 / long(sizeof(S))) detail::prefetch<3>(detail::address(from + j + l, rows_ahead * ld));
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
        detail::prefetch<3>(detail::address(even + l, rows_ahead * ld));
        detail::prefetch<3>(detail::address(odd + l, rows_ahead * ld));
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

// Labels a buffer with what is wanted in it; whether something else was there.
BB_INLINE bool relabel(int64_t& label, int64_t wanted) {
  const bool differs = label != wanted;
  label = wanted;
  return differs;
}

namespace detail {

// Calls pack(to, j, columns) on all threads for every panel of a matrix of k rows and n columns, of which every `block` of
// columns begins a panel.
template <class T, class F> void prepare(T* dst, long k, long n, long block, int threads, F pack) {
  constexpr long N = panel_width<T>;
  const long panels = (block + N - 1) / N, blocks = block ? (n + block - 1) / block : 0;
#pragma omp parallel for num_threads(threads) schedule(static) collapse(2)
  for (long b = 0; b < blocks; ++b)
    for (long p = 0; p < panels; ++p) {
      const long j = b * block + p * N, left = block - p * N < n - j ? block - p * N : n - j;
      T* const to = dst + (b * packed_columns<T>(block) + p * N) * packed_rows<T>(k);
      if (left > 0) pack(to, j, left < N ? left : N);
    }
}

}  // namespace detail

// Packs a whole k x n matrix ahead of the products that use it, on all threads: row-major, or the transpose of a
// row-major n x k matrix. Products take blocks of it, and a panel begins with each of `block` columns; 0 stands for n.
template <class T, class S> void prepare_kn(T* dst, const S* src, long k, long n, long block, int threads) {
  detail::prepare(dst, k, n, block ? block : n, threads, [=](T* to, long j, long columns) {
    pack_kn(to, src + j, n, k, columns);
  });
}
template <class T, class S> void prepare_nk(T* dst, const S* src, long k, long n, long block, int threads) {
  detail::prepare(dst, k, n, block ? block : n, threads, [=](T* to, long j, long columns) {
    pack_nk(to, src + j * k, k, k, columns);
  });
}

// The elements of a matrix that is packed ahead.
template <class T> constexpr size_t prepared_size(long k, long n, long block) {
  const long apart = block ? n / block : 0;
  return size_t(apart) * packed_size<T>(k, block) + packed_size<T>(k, n - apart * block);
}

}  // namespace bb

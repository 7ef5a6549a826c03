// Checks bb_dot.hpp and the workspace: packing against its definition and products against a plain triple loop in
// double, for all small sizes and for tails around the tile sizes. Every operand ends at a page that may not be touched
// (reading past it kills the program), and the gaps between rows of C must keep their contents.
#include "bb.hpp"

#include <initializer_list>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int failures = 0;

#define CHECK(condition, ...)                                             \
  do {                                                                    \
    if (!(condition)) {                                                   \
      printf("%s:%d: failed: %s: ", __FILE__, __LINE__, #condition);      \
      printf(__VA_ARGS__);                                                \
      printf("\n");                                                       \
      if (++failures > 20) exit(1);                                       \
    }                                                                     \
  } while (0)

// Memory whose last byte is followed by a page without access; `take` gives the n elements that end there.
struct Guarded {
  static constexpr size_t size = 1 << 22, page = 4096;
  char* base = static_cast<char*>(mmap(nullptr, size + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  Guarded() {
    mprotect(base, page, PROT_NONE);
    mprotect(base + page + size, page, PROT_NONE);
  }
  template <class T> T* take(size_t n) { return reinterpret_cast<T*>(base + page + size) - n; }
};

static uint32_t state = 1;
static double random_value() {  // a multiple of 1/8 in [-2, 2): exact in f16 and bf16
  state = state * 1664525u + 1013904223u;
  return int((state >> 16) & 31) / 8.0 - 2;
}

template <class S> static void fill(S* x, size_t n) {
  for (size_t i = 0; i < n; ++i) x[i] = bb::store<S>(bb::compute_t<S>(random_value()));
}

static Guarded a_memory, b_memory, c_memory, packed_memory, other_memory;

// Element (p, j) of a packed matrix, by the layout that bb_dot.hpp states.
template <class T> static T packed_element(const T* packed, long k, long n, long p, long j) {
  const long full = bb::panel_width<T>, vector = BB_VECTOR_BYTES / sizeof(bb::sum_t<T>), group = bb::panel_group<T>;
  const long first = j / full * full, columns = n - first < full ? n - first : full;
  const long width = (columns + vector - 1) / vector * vector, rows = (k + group - 1) / group * group;
  return packed[first * rows + (p / group * width + (j - first)) * group + p % group];
}

template <class T, class S> static void packing(long k, long n, long gap) {
  T* packed = packed_memory.take<T>(bb::packed_size<T>(k, n));
  T* again = other_memory.take<T>(bb::packed_size<T>(k, n));
  const size_t bytes = bb::packed_size<T>(k, n) * sizeof(T);
  for (int transposed = 0; transposed < 2; ++transposed) {
    const long rows = transposed ? n : k, columns = transposed ? k : n, ld = columns + gap;
    S* src = b_memory.take<S>(rows ? size_t(rows - 1) * ld + columns : 0);
    fill(src, rows ? size_t(rows - 1) * ld + columns : 0);
    memset((void*)packed, 0xff, bytes);
    memset((void*)again, 0xff, bytes);
    if (transposed) bb::pack_nk(packed, src, ld, k, n);
    else bb::pack_kn(packed, src, ld, k, n);
    bb::pack_strided(again, src, transposed ? 1 : ld, transposed ? ld : 1, k, n);
    bool right = true;
    for (long p = 0; p < k; ++p)
      for (long j = 0; j < n; ++j)
        right &= double(bb::load(packed_element(packed, k, n, p, j))) == double(bb::load(transposed ? src[j * ld + p] : src[p * ld + j]));
    CHECK(right, "packing k=%ld n=%ld transposed=%d element size %zu", k, n, transposed, sizeof(S));
    CHECK(memcmp(packed, again, bytes) == 0, "strided packing k=%ld n=%ld transposed=%d", k, n, transposed);
  }
}

template <class S> static void product(long m, long n, long k, long gap) {
  const long lda = k + gap, ldb = n + gap, ldc = n + gap;
  const size_t a_size = k ? size_t(m - 1) * lda + k : 0, b_size = k ? size_t(k - 1) * ldb + n : 0, c_size = size_t(m - 1) * ldc + n;
  using T = bb::sum_t<S>;
  S *a = a_memory.take<S>(a_size), *b = b_memory.take<S>(b_size), *packed = packed_memory.take<S>(bb::packed_size<S>(k, n));
  T* c = c_memory.take<T>(c_size);
  const T mark = T(12345.678);
  fill(a, a_size);
  fill(b, b_size);
  bb::pack_kn(packed, b, ldb, k, n);
  S* panel = other_memory.take<S>(bb::packed_size<S>(k, n < bb::panel_width<S> ? n : bb::panel_width<S>));
  for (int way = 0; way < 8; ++way) {
    const bool kept_far = way > 5;  // packed earlier, among more than the nearest caches hold
    const int add = way & 1, unpacked = !kept_far && way & 2, in_passing = !kept_far && way & 4;
    if ((unpacked || in_passing) && bb::panel_group<S> > 1) continue;
    for (size_t i = 0; i < c_size; ++i) c[i] = long(i % ldc) < n ? T(add ? 0.5 : NAN) : mark;
    c[-1] = mark;
    if constexpr (bb::panel_group<S> == 1) {
      if (unpacked && add) bb::dot_kn_add(c, ldc, a, lda, b, ldb, m, n, k);
      else if (unpacked) bb::dot_kn_set(c, ldc, a, lda, b, ldb, m, n, k);
      else if (in_passing && add) bb::dot_in_passing_add(c, ldc, a, lda, b, ldb, panel, k * ldb, m, n, k);
      else if (in_passing) bb::dot_in_passing_set(c, ldc, a, lda, b, ldb, panel, k * ldb, m, n, k);
    }
    const size_t all = size_t(1) << 24;
    if (kept_far && add) bb::dot_kept_add(c, ldc, a, lda, packed, all, m, n, k);
    else if (kept_far) bb::dot_kept_set(c, ldc, a, lda, packed, all, m, n, k);
    else if (way > 1) {
    } else if (add) bb::dot_add(c, ldc, a, lda, packed, m, n, k);
    else bb::dot_set(c, ldc, a, lda, packed, m, n, k);
    bool right = true, kept = c[-1] == mark;
    for (size_t i = 0; i < c_size; ++i) {
      const long r = long(i) / ldc, j = long(i) % ldc;
      if (j >= n) {
        kept &= c[i] == mark;
        continue;
      }
      double want = add ? 0.5 : 0;
      for (long p = 0; p < k; ++p) want += double(bb::load(a[r * lda + p])) * double(bb::load(b[p * ldb + j]));
      right &= double(c[i]) == want;  // exact: the operands are small multiples of 1/8
    }
    CHECK(right, "product m=%ld n=%ld k=%ld gap=%ld way=%d element size %zu", m, n, k, gap, way, sizeof(S));
    CHECK(kept, "memory outside C, m=%ld n=%ld k=%ld gap=%ld way=%d", m, n, k, gap, way);
  }
}

template <class T> static void products() {
  for (long m = 1; m <= 9; ++m)
    for (long n = 1; n <= 19; ++n)
      for (long k = 0; k <= 4; ++k) product<T>(m, n, k, (m + n + k) % 3);
  const long w = bb::panel_width<T>, sizes[] = {1, 3, 15, 16, 17, 31, 33, 47, 48, 49, 63, 64, 65, 2 * w - 1, 2 * w + 1, 3 * w};
  for (long n : sizes)
    for (long m : {1, 2, 5, 6, 7, 8, 9, 11, 12, 13, 17, 25})
      for (long k : {1, 5, 37, 150}) product<T>(m, n, k, (m + n) % 2 * 5);
  // Rows that share few places in caches.
  for (long n : {w, 2 * w + 1})
    for (long m : {1, 7, 25}) product<T>(m, n, 150, 2048 - n);
  for (long m : {95, 96, 97})  // about as many rows as repay a copy of panels that caches would keep
    for (long n : {1, 64, 150}) product<T>(m, n, 70, 3);
}

// The product for a block of a matrix that was packed whole: rows from p0 on, columns from j0 on, which is `first` packed.
template <class S>
static void prepared_block(
    long m, long depth, long width, const S* b, const S* packed, long p0, long k, long j0, long first, long n,
    long apart = 1) {
  const long lda = k + 2, ldc = n + apart;
  const size_t a_size = size_t(m - 1) * lda + k, c_size = size_t(m - 1) * ldc + n;
  using T = bb::sum_t<S>;
  S* a = a_memory.take<S>(a_size);
  T* c = c_memory.take<T>(c_size);
  fill(a, a_size);
  for (int add = 0; add < 2; ++add) {
    for (size_t i = 0; i < c_size; ++i) c[i] = T(long(i % ldc) < n && !add ? NAN : 0.5);
    if (add) bb::dot_prepared_add(c, ldc, a, lda, packed, depth, p0, first, m, n, k);
    else bb::dot_prepared_set(c, ldc, a, lda, packed, depth, p0, first, m, n, k);
    bool right = true;
    for (size_t i = 0; i < c_size; ++i) {
      const long r = long(i) / ldc, j = long(i) % ldc;
      double want = add || j >= n ? 0.5 : 0;
      for (long p = 0; p < k && j < n; ++p) want += double(bb::load(a[r * lda + p])) * double(bb::load(b[(p0 + p) * width + j0 + j]));
      right &= double(c[i]) == want;
    }
    CHECK(right, "prepared m=%ld depth=%ld width=%ld p0=%ld k=%ld j0=%ld n=%ld add=%d", m, depth, width, p0, k, j0, n, add);
  }
}

template <class T> static void prepared(long depth, long width) {
  T *b = b_memory.take<T>(size_t(depth) * width), *transposed = other_memory.take<T>(size_t(depth) * width);
  T* packed = packed_memory.take<T>(bb::packed_size<T>(depth, width));
  const size_t bytes = bb::packed_size<T>(depth, width) * sizeof(T);
  fill(b, size_t(depth) * width);
  for (long p = 0; p < depth; ++p)
    for (long j = 0; j < width; ++j) transposed[j * depth + p] = b[p * width + j];
  bb::prepare_kn(packed, b, depth, width, 0, 3);
  T* other = c_memory.take<T>(bb::packed_size<T>(depth, width));
  memset((void*)other, 0xff, bytes);
  bb::prepare_nk(other, transposed, depth, width, 0, 2);
  CHECK(memcmp(packed, other, bytes) == 0, "preparing a transpose, depth=%ld width=%ld", depth, width);
  const long full = bb::panel_width<T>;
  for (long m : {1, 2, 6, 7, 13, 20, 37})
    for (long j0 = 0; j0 < width; j0 += full)
      for (long n : {full, 3 * full, width - j0})
        for (long p0 : {0l, depth / 3 / bb::panel_group<T> * bb::panel_group<T>})
          if (n <= width - j0) prepared_block(m, depth, width, b, packed, p0, (depth - p0 + 1) / 2, j0, j0, n);
}

// Blocks of a large result: long panels, which rows may meet one after another.
template <class T> static void prepared_far_apart(long depth, long width) {
  T *b = b_memory.take<T>(size_t(depth) * width), *packed = packed_memory.take<T>(bb::packed_size<T>(depth, width));
  fill(b, size_t(depth) * width);
  bb::prepare_kn(packed, b, depth, width, 0, 2);
  for (long m : {23, 24, 25, 61})
    for (long n : {bb::panel_width<T>, width}) prepared_block(m, depth, width, b, packed, 0, depth, 0, 0, n, width);
}

// Blocks of columns that are packed apart, so that a panel begins with each.
template <class T> static void prepared_apart(long depth, long width, long block) {
  T *b = b_memory.take<T>(size_t(depth) * width), *transposed = other_memory.take<T>(size_t(depth) * width);
  const size_t size = bb::prepared_size<T>(depth, width, block);
  T *packed = packed_memory.take<T>(size), *other = c_memory.take<T>(size);
  fill(b, size_t(depth) * width);
  for (long p = 0; p < depth; ++p)
    for (long j = 0; j < width; ++j) transposed[j * depth + p] = b[p * width + j];
  memset((void*)packed, 0, size * sizeof(T));
  memset((void*)other, 0xff, size * sizeof(T));
  bb::prepare_kn(packed, b, depth, width, block, 3);
  bb::prepare_nk(other, transposed, depth, width, block, 2);
  CHECK(memcmp(packed, other, size * sizeof(T)) == 0, "preparing blocks, depth=%ld width=%ld block=%ld", depth, width, block);
  for (long m : {1, 7, 20})
    for (long j0 = 0, first = 0; j0 < width; j0 += block, first += bb::packed_columns<T>(block))
      prepared_block(m, depth, width, b, packed, 0, depth, j0, first, block < width - j0 ? block : width - j0);
}

template <class T, class S> static void packings() {
  for (long k = 0; k <= 20; ++k)
    for (long n = 1; n <= 70; n += n < 20 ? 1 : 7) packing<T, S>(k, n, (k + n) % 3);
  for (long k : {16, 31, 33, 64})
    for (long n : {63, 64, 65, 127, 130}) packing<T, S>(k, n, 1);
}

int main() {
  packings<float, float>();
  packings<float, bb::f16>();
  packings<float, bb::bf16>();
  packings<float, double>();
  packings<bb::bf16, bb::bf16>();
  packings<double, double>();
  packings<double, float>();
  for (long depth : {2, 9, 40})
    for (long width : {1, 15, 64, 100, 129, 200, 256}) {
      prepared<float>(depth, width);
      prepared<double>(depth, width);
      prepared<bb::bf16>(depth, width);
      for (long block : {1, 16, 43, 64, 176}) {
        prepared_apart<float>(depth, width, block);
        prepared_apart<double>(depth, width, block);
        prepared_apart<bb::bf16>(depth, width, block);
      }
    }
  prepared_far_apart<float>(300, 100);
  prepared_far_apart<double>(300, 100);
  prepared_far_apart<bb::bf16>(300, 100);
  products<float>();
  products<double>();
  products<bb::bf16>();

  char* first = bb::workspace(100);
  CHECK(size_t(first) % 64 == 0, "alignment");
  CHECK(bb::workspace(50) == first, "a smaller request keeps the memory");
  memset(bb::workspace(3 << 20), 1, 3 << 20);
  char* mine = bb::workspace(100);
  bool apart = true;
#pragma omp parallel num_threads(3) reduction(&& : apart)
  {
    char* w = bb::workspace(1000);
    memset(w, 2, 1000);
#pragma omp barrier
#pragma omp master
    apart = apart && w == mine;
  }
  CHECK(apart, "the first thread keeps its memory in a parallel region");
  printf(failures ? "%d checks failed\n" : "all checks passed\n", failures);
  return failures != 0;
}

// What this machine can do at all: multiply-adds, bf16 dot products, reads from memory and copies with streaming stores. Each
// function runs its loop on all threads and returns operations or bytes a second. Loops, not library calls: a limit
// that depends on a library would be no limit.
#include <omp.h>
#include <stddef.h>

#if defined(__FMA__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace {

#if defined(__AVX512F__)
constexpr int bytes = 64;
#elif defined(__AVX__)
constexpr int bytes = 32;
#else
constexpr int bytes = 16;
#endif
constexpr int lanes = bytes / sizeof(float);
typedef float vec __attribute__((vector_size(bytes)));
volatile float sink;

// One instruction where there is one: the compiler is told not to contract by itself.
vec multiply_add(vec a, vec b, vec c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

float fold(vec v) {
  float total = 0;
  for (int l = 0; l < lanes; ++l) total += v[l];
  return total;
}

}  // namespace

// Ten independent sums hide the latency of a multiply-add on two pipes, and fit 16 registers.
extern "C" double multiply_adds(int threads, long rounds) {
  const double start = omp_get_wtime();
#pragma omp parallel num_threads(threads)
  {
    vec sum[10], x = vec{} + 1.0000001f, y = vec{} + 1e-9f;
    for (int i = 0; i < 10; ++i) sum[i] = vec{} + float(i);
    for (long k = 0; k < rounds; ++k) {
#pragma GCC unroll 10
      for (int i = 0; i < 10; ++i) sum[i] = multiply_add(sum[i], x, y);
      asm volatile("" : "+x"(x), "+x"(y));
    }
    float total = 0;
    for (auto& s : sum) total += fold(s);
    sink = total;
  }
  return 20.0 * lanes * double(rounds) * threads / (omp_get_wtime() - start);
}

// 0 where the processor has no such instruction.
extern "C" double bf16_dots(int threads, long rounds) {
#if defined(__AVX512BF16__)
  const double start = omp_get_wtime();
#pragma omp parallel num_threads(threads)
  {
    __m512 sum[12];
    __m512bh x = (__m512bh)_mm512_set1_epi32(0x3f803f80), y = (__m512bh)_mm512_set1_epi32(0x00010001);
    for (int i = 0; i < 12; ++i) sum[i] = _mm512_set1_ps(float(i));
    for (long k = 0; k < rounds; ++k) {
#pragma GCC unroll 12
      for (int i = 0; i < 12; ++i) sum[i] = _mm512_dpbf16_ps(sum[i], x, y);
      asm volatile("" : "+v"(x), "+v"(y));
    }
    float total = 0;
    for (auto& s : sum) total += _mm512_reduce_add_ps(s);
    sink = total;
  }
  return 12 * 64.0 * double(rounds) * threads / (omp_get_wtime() - start);
#else
  (void)threads, (void)rounds;
  return 0;
#endif
}

// Every thread reads at four places at a time, which gets more from memory than one place after another.
extern "C" double reads(int threads, const float* from, long count) {
  const long rounds = count / (8 * lanes), quarter = rounds * 2 * lanes;
  const double start = omp_get_wtime();
#pragma omp parallel num_threads(threads)
  {
    vec sum[8] = {};
#pragma omp for schedule(static)
    for (long i = 0; i < rounds; ++i)
      for (int j = 0; j < 8; ++j) sum[j] += *(const vec*)(from + j / 2 * quarter + (i * 2 + j % 2) * lanes);
    float total = 0;
    for (auto& s : sum) total += fold(s);
    sink = total;
  }
  return double(count) * sizeof(float) / (omp_get_wtime() - start);
}

// Bytes read and written.
extern "C" double copies(int threads, float* to, const float* from, long count) {
  const double start = omp_get_wtime();
#pragma omp parallel for num_threads(threads) schedule(static)
  for (long i = 0; i < count / lanes; ++i) {
    const vec v = *(const vec*)(from + i * lanes);
#if defined(__clang__)
    __builtin_nontemporal_store(v, (vec*)(to + i * lanes));
#elif defined(__AVX512F__)
    __builtin_ia32_movntps512(to + i * lanes, v);
#elif defined(__AVX__)
    __builtin_ia32_movntps256(to + i * lanes, v);
#elif defined(__SSE__)
    __builtin_ia32_movntps(to + i * lanes, v);
#else
    *(vec*)(to + i * lanes) = v;
#endif
  }
  return 2.0 * double(count) * sizeof(float) / (omp_get_wtime() - start);
}

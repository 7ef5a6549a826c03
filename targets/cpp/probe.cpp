// What `bbrewrite target --measure` runs: rates of this machine as the cost model counts them.
//
// Every figure is the best of several short runs, since other work on the machine only makes them worse. Results are
// kept from being optimised away by `sink`. Not part of any generated kernel.
#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "bb_tile.hpp"

namespace {

constexpr int runs = 7;
constexpr std::size_t lanes = BB_VECTOR_BYTES / sizeof(float);
typedef float Vector __attribute__((vector_size(BB_VECTOR_BYTES)));
volatile float sink;

template <class Work>
double best_seconds(Work work) {
  double best = 1e30;
  for (int run = 0; run < runs; ++run) {
    const double start = omp_get_wtime();
    work();
    best = std::min(best, omp_get_wtime() - start);
  }
  return best;
}

// Bytes read and written a second by all threads, each copying within `bytes` of its own.
double copy_rate(int threads, std::size_t bytes) {
  const std::size_t count = bytes / 2 / sizeof(float) / lanes * lanes;
  const std::size_t repeats = std::max<std::size_t>(1, (std::size_t{48} << 20) / bytes);
  std::vector<std::vector<float>> from(threads), to(threads);
#pragma omp parallel num_threads(threads)
  {
    // Memory belongs near the thread that touches it first.
    from[omp_get_thread_num()].assign(count, 1.0f);
    to[omp_get_thread_num()].assign(count, 0.0f);
  }
  const double seconds = best_seconds([&] {
#pragma omp parallel num_threads(threads)
    {
      const float *source = from[omp_get_thread_num()].data();
      float *target = to[omp_get_thread_num()].data();
      for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
        const float add = float(repeat);
#pragma omp simd
        for (std::size_t at = 0; at < count; ++at) target[at] = source[at] + add;
      }
      sink = target[count / 2];
    }
  });
  return 2.0 * sizeof(float) * double(count) * double(repeats) * threads / seconds;
}

// Multiply-adds of one thread's register tile, operands in its nearest cache: operations a second.
double product_rate(int threads) {
  constexpr std::size_t rows = bb::full_tile_rows, columns = bb::detail::panel_vectors, depth = 256;
  constexpr int repeats = 4000;
  const double seconds = best_seconds([&] {
#pragma omp parallel num_threads(threads)
    {
      std::vector<float> left(rows * depth, 1e-3f);
      std::vector<Vector> right(columns * depth, Vector{} + 1e-3f);
      Vector sum[rows][columns] = {};
      for (int repeat = 0; repeat < repeats; ++repeat)
        for (std::size_t k = 0; k < depth; ++k)
          for (std::size_t row = 0; row < rows; ++row)
            for (std::size_t column = 0; column < columns; ++column) {
              auto &item = sum[row][column];
              item = bb::detail::fused_lanes(Vector{} + left[k * rows + row], right[k * columns + column], item);
            }
      float total = 0;
      for (auto &line : sum)
        for (auto &item : line) total += item[0];
      sink = total;
    }
  });
  return 2.0 * rows * columns * depth * repeats * double(lanes) / seconds;
}

// Vector instructions a second of one thread, on data in its nearest cache.
double vector_rate(int threads) {
  constexpr std::size_t count = 2048;
  constexpr int repeats = 20000, operations = 8;
  const double seconds = best_seconds([&] {
#pragma omp parallel num_threads(threads)
    {
      std::vector<float> values(count, 0.5f);
      for (int repeat = 0; repeat < repeats; ++repeat) {
#pragma omp simd
        for (std::size_t at = 0; at < count; ++at) {
          float x = values[at];
          x = x * x + 0.25f;
          x = std::max(x - 0.125f, 0.0f);
          x = x * x + 0.25f;
          x = std::max(x - 0.125f, 0.0f);
          x = x * 0.5f;
          x = x + 0.125f;
          values[at] = x;
        }
      }
      sink = values[count / 2];
    }
  });
  return double(operations) * count / double(lanes) * repeats / seconds;
}

double launch_seconds(int threads) {
  constexpr int launches = 500;
  return best_seconds([&] {
           for (int launch = 0; launch < launches; ++launch) {
#pragma omp parallel num_threads(threads)
             sink = 1.0f;
           }
         }) / launches;
}

}  // namespace

// `sizes` are working sets of one thread, in bytes, one for each memory tier; their rates follow the others. `found` has
// room for both: seconds of a launch, multiply-adds and vector instructions a second, lanes, the register tile's rows
// and columns.
extern "C" void bb_probe(int threads, const double *sizes, int tiers, double *found) {
  found[0] = launch_seconds(threads);
  found[1] = product_rate(threads);
  found[2] = vector_rate(threads);
  found[3] = double(lanes);
  found[4] = double(bb::full_tile_rows);
  found[5] = double(bb::panel_width<float>);
  for (int tier = 0; tier < tiers; ++tier) found[6 + tier] = copy_rate(threads, std::size_t(sizes[tier]));
}

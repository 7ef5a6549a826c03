// Checks of bb_round.hpp and of the reductions that keep their terms rounded: rows of all lengths, every kind of float,
// and that nothing beside the row is written. Prints what is wrong; exit status 1 if anything is.
#include "bb.hpp"

#include <initializer_list>
#include <math.h>
#include <stdio.h>

static int faults = 0;

static bool same(bb::bf16 found, float from) {
  const bb::bf16 wanted = bb::store<bb::bf16>(from);
  // Subnormal numbers may be taken for zero.
  const bool tiny = fabsf(from) < 0x1p-126f;
  return found.bits == wanted.bits || (tiny && (found.bits & 0x7fff) == 0);
}

static void check(const char* what, long n, const bb::bf16* row, const float* from) {
  for (long i = 0; i < n; ++i)
    if (!same(row[i], from[i])) printf("%s, length %ld: %a became %04x\n", what, n, from[i], row[i].bits), ++faults;
  if (row[-1].bits != 7 || row[n].bits != 7) printf("%s, length %ld: wrote beside the row\n", what, n), ++faults;
}

int main() {
  constexpr long most = 300;
  static float from[most];
  static bb::bf16 memory[most + 2];
  uint32_t bits = 1;
  for (long turn = 0; turn < 200; ++turn)
    for (long n : {0L, 1L, 15L, 16L, 31L, 32L, 33L, 63L, 64L, 65L, 127L, 128L, 200L, most}) {
      float sum = 0, top = -INFINITY;
      for (long i = 0; i < n; ++i) {
        bits = bits * 1664525u + 1013904223u;
        from[i] = bb::detail::float_of(turn % 2 ? bits : (bits & 0x83ffffff) | 0x3c000000);
        if (turn % 2 && i % 37 == 5) from[i] = i % 2 ? INFINITY : __builtin_nanf("");
        top = from[i] > top ? from[i] : top;
        sum += from[i];
      }
      const auto value = [&](long c) { return from[c]; };
      const auto fresh = [&] {
        for (bb::bf16& x : memory) x.bits = 7;
        return memory + 1;
      };
      bb::round_row(fresh(), n, value);
      check("round_row", n, memory + 1, from);
      const float found = bb::sum_over<float>(n, value, bb::KeepRounded{fresh()});
      check("sum_over", n, memory + 1, from);
      if (turn % 2 == 0 && !(fabsf(found - sum) <= 1e-4f * n)) printf("sum of %ld: %g for %g\n", n, found, sum), ++faults;
      const float highest = bb::max_over<float>(n, value, bb::KeepRounded{fresh()});
      check("max_over", n, memory + 1, from);
      if (turn % 2 == 0 && highest != top) printf("maximum of %ld: %g for %g\n", n, highest, top), ++faults;
    }
  if (!faults) printf("all checks passed\n");
  return faults != 0;
}

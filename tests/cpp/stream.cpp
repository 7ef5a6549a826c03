// Checks bb_stream.hpp: rows of every length and alignment are written whole, and nothing beside them, whether or not they
// go past the caches; and what is to go on beside a fold of a row sees every part of the row once, in order, where
// fetching ahead may ask for memory that is not there.
#include "bb.hpp"

#include <stdio.h>
#include <string.h>

// How a row is written: as it is, past the caches, or behind passes over another row of `other` entries.
template <class S, class F> static void write(int how, long other, S* to, long n, F f) {
  if (how < 2) {
    bb::write_row(to, n, how == 1, f);
    return;
  }
  static float row[400];
  {
    auto behind = bb::row_behind(how == 2, to, n, f);
    bb::max_over<float>(other, [&](int64_t c) { return row[c]; }, bb::beside<1>(behind));
    bb::sum_over<float>(other, [&](int64_t c) { return row[c]; }, bb::beside<3>(behind));
  }
  if (how == 3) bb::write_row(to, n, false, f);
}

template <class S> static bool rows() {
  constexpr long longest = 300, room = 64;
  alignas(64) static S memory[longest + 2 * room];
  for (int how = 0; how < 4; ++how)
    for (long shift = 0; shift < room; ++shift)
      for (long n = 0; n < longest; n += n < 70 ? 1 : 29) {
        memset((void*)memory, 0x5a, sizeof memory);
        write(how, shift % 3 * 200, memory + shift, n, [](int64_t c) { return S(c % 100); });
        bb::settle_streams();
        S untouched;
        memset((void*)&untouched, 0x5a, sizeof untouched);
        for (long i = 0; i < longest + 2 * room; ++i) {
          const S want = i >= shift && i < shift + n ? S((i - shift) % 100) : untouched;
          if (memcmp(&memory[i], &want, sizeof want) != 0) {
            printf("size %zu how %d shift %ld n %ld: wrong at %ld\n", sizeof(S), how, shift, n, i);
            return false;
          }
        }
      }
  return true;
}

static bool beside() {
  static float row[1000];
  for (long i = 0; i < 1000; ++i) row[i] = float(i);
  for (long n = 0; n < 1000; n += n < 200 ? 1 : 61) {
    long seen = 0;
    bool wrong = false;
    const auto look = [&](long first, const float* terms, long count) {
      if (first != seen || terms[count - 1] != row[first + count - 1]) wrong = true;
      seen += count;
    };
    auto ahead = bb::row_ahead(row, 1L << 60);
    bb::sum_over<float>(n, [&](int64_t c) { return row[c]; }, look, bb::beside<4>(ahead));
    if (wrong || seen != n) {
      printf("beside a row of %ld: %ld seen\n", n, seen);
      return false;
    }
  }
  return true;
}

// Of a row of whole vectors, so many quarters, and all of it with four.
template <int Quarters> static bool quarters() {
  static float row[4096];
  for (long n = 1024; n <= 4096; n += 1024) {
    long done = 0;
    auto count = [&](long more) { done += more; };
    bb::sum_over<float>(n, [&](int64_t c) { return row[c]; }, bb::beside<Quarters>(count));
    if (done != n * Quarters / 4) {
      printf("%d quarters of %ld: %ld\n", Quarters, n, done);
      return false;
    }
  }
  return true;
}

int main() {
  return !(rows<float>() && rows<double>() && rows<uint16_t>() && rows<uint8_t>() && beside() && quarters<0>() &&
           quarters<1>() && quarters<2>() && quarters<3>() && quarters<4>());
}

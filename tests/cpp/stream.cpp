// Checks bb_stream.hpp: rows of every length and alignment are written whole, and nothing beside them, whether or not they
// go past the caches.
#include "bb.hpp"

#include <stdio.h>
#include <string.h>

template <class S> static bool rows() {
  constexpr long longest = 300, room = 64;
  alignas(64) static S memory[longest + 2 * room];
  for (int streamed = 0; streamed < 2; ++streamed)
    for (long shift = 0; shift < room; ++shift)
      for (long n = 0; n < longest; n += n < 70 ? 1 : 29) {
        memset((void*)memory, 0x5a, sizeof memory);
        bb::write_row(memory + shift, n, streamed, [](int64_t c) { return S(c % 100); });
        bb::settle_streams();
        S untouched;
        memset((void*)&untouched, 0x5a, sizeof untouched);
        for (long i = 0; i < longest + 2 * room; ++i) {
          const S want = i >= shift && i < shift + n ? S((i - shift) % 100) : untouched;
          if (memcmp(&memory[i], &want, sizeof want) != 0) {
            printf("size %zu streamed %d shift %ld n %ld: wrong at %ld\n", sizeof(S), streamed, shift, n, i);
            return false;
          }
        }
      }
  return true;
}

int main() { return !(rows<float>() && rows<double>() && rows<uint16_t>() && rows<uint8_t>()); }

// What the lanes of a warp do together: shuffles, votes, and matrix fragments. Fragment layouts are those of the PTX
// manual: with group g = lane / 4 and t = lane % 4, register r of A (16 x 16) holds row g + 8 (r & 1), columns
// 2t + 8 (r >> 1) and the next; of B (16 x 8) rows 2t + 8r and the next, column g; of C (16 x 8) row g + 8 (r >> 1),
// column 2t + (r & 1).
#pragma once

#include "warp.hpp"

namespace emulate {

// The lane from which a lane takes its value, or itself where that one is out of range; `clamp` as in shfl.sync.
inline int shuffle_source(int how, int lane, int offset, int clamp, bool& inside) {
  const int segment = (clamp >> 8) & 31, bound = clamp & 31;
  const int last = (lane & segment) | (bound & ~segment), first = lane & segment;
  int source = lane;
  switch (how) {
    case mode::k_up: source = lane - offset; inside = source >= last; break;
    case mode::k_down: source = lane + offset; inside = source <= last; break;
    case mode::k_bfly: source = lane ^ offset; inside = source <= last; break;
    default: source = first | (offset & ~segment); inside = source <= last; break;
  }
  return inside ? source : lane;
}

// D = A B + C with products exact and sums in single precision; `slots` are d, a, b, c as in the instruction.
inline void multiply_fragments(Warp& warp, const int32_t* slots, bool is_half) {
  float a[16][16], b[8][16], c[16][8];
  auto element = [&](int32_t slot, int lane, int half) {
    const uint16_t bits = uint16_t(warp.slot(slot)[lane] >> (16 * half));
    return is_half ? f16_of(bits) : bf16_of(bits);
  };
  for (int lane = 0; lane < lanes; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int r = 0; r < 4; ++r)
      for (int half = 0; half < 2; ++half) a[g + 8 * (r & 1)][2 * t + half + 8 * (r >> 1)] = element(slots[4 + r], lane, half);
    for (int r = 0; r < 2; ++r)
      for (int half = 0; half < 2; ++half) b[g][2 * t + half + 8 * r] = element(slots[8 + r], lane, half);
    for (int r = 0; r < 4; ++r) c[g + 8 * (r >> 1)][2 * t + (r & 1)] = f32_of(warp.slot(slots[10 + r])[lane]);
  }
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      float sum = c[row][column];
      for (int k = 0; k < 16; ++k) sum += a[row][k] * b[column][k];
      c[row][column] = sum;
    }
  for (int lane = 0; lane < lanes; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int r = 0; r < 4; ++r)
      if (slots[r] >= 0) warp.slot(slots[r])[lane] = bits_of(c[g + 8 * (r >> 1)][2 * t + (r & 1)]);
  }
}

// The same for operands of tf32: with g and t as above, register r of A (16 x 8) holds row g + 8 (r & 1), column
// t + 4 (r >> 1); of B (8 x 8) row t + 4r, column g; C is as above.
inline void multiply_tf32_fragments(Warp& warp, const int32_t* slots) {
  float a[16][8], b[8][8];
  for (int lane = 0; lane < lanes; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int r = 0; r < 4; ++r) a[g + 8 * (r & 1)][t + 4 * (r >> 1)] = tf32_of(warp.slot(slots[4 + r])[lane]);
    for (int r = 0; r < 2; ++r) b[g][t + 4 * r] = tf32_of(warp.slot(slots[8 + r])[lane]);
  }
  for (int lane = 0; lane < lanes; ++lane) {
    const int g = lane / 4, t = lane % 4;
    float sums[4];
    for (int r = 0; r < 4; ++r) {
      sums[r] = f32_of(warp.slot(slots[10 + r])[lane]);
      for (int k = 0; k < 8; ++k) sums[r] += a[g + 8 * (r >> 1)][k] * b[2 * t + (r & 1)][k];
    }
    for (int r = 0; r < 4; ++r)
      if (slots[r] >= 0) warp.slot(slots[r])[lane] = bits_of(sums[r]);
  }
}

// Lane l of the result holds row l / 4, 32-bit word l % 4 of each 8 x 8 matrix of 16-bit elements; transposed, the
// elements of column l / 4 in rows 2 (l % 4) and the next. `rows` are the matrix's eight rows of 16 bytes.
inline Bits matrix_word(const uint8_t (*rows)[16], int lane, bool transposed) {
  uint32_t word;
  if (!transposed) {
    std::memcpy(&word, rows[lane / 4] + 4 * (lane % 4), 4);
    return word;
  }
  uint16_t low_half, high_half;
  std::memcpy(&low_half, rows[2 * (lane % 4)] + 2 * (lane / 4), 2);
  std::memcpy(&high_half, rows[2 * (lane % 4) + 1] + 2 * (lane / 4), 2);
  return low_half | uint32_t(high_half) << 16;
}

}  // namespace emulate

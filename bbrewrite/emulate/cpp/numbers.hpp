// Arithmetic on registers: the bits of a value in the low end of 64, whatever its type. The meaning of operations on
// one lane; which lanes, and where operands come from, is the machine's business.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "program.hpp"

namespace emulate {

using Bits = uint64_t;

inline float f32_of(Bits bits) { return std::bit_cast<float>(uint32_t(bits)); }
inline double f64_of(Bits bits) { return std::bit_cast<double>(bits); }
inline Bits bits_of(float x) { return std::bit_cast<uint32_t>(x); }
inline Bits bits_of(double x) { return std::bit_cast<Bits>(x); }
inline float bf16_of(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
inline float f16_of(uint16_t bits) { return float(std::bit_cast<_Float16>(bits)); }

inline uint16_t to_f16(double x) { return std::bit_cast<uint16_t>(_Float16(x)); }
inline uint16_t to_bf16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  if (std::isnan(x)) return 0x7fff;
  return uint16_t((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

// tf32 is f32 with ten bits of fraction; it is rounded to with ties away from 0.
inline uint32_t to_tf32(float x) {
  return std::isnan(x) ? 0x7fffffff : (std::bit_cast<uint32_t>(x) + 0x1000) & ~0x1fffu;
}
// What tensor cores take of an operand: they do not look at the other bits.
inline float tf32_of(Bits bits) { return f32_of(bits & ~Bits(0x1fff)); }

inline int width_of(int type) {
  switch (type) {
    case k_pred: case k_b8: case k_u8: case k_s8: return 1;
    case k_b16: case k_u16: case k_s16: case k_f16: case k_bf16: return 2;
    case k_b64: case k_u64: case k_s64: case k_f64: return 8;
    default: return 4;
  }
}
inline bool is_signed(int type) { return type == k_s8 || type == k_s16 || type == k_s32 || type == k_s64; }
inline bool is_floating(int type) { return type == k_f32 || type == k_f64 || type == k_f16 || type == k_bf16; }

inline Bits low(Bits bits, int type) {
  const int width = width_of(type);
  return width == 8 ? bits : bits & ((Bits(1) << (8 * width)) - 1);
}
// The value of an integer type, sign-extended where the type is signed.
inline int64_t integer(Bits bits, int type) {
  const int shift = 64 - 8 * width_of(type);
  return is_signed(type) ? int64_t(bits << shift) >> shift : int64_t(low(bits, type));
}
// What a register holds of a value: narrow signed values are extended to the 32 bits of a register.
inline Bits kept(int64_t value, int type) {
  return width_of(type) == 8 ? Bits(value) : is_signed(type) ? Bits(uint32_t(value)) : low(Bits(value), type);
}
inline double number(Bits bits, int type) {
  switch (type) {
    case k_f32: return f32_of(bits);
    case k_f64: return f64_of(bits);
    case k_f16: return f16_of(uint16_t(bits));
    case k_bf16: return bf16_of(uint16_t(bits));
    default: return is_signed(type) ? double(integer(bits, type)) : double(low(bits, type));
  }
}

inline float directed(double exact, int rounding) {
  float near = float(exact);
  if (rounding == mode::k_rm && double(near) > exact) near = std::nextafterf(near, -INFINITY);
  if (rounding == mode::k_rp && double(near) < exact) near = std::nextafterf(near, INFINITY);
  if (rounding == mode::k_rz && std::fabs(double(near)) > std::fabs(exact)) near = std::nextafterf(near, 0.0f);
  return near;
}
template <class F> F finished(F x, int flags) {
  if ((flags & flush) && std::fabs(x) < std::numeric_limits<F>::min()) x = std::copysign(F(0), x);
  if (flags & saturate) x = x > F(0) ? (x < F(1) ? x : F(1)) : F(0);
  return x;
}

template <class F> F floating(int operation, F a, F b, F c, int flags) {
  switch (operation) {
    case k_add: return a + b;
    case k_sub: return a - b;
    case k_mul: return a * b;
    case k_div: return a / b;
    case k_fma: case k_mad: return std::fma(a, b, c);
    case k_neg: return -a;
    case k_abs: return std::fabs(a);
    case k_min: return (flags & propagate_nan) && (std::isnan(a) || std::isnan(b)) ? F(NAN) : std::fmin(a, b);
    case k_max: return (flags & propagate_nan) && (std::isnan(a) || std::isnan(b)) ? F(NAN) : std::fmax(a, b);
    case k_rcp: return F(1) / a;
    case k_sqrt: return std::sqrt(a);
    case k_rsqrt: return F(1 / std::sqrt(double(a)));
    case k_ex2: return std::exp2(a);
    case k_lg2: return std::log2(a);
    case k_sin: return std::sin(a);
    case k_cos: return std::cos(a);
    case k_tanh: return std::tanh(a);
    case k_copysign: return std::copysign(b, a);
    default: return F(0);
  }
}

inline Bits floating_operation(const Instruction& at, Bits a, Bits b, Bits c) {
  if (at.type == k_f64) return bits_of(finished(floating(at.operation, f64_of(a), f64_of(b), f64_of(c), at.flags), at.flags));
  const float x = f32_of(a), y = f32_of(b), z = f32_of(c);
  if (at.mode == mode::k_rm || at.mode == mode::k_rp || at.mode == mode::k_rz) {
    const double exact = floating<double>(at.operation, x, y, z, 0);
    return bits_of(finished(directed(exact, at.mode), at.flags));
  }
  return bits_of(finished(floating(at.operation, x, y, z, at.flags), at.flags));
}

inline Bits product_high(int64_t a, int64_t b, int type) {
  if (width_of(type) == 8)
    return is_signed(type) ? Bits((__int128(a) * b) >> 64) : Bits((static_cast<unsigned __int128>(Bits(a)) * Bits(b)) >> 64);
  const int width = 8 * width_of(type);
  return is_signed(type) ? Bits(a * b >> width) : Bits(a) * Bits(b) >> width;
}

inline Bits permuted(Bits a, Bits b, Bits selector) {
  const Bits bytes = (a & 0xffffffff) | b << 32;
  Bits result = 0;
  for (int k = 0; k < 4; ++k) {
    const int chosen = selector >> (4 * k) & 15;
    Bits byte = bytes >> (8 * (chosen & 7)) & 255;
    if (chosen & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * k);
  }
  return result;
}

inline Bits integer_operation(const Instruction& at, Bits x, Bits y, Bits z, Bits w) {
  const int type = at.type, width = 8 * width_of(type);
  const int64_t a = integer(x, type), b = integer(y, type), c = integer(z, type);
  const bool has_sign = is_signed(type);
  switch (at.operation) {
    case k_add: return kept(a + b, type);
    case k_sub: return kept(a - b, type);
    case k_mul: return kept(int64_t(Bits(a) * Bits(b)), type);
    case k_mul_hi: return kept(int64_t(product_high(a, b, type)), type);
    case k_mad: return kept(int64_t(Bits(a) * Bits(b) + Bits(c)), type);
    case k_mad_hi: return kept(int64_t(product_high(a, b, type) + Bits(c)), type);
    case k_mul_wide: return width == 16 ? Bits(uint32_t(a * b)) : Bits(a) * Bits(b);
    case k_mad_wide: return width == 16 ? Bits(uint32_t(a * b + int64_t(z))) : Bits(a) * Bits(b) + z;
    case k_div: return b == 0 ? low(~Bits(0), type) : has_sign ? kept(b == -1 ? int64_t(-Bits(a)) : a / b, type) : Bits(a) / Bits(b);
    case k_rem: return b == 0 ? low(x, type) : has_sign ? kept(b == -1 ? 0 : a % b, type) : Bits(a) % Bits(b);
    case k_neg: return kept(int64_t(-Bits(a)), type);
    case k_abs: return kept(a < 0 ? int64_t(-Bits(a)) : a, type);
    case k_min: return kept(has_sign ? (a < b ? a : b) : int64_t(Bits(a) < Bits(b) ? a : b), type);
    case k_max: return kept(has_sign ? (a > b ? a : b) : int64_t(Bits(a) > Bits(b) ? a : b), type);
    case k_and: return low(x & y, type);
    case k_or: return low(x | y, type);
    case k_xor: return low(x ^ y, type);
    case k_not: return type == k_pred ? Bits(!x) : low(~x, type);
    case k_shl: return uint32_t(y) >= uint32_t(width) ? 0 : low(x << uint32_t(y), type);
    case k_shr:
      if (uint32_t(y) >= uint32_t(width)) return has_sign && a < 0 ? kept(-1, type) : 0;
      return has_sign ? kept(a >> uint32_t(y), type) : low(x, type) >> uint32_t(y);
    case k_bfe: {
      const uint32_t start = y & 255, length = z & 255;
      if (length == 0 || start >= uint32_t(width)) return has_sign && length && a < 0 ? kept(-1, type) : 0;
      const Bits field = length >= 64 ? Bits(a >> start) : Bits(a >> start) & ((Bits(1) << length) - 1);
      const bool negative = has_sign && length < 64 && (field >> (length - 1) & 1);
      return kept(int64_t(negative ? field | ~Bits(0) << length : field), type);
    }
    case k_bfi: {
      const uint32_t start = z & 255, length = w & 255;
      if (start >= uint32_t(width) || length == 0) return low(y, type);
      const Bits mask = (length >= 64 ? ~Bits(0) : (Bits(1) << length) - 1) << start;
      return low((y & ~mask) | (x << start & mask), type);
    }
    case k_popc: return std::popcount(low(x, type));
    case k_clz: return std::countl_zero(low(x, type)) - (64 - width);
    case k_brev: {
      Bits result = 0;
      for (int k = 0; k < width; ++k) result |= (x >> k & 1) << (width - 1 - k);
      return result;
    }
    case k_prmt: return permuted(x, y, z);
    case k_lop3: {
      Bits result = 0;
      for (int k = 0; k < 8; ++k)
        if (w >> k & 1) result |= (k & 4 ? x : ~x) & (k & 2 ? y : ~y) & (k & 1 ? z : ~z);
      return low(result, k_b32);
    }
    case k_funnel_left: case k_funnel_right: {
      const Bits both = (x & 0xffffffff) | y << 32;
      const uint32_t n = at.mode == mode::k_clamp ? (z < 32 ? uint32_t(z) : 32u) : z & 31;
      return low(at.operation == k_funnel_left ? (n == 32 ? both << 32 : both << n) >> 32 : both >> n, k_b32);
    }
    default: return 0;
  }
}

template <class V> bool compared(int how, V a, V b, bool unordered) {
  using namespace mode;
  switch (how) {
    case k_eq: return !unordered && a == b;
    case k_ne: return !unordered && a != b;
    case k_lt: case k_lo: return !unordered && a < b;
    case k_le: case k_ls: return !unordered && a <= b;
    case k_gt: case k_hi: return !unordered && a > b;
    case k_ge: case k_hs: return !unordered && a >= b;
    case k_equ: return unordered || a == b;
    case k_neu: return unordered || a != b;
    case k_ltu: return unordered || a < b;
    case k_leu: return unordered || a <= b;
    case k_gtu: return unordered || a > b;
    case k_geu: return unordered || a >= b;
    case k_num: return !unordered;
    case k_nan: return unordered;
    default: return false;
  }
}
inline bool compared(const Instruction& at, Bits x, Bits y) {
  if (is_floating(at.type)) {
    const double a = number(x, at.type), b = number(y, at.type);
    return compared(at.mode, a, b, std::isnan(a) || std::isnan(b));
  }
  const int64_t a = integer(x, at.type), b = integer(y, at.type);
  return is_signed(at.type) ? compared(at.mode, a, b, false) : compared(at.mode, Bits(a), Bits(b), false);
}

inline double rounded(double x, int how) {
  switch (how) {
    case mode::k_rni: return std::nearbyint(x);
    case mode::k_rzi: return std::trunc(x);
    case mode::k_rmi: return std::floor(x);
    case mode::k_rpi: return std::ceil(x);
    default: return x;
  }
}

// A real number as an integer: values out of range are clamped, NaN becomes 0.
inline Bits to_integer(double x, int type) {
  if (std::isnan(x)) return 0;
  const int width = 8 * width_of(type);
  const double least = is_signed(type) ? -std::ldexp(1.0, width - 1) : 0.0;
  const double beyond = std::ldexp(1.0, is_signed(type) ? width - 1 : width);
  if (x <= least) return kept(is_signed(type) ? int64_t(Bits(1) << (width - 1)) : 0, type);
  if (x >= beyond) return kept(int64_t(is_signed(type) ? (Bits(1) << (width - 1)) - 1 : ~Bits(0)), type);
  return kept(is_signed(type) ? int64_t(x) : int64_t(Bits(x)), type);
}

inline Bits from_real(double x, const Instruction& at) {
  switch (at.type) {
    case k_f64: return bits_of(finished(x, at.flags));
    case k_f32: return bits_of(finished(directed(x, at.mode), at.flags));
    case k_f16: return to_f16(x);
    case k_bf16: return to_bf16(float(x));
    case k_tf32: return to_tf32(float(x));
    default: return to_integer(x, at.type);
  }
}

inline Bits converted(const Instruction& at, Bits x) {
  const int from = at.source_type, to = at.type;
  if (is_floating(from)) return from_real(rounded(number(x, from), at.mode), at);
  if (is_floating(to)) {
    // 64-bit integers go to single precision in one rounding.
    if (to == k_f32 && at.mode == mode::k_rn) return bits_of(is_signed(from) ? float(integer(x, from)) : float(low(x, from)));
    return from_real(number(x, from), at);
  }
  const int64_t value = integer(x, from);
  if (at.flags & saturate) return to_integer(number(x, from), to);
  return kept(integer(Bits(value), to), to);
}

}  // namespace emulate

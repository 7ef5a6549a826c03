// What every instruction does that does not decide where lanes go on: arithmetic, moves, and what a whole warp does.
#pragma once

#include "transfers.hpp"

namespace emulate {

class Execution : protected Transfers {
 protected:
  using Transfers::Transfers;

  uint32_t guarded(Warp& warp, const Instruction& at, uint32_t mask) {
    if (at.guard < 0) return mask;
    check(warp, at.guard, mask);
    const Bits* guard = warp.slot(at.guard);
    uint32_t chosen = 0;
    for (int lane = 0; lane < lanes; ++lane) chosen |= uint32_t((guard[lane] != 0) != bool(at.guard_negated)) << lane;
    return mask & chosen;
  }

  void work(Warp& warp, const Instruction& at, uint32_t active) {
    auto operand = [&](int k) { return warp.slot(at.operands[k]); };
    switch (at.operation) {
      case k_mov: { const Bits* a = operand(1); return each(warp, at, active, 1, [=](int l) { return a[l]; }); }
      case k_convert: { const Bits* a = operand(1); return each(warp, at, active, 1, [=, &at](int l) { return converted(at, a[l]); }); }
      case k_convert_pair: {
        const Bits *a = operand(1), *b = operand(2);
        const bool half = at.type == k_f16;
        return each(warp, at, active, 2, [=](int l) -> Bits {
          const float high = f32_of(a[l]), lower = f32_of(b[l]);
          return half ? to_f16(lower) | Bits(to_f16(high)) << 16 : to_bf16(lower) | Bits(to_bf16(high)) << 16;
        });
      }
      case k_add_offset: { const Bits* a = operand(1); return each(warp, at, active, 1, [=, &at](int l) { return a[l] + Bits(at.offset); }); }
      case k_pack: return pack(warp, at, active);
      case k_unpack: return unpack(warp, at, active);
      case k_parameter: return parameter(warp, at, active);
      case k_load: return load(warp, at, active);
      case k_store: return store(warp, at, active);
      case k_selp: { const Bits *a = operand(1), *b = operand(2), *p = operand(3);
        return each(warp, at, active, 3, [=](int l) { return p[l] ? a[l] : b[l]; }); }
      case k_setp: return compare(warp, at, active);
      case k_testp: { const Bits* a = operand(1);
        return each(warp, at, active, 1, [=, &at](int l) -> Bits {
          const double x = number(a[l], at.type);
          return at.mode == mode::k_finite ? std::isfinite(x) : at.mode == mode::k_infinite ? std::isinf(x) : std::isnan(x); }); }
      case k_active_mask:
        for (int lane = 0; lane < lanes; ++lane) if (active >> lane & 1) set(warp, at.operands[0], lane, active);
        return;
      case k_copy_async: return copy_async(warp, at, active);
      case k_commit: for (int l = 0; l < lanes; ++l) if (active >> l & 1) ++warp.groups[l]; return;
      case k_wait: return wait(warp, at, active);
      case k_fence: return;
      default: return arithmetic(warp, at, active);
    }
  }

  // Runs `function` for each active lane, and gives its result to the first operand.
  template <class F> void each(Warp& warp, const Instruction& at, uint32_t active, int sources, F&& function) {
    for (int k = 1; k <= sources; ++k) check(warp, at.operands[k], active);
    Bits* target = warp.slot(at.operands[0]);
    if (active == ~0u) {
      for (int lane = 0; lane < lanes; ++lane) target[lane] = function(lane);
    } else {
      for (int lane = 0; lane < lanes; ++lane)
        if (active >> lane & 1) target[lane] = function(lane);
    }
    warp.defined[at.operands[0]] |= active;
  }

  void arithmetic(Warp& warp, const Instruction& at, uint32_t active) {
    static const Bits zeros[lanes] = {};
    const Bits *a = warp.slot(at.operands[1]), *b = at.operands[2] >= 0 ? warp.slot(at.operands[2]) : zeros,
               *c = at.operands[3] >= 0 ? warp.slot(at.operands[3]) : zeros,
               *d = at.operands[4] >= 0 ? warp.slot(at.operands[4]) : zeros;
    const int sources = 1 + (at.operands[2] >= 0) + (at.operands[3] >= 0) + (at.operands[4] >= 0);
    // The commonest ones have loops of their own.
    if (at.type == k_f32 && !at.flags && (at.mode == mode::k_none || at.mode == mode::k_rn)) {
      switch (at.operation) {
        case k_add: return each(warp, at, active, sources, [=](int l) { return bits_of(f32_of(a[l]) + f32_of(b[l])); });
        case k_mul: return each(warp, at, active, sources, [=](int l) { return bits_of(f32_of(a[l]) * f32_of(b[l])); });
        case k_fma: return each(warp, at, active, sources, [=](int l) { return bits_of(std::fma(f32_of(a[l]), f32_of(b[l]), f32_of(c[l]))); });
        default: break;
      }
    }
    if (width_of(at.type) == 4 && !is_floating(at.type)) {
      switch (at.operation) {
        case k_add: return each(warp, at, active, sources, [=](int l) { return Bits(uint32_t(a[l] + b[l])); });
        case k_mul: return each(warp, at, active, sources, [=](int l) { return Bits(uint32_t(a[l] * b[l])); });
        case k_mad: return each(warp, at, active, sources, [=](int l) { return Bits(uint32_t(a[l] * b[l] + c[l])); });
        case k_and: return each(warp, at, active, sources, [=](int l) { return a[l] & b[l]; });
        case k_or: return each(warp, at, active, sources, [=](int l) { return a[l] | b[l]; });
        default: break;
      }
    }
    if (is_floating(at.type)) each(warp, at, active, sources, [=, &at](int l) { return floating_operation(at, a[l], b[l], c[l]); });
    else each(warp, at, active, sources, [=, &at](int l) { return integer_operation(at, a[l], b[l], c[l], d[l]); });
  }

  void compare(Warp& warp, const Instruction& at, uint32_t active) {
    for (int k = 2; k < (at.combine ? 5 : 4); ++k) check(warp, at.operands[k], active);
    const Bits *a = warp.slot(at.operands[2]), *b = warp.slot(at.operands[3]);
    for (int lane = 0; lane < lanes; ++lane) {
      if (!(active >> lane & 1)) continue;
      const bool holds = compared(at, a[lane], b[lane]);
      bool third = false;
      if (at.combine) third = (warp.slot(at.operands[4])[lane] != 0) != bool(at.flags & negate_third);
      auto met = [&](bool x) { return at.combine == 1 ? x && third : at.combine == 2 ? x || third : at.combine == 3 ? x != third : x; };
      set(warp, at.operands[0], lane, met(holds));
      set(warp, at.operands[1], lane, met(!holds));
    }
  }

  void pack(Warp& warp, const Instruction& at, uint32_t active) {
    const int width = 8 * width_of(at.type) / at.count;
    for (int k = 1; k <= at.count; ++k) check(warp, at.operands[k], active);
    for (int lane = 0; lane < lanes; ++lane) {
      if (!(active >> lane & 1)) continue;
      Bits value = 0;
      for (int k = 0; k < at.count; ++k)
        value |= (warp.slot(at.operands[1 + k])[lane] & ((Bits(1) << width) - 1)) << (k * width);
      set(warp, at.operands[0], lane, value);
    }
  }

  void unpack(Warp& warp, const Instruction& at, uint32_t active) {
    const int width = 8 * width_of(at.type) / at.count;
    check(warp, at.operands[at.count], active);
    const Bits* source = warp.slot(at.operands[at.count]);
    for (int lane = 0; lane < lanes; ++lane)
      if (active >> lane & 1)
        for (int k = 0; k < at.count; ++k) set(warp, at.operands[k], lane, source[lane] >> (k * width) & ((Bits(1) << width) - 1));
  }

  void parameter(Warp& warp, const Instruction& at, uint32_t active) {
    const int size = width_of(at.type);
    for (int k = 0; k < at.count; ++k) {
      Bits value = 0;
      std::memcpy(&value, launch_.parameters + at.offset + k * size, size);
      for (int lane = 0; lane < lanes; ++lane) if (active >> lane & 1) set(warp, at.operands[k], lane, Bits(integer(value, at.type)));
    }
  }

  void collective(Warp& warp, const Instruction& at, uint32_t members) {
    const int32_t* slots = at.operands;
    switch (at.operation) {
      case k_sync_warp: ++warp.epoch; break;
      case k_shuffle: {
        for (int k = 2; k < 6; ++k) check(warp, slots[k], members);
        Bits values[lanes];
        std::copy_n(warp.slot(slots[2]), lanes, values);
        for (int lane = 0; lane < lanes; ++lane) {
          if (!(members >> lane & 1)) continue;
          bool inside = false;
          const int source = shuffle_source(at.mode, lane, int(warp.slot(slots[3])[lane] & 31), int(warp.slot(slots[4])[lane]), inside);
          if (!(members >> source & 1)) faults_.add(divergence, pc_, "takes a value from a lane that takes no part");
          set(warp, slots[0], lane, low(values[source], k_b32));
          if (slots[1] >= 0) set(warp, slots[1], lane, inside);
        }
        break;
      }
      case k_vote: {
        uint32_t yes = 0;
        check(warp, slots[1], members);
        for (int lane = 0; lane < lanes; ++lane)
          if (members >> lane & 1 && warp.slot(slots[1])[lane]) yes |= 1u << lane;
        const Bits result = at.mode == mode::k_ballot ? yes : at.mode == mode::k_all ? yes == members : yes != 0;
        for (int lane = 0; lane < lanes; ++lane)
          if (members >> lane & 1) set(warp, slots[0], lane, result);
        break;
      }
      case k_mma:
        for (int k = 4; k < 14; ++k) check(warp, slots[k], members);
        if (at.source_type == k_tf32) multiply_tf32_fragments(warp, slots);
        else multiply_fragments(warp, slots, at.source_type == k_f16);
        for (int k = 0; k < 4; ++k)
          if (slots[k] >= 0) warp.defined[slots[k]] |= members;
        break;
      case k_ldmatrix: load_matrices(warp, at, members); break;
      default: break;
    }
  }
};

}  // namespace emulate

// The encoded program that the machine runs, and what it hands back. The layout is mirrored by ../machine.py; the names
// of operations, types and modes are listed here once, and the encoder asks for them by name. Nothing here executes.
#pragma once

#include <cstdint>

namespace emulate {

// One instruction can stand for many of PTX's spellings: `type` and `mode` tell them apart.
#define EMULATE_OPERATIONS(X)                                                                                        \
  X(mov) X(pack) X(unpack) X(load) X(store) X(parameter) X(convert) X(convert_pair) X(add_offset)                    \
  X(add) X(sub) X(mul) X(mul_hi) X(mul_wide) X(mad) X(mad_hi) X(mad_wide) X(div) X(rem) X(neg) X(abs) X(min) X(max)  \
  X(and) X(or) X(xor) X(not) X(shl) X(shr) X(bfe) X(bfi) X(popc) X(clz) X(brev) X(prmt) X(lop3) X(funnel_left)      \
  X(funnel_right) X(fma) X(rcp) X(sqrt) X(rsqrt) X(ex2) X(lg2) X(sin) X(cos) X(tanh) X(copysign) X(testp)            \
  X(setp) X(selp) X(branch) X(exit) X(barrier) X(sync_warp) X(shuffle) X(vote) X(active_mask)                        \
  X(ldmatrix) X(mma) X(copy_async) X(commit) X(wait) X(fence)
#define EMULATE_TYPES(X) \
  X(pred) X(b8) X(u8) X(s8) X(b16) X(u16) X(s16) X(b32) X(u32) X(s32) X(b64) X(u64) X(s64) X(f16) X(bf16) X(tf32) X(f32) X(f64)
#define EMULATE_MODES(X)                                                                                        \
  X(none) X(global) X(shared) X(local) X(generic)                                                               \
  X(eq) X(ne) X(lt) X(le) X(gt) X(ge) X(lo) X(ls) X(hi) X(hs) X(equ) X(neu) X(ltu) X(leu) X(gtu) X(geu) X(num) X(nan) \
  X(rn) X(rz) X(rm) X(rp) X(rni) X(rzi) X(rmi) X(rpi)                                                           \
  X(idx) X(bfly) X(down) X(up) X(all) X(any) X(ballot) X(plain) X(trans) X(finite) X(infinite) X(notanumber)    \
  X(clamp) X(wrap)
#define EMULATE_NAME(name) k_##name,
enum Operation { EMULATE_OPERATIONS(EMULATE_NAME) operation_count };
enum Type { EMULATE_TYPES(EMULATE_NAME) type_count };
// Modes have names in common with operations; they live in a namespace of their own.
namespace mode {
enum Mode { EMULATE_MODES(EMULATE_NAME) count };
}
#undef EMULATE_NAME

constexpr int max_operands = 16;

struct Instruction {
  int32_t operation, type, source_type, mode;
  int32_t combine;  // 1 and, 2 or, 3 xor: how a comparison's result meets its third operand
  int32_t count;    // elements of a vector, matrices of ldmatrix
  int32_t flags;    // see Flag
  int32_t guard;    // the predicate's slot, -1 for none
  int32_t guard_negated;
  int32_t line;     // of the PTX text
  int32_t operands[max_operands];  // slots, -1 for a result that is not wanted
  int64_t offset;   // of an address, an immediate, or the target of a branch
};
enum Flag { flush = 1, saturate = 2, propagate_nan = 4, negate_third = 8, no_check = 16 };

struct Buffer {
  uint8_t* data;
  int64_t size;
  int32_t initialised;
  int32_t unused;
};

enum Special { tid_x, tid_y, tid_z, ntid_x, ntid_y, ntid_z, ctaid_x, ctaid_y, ctaid_z, nctaid_x, nctaid_y, nctaid_z,
               laneid, warpid, special_count };

// What is found wrong, in the order in which machine.py names it.
enum Fault { race, bounds, uninitialised_memory, uninitialised_register, misaligned, divergence, deadlock,
             asynchronous, runaway, fault_count };

struct Launch {
  const Instruction* code;
  int64_t code_count;
  int64_t slot_count;
  const int32_t* constant_slots;
  const uint64_t* constant_values;
  int64_t constant_count;
  const int32_t* special_slots;  // by Special, -1 where the kernel does not use it
  const uint8_t* parameters;
  const Buffer* buffers;
  int64_t buffer_count;
  int64_t shared_bytes, local_bytes;
  int64_t grid[3], block[3];
  int64_t is_random;  // the schedule: else one warp runs as far as it can before the next
  uint64_t seed;
  int64_t step_limit;  // instructions of one warp in one block
  // Results.
  uint64_t* executed;        // times each instruction ran, in warps
  int64_t* loaded;           // bytes read from global memory by each block
  int64_t* stored;
  int64_t* faults;           // by Fault
  int64_t* shared_requests;  // [0] requests to shared memory by warps, [1] passes that their bank conflicts make of them
  char* messages;            // the first faults, a line each
  int64_t messages_size;
};

}  // namespace emulate

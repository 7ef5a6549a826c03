// A warp: 32 lanes with a register file, and where each lane is. Lanes at one place run together; those behind run
// first, so that lanes that took different branches meet again. Nothing here knows what an instruction means.
#pragma once

#include <vector>

#include "memory.hpp"
#include "numbers.hpp"

namespace emulate {

constexpr int lanes = 32;

enum State : uint8_t { running, at_barrier, at_collective, finished_lane };

struct PendingCopy {
  int64_t destination, source;  // source -1: nothing but zeros
  int32_t size, valid;
  int64_t group;
};

struct Warp {
  uint32_t number = 0;  // in its block
  uint32_t epoch = 0;   // synchronisations so far
  uint32_t present = 0; // lanes that exist
  int32_t pc[lanes] = {};
  State state[lanes] = {};
  uint32_t waiting_for[lanes] = {};  // members of the collective at which a lane waits
  std::vector<Bits> registers;
  std::vector<uint32_t> defined;
  std::vector<PendingCopy> copies[lanes];
  int64_t groups[lanes] = {};
  std::vector<uint8_t> stack;
  uint64_t steps = 0;

  Bits* slot(int32_t number) { return registers.data() + int64_t(number) * lanes; }

  uint32_t in(State wanted) const {
    uint32_t mask = 0;
    for (int lane = 0; lane < lanes; ++lane) mask |= uint32_t(state[lane] == wanted) << lane;
    return mask & present;
  }
  bool can_run() const { return in(running) != 0; }
  bool is_finished() const { return in(finished_lane) == present; }
};

}  // namespace emulate

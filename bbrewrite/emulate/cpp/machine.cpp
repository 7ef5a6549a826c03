// Runs an encoded kernel on the grid it is launched with: blocks one after another, the warps of a block in turns, and
// decides who goes on where threads branch, wait and meet. The entry points are `emulate_launch` and `emulate_names`; ../machine.py calls them.
#include <algorithm>
#include <random>
#include <string>

#include "execution.hpp"

namespace emulate {

class Machine : private Execution {
 public:
  explicit Machine(const Launch& launch)
      : Execution(launch), shared_bytes_(launch.shared_bytes), random_(launch.seed) {}

  void run() {
    const int64_t* grid = launch_.grid;
    for (int64_t z = 0; z < grid[2]; ++z)
      for (int64_t y = 0; y < grid[1]; ++y)
        for (int64_t x = 0; x < grid[0]; ++x) {
          if (launch_.faults[runaway] || launch_.faults[deadlock]) return;
          run_block(x, y, z);
          ++block_;
        }
  }

 private:
  void run_block(int64_t x, int64_t y, int64_t z) {
    ++epoch_;
    shared_.attach(shared_bytes_.data(), launch_.shared_bytes, false);
    start_warps(x, y, z);
    while (true) {
      std::vector<Warp*> ready;
      for (Warp& warp : warps_)
        if (warp.can_run()) ready.push_back(&warp);
      if (ready.empty()) {
        if (!release()) return;
        continue;
      }
      if (launch_.is_random) {
        step(*ready[random_() % ready.size()], 1 + random_() % 64);
      } else {
        step(*ready.front(), INT64_MAX);
      }
      if (launch_.faults[runaway]) return;
    }
  }

  void start_warps(int64_t x, int64_t y, int64_t z) {
    const int64_t* block = launch_.block;
    const int64_t threads = block[0] * block[1] * block[2];
    warps_.resize((threads + lanes - 1) / lanes);
    for (size_t w = 0; w < warps_.size(); ++w) {
      Warp& warp = warps_[w];
      warp.number = uint32_t(w);
      warp.epoch = 1;
      warp.steps = 0;
      warp.registers.assign(launch_.slot_count * lanes, 0);
      warp.defined.assign(launch_.slot_count, 0);
      warp.stack.assign(launch_.local_bytes * lanes, 0);
      warp.present = 0;
      for (int lane = 0; lane < lanes; ++lane) {
        warp.pc[lane] = 0;
        warp.state[lane] = running;
        warp.copies[lane].clear();
        warp.groups[lane] = 0;
        if (int64_t(w) * lanes + lane < threads) warp.present |= 1u << lane;
      }
      for (int64_t k = 0; k < launch_.constant_count; ++k) {
        std::fill_n(warp.slot(launch_.constant_slots[k]), lanes, launch_.constant_values[k]);
        warp.defined[launch_.constant_slots[k]] = ~0u;
      }
      for (int special = 0; special < special_count; ++special) {
        const int32_t slot = launch_.special_slots[special];
        if (slot < 0) continue;
        warp.defined[slot] = ~0u;
        for (int lane = 0; lane < lanes; ++lane) {
          const int64_t thread = int64_t(w) * lanes + lane;
          const int64_t values[special_count] = {
              thread % block[0], thread / block[0] % block[1], thread / (block[0] * block[1]), block[0], block[1],
              block[2], x, y, z, launch_.grid[0], launch_.grid[1], launch_.grid[2], lane, int64_t(w)};
          warp.slot(slot)[lane] = Bits(values[special]);
        }
      }
    }
  }

  // Where no lane can run: lets those at a barrier go on. False where the block is done, or stuck.
  bool release() {
    int32_t place = -1;
    bool any_finished = false, mixed = false, stuck = false;
    for (Warp& warp : warps_)
      for (int lane = 0; lane < lanes; ++lane) {
        if (!(warp.present >> lane & 1)) continue;
        if (warp.state[lane] == finished_lane) any_finished = true;
        if (warp.state[lane] == at_collective) {
          stuck = true;
          faults_.add(deadlock, warp.pc[lane], "lane %d of warp %u waits for lanes that never come", lane, warp.number);
        }
        if (warp.state[lane] != at_barrier) continue;
        mixed = mixed || (place >= 0 && place != warp.pc[lane]);
        place = warp.pc[lane];
      }
    if (place < 0 || stuck) {
      finish_block();
      return false;
    }
    if (mixed) faults_.add(divergence, place, "threads of one block wait at different barriers");
    if (any_finished) faults_.add(divergence, place, "some threads wait at a barrier that others never reach");
    ++epoch_;
    for (Warp& warp : warps_)
      for (int lane = 0; lane < lanes; ++lane)
        if (warp.state[lane] == at_barrier) {
          warp.state[lane] = running;
          ++warp.pc[lane];
        }
    return true;
  }

  void finish_block() {
    for (Warp& warp : warps_)
      for (int lane = 0; lane < lanes; ++lane)
        if (warp.present >> lane & 1 && !warp.copies[lane].empty()) {
          faults_.add(asynchronous, warp.pc[lane], "a thread ends with copies that it never waited for");
          return;
        }
  }

  // Runs a warp until it waits, or for so many instructions.
  void step(Warp& warp, int64_t budget) {
    while (budget > 0) {
      int32_t place = INT32_MAX, next = INT32_MAX;
      uint32_t mask = 0;
      for (int lane = 0; lane < lanes; ++lane) {
        if (!(warp.present >> lane & 1) || warp.state[lane] != running) continue;
        if (warp.pc[lane] < place) {
          next = place;
          place = warp.pc[lane];
          mask = 0;
        }
        if (warp.pc[lane] == place) mask |= 1u << lane;
        else if (warp.pc[lane] < next) next = warp.pc[lane];
      }
      if (!mask) return;
      pc_ = place;
      bool together = true;
      do {
        if (++warp.steps > uint64_t(launch_.step_limit)) {
          faults_.add(runaway, pc_, "a warp ran %ld instructions", long(launch_.step_limit));
          return;
        }
        ++launch_.executed[pc_];
        together = execute(warp, launch_.code[pc_], mask);
      } while (together && --budget > 0 && pc_ < next);
      if (together)
        for (int lane = 0; lane < lanes; ++lane)
          if (mask >> lane & 1) warp.pc[lane] = pc_;
      --budget;
    }
  }

  // Executes one instruction for the lanes of a mask, which stand at pc_. True where they go on together, at the new
  // pc_; else the places of the lanes have been written back.
  bool execute(Warp& warp, const Instruction& at, uint32_t mask) {
    switch (at.operation) {
      case k_branch: return branch(warp, at, mask);
      case k_exit: return leave(warp, at, mask);
      case k_barrier: return wait_at_barrier(warp, at, mask);
      case k_sync_warp: case k_shuffle: case k_vote: case k_ldmatrix: case k_mma:
        return meet(warp, at, mask);
      default: break;
    }
    const uint32_t active = guarded(warp, at, mask);
    if (active) work(warp, at, active);
    ++pc_;
    return true;
  }

  bool branch(Warp& warp, const Instruction& at, uint32_t mask) {
    const uint32_t taken = guarded(warp, at, mask);
    if (taken == mask || taken == 0) {
      pc_ = taken ? int32_t(at.offset) : pc_ + 1;
      return true;
    }
    for (int lane = 0; lane < lanes; ++lane)
      if (mask >> lane & 1) warp.pc[lane] = taken >> lane & 1 ? int32_t(at.offset) : pc_ + 1;
    return false;
  }

  bool leave(Warp& warp, const Instruction& at, uint32_t mask) {
    const uint32_t gone = guarded(warp, at, mask);
    for (int lane = 0; lane < lanes; ++lane) {
      if (!(mask >> lane & 1)) continue;
      if (gone >> lane & 1) warp.state[lane] = finished_lane;
      else warp.pc[lane] = pc_ + 1;
      if (gone >> lane & 1) warp.pc[lane] = pc_;
    }
    return false;
  }

  bool wait_at_barrier(Warp& warp, const Instruction& at, uint32_t mask) {
    const uint32_t waiting = guarded(warp, at, mask);
    for (int lane = 0; lane < lanes; ++lane) {
      if (!(mask >> lane & 1)) continue;
      warp.pc[lane] = waiting >> lane & 1 ? pc_ : pc_ + 1;
      if (waiting >> lane & 1) warp.state[lane] = at_barrier;
    }
    return false;
  }

  // The members of a collective wait for each other; the last to come lets it happen.
  bool meet(Warp& warp, const Instruction& at, uint32_t mask) {
    const uint32_t active = guarded(warp, at, mask);
    for (int lane = 0; lane < lanes; ++lane)
      if ((mask & ~active) >> lane & 1) warp.pc[lane] = pc_ + 1;
    if (!active) return false;
    uint32_t members = ~0u;
    if (at.operation == k_sync_warp || at.operation == k_shuffle || at.operation == k_vote) {
      const int32_t slot = at.operation == k_shuffle ? at.operands[5] : at.operation == k_vote ? at.operands[2] : at.operands[0];
      members = uint32_t(warp.slot(slot)[std::countr_zero(active)]);
    }
    members &= warp.present;
    uint32_t arrived = active;
    for (int lane = 0; lane < lanes; ++lane) {
      if (warp.state[lane] == at_collective && warp.pc[lane] == pc_ && warp.waiting_for[lane] == members) arrived |= 1u << lane;
      if (warp.state[lane] == finished_lane && (members >> lane & 1)) {
        faults_.add(divergence, pc_, "a lane of a warp's collective has ended");
        members &= ~(1u << lane);
      }
    }
    if (active & ~members) faults_.add(divergence, pc_, "a lane is no member of the collective that it runs");
    if ((arrived & members) != members) {
      for (int lane = 0; lane < lanes; ++lane)
        if (active >> lane & 1) {
          warp.pc[lane] = pc_;
          warp.state[lane] = at_collective;
          warp.waiting_for[lane] = members;
        }
      return false;
    }
    collective(warp, at, arrived);
    for (int lane = 0; lane < lanes; ++lane)
      if (arrived >> lane & 1) {
        warp.state[lane] = running;
        warp.pc[lane] = pc_ + 1;
      }
    if (arrived == mask) {
      ++pc_;
      return true;
    }
    return false;
  }

  std::vector<uint8_t> shared_bytes_;
  std::mt19937_64 random_;
};

}  // namespace emulate

extern "C" {

void emulate_launch(const emulate::Launch* launch) { emulate::Machine(*launch).run(); }

// The names of operations, types and modes, three lines of words.
const char* emulate_names() {
#define EMULATE_WORD(name) #name " "
  return EMULATE_OPERATIONS(EMULATE_WORD) "\n" EMULATE_TYPES(EMULATE_WORD) "\n" EMULATE_MODES(EMULATE_WORD);
}
}

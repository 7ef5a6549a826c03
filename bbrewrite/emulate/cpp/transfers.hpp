// Instructions that move data between registers and memory, at once or asynchronously. A thread's place in the order of
// synchronisations is known here, and is what memory checks accesses by.
#pragma once

#include <algorithm>
#include <vector>

#include "collectives.hpp"

namespace emulate {

// Addresses: buffers of global memory lie 2^36 bytes apart, shared and local memory have windows for generic addresses.
constexpr int buffer_shift = 36;
constexpr int64_t shared_window = int64_t(1) << 60, local_window = int64_t(1) << 61;

class Transfers {
 protected:
  explicit Transfers(const Launch& launch) : launch_(launch), faults_(launch), shared_("shared", faults_) {
    for (int64_t k = 0; k < launch.buffer_count; ++k) {
      global_.emplace_back("global", faults_);
      global_.back().attach(launch.buffers[k].data, launch.buffers[k].size, launch.buffers[k].initialised);
    }
  }

  Thread thread(const Warp& warp, int lane) const {
    const uint32_t warps = uint32_t(warps_.size());
    return {(block_ * warps + warp.number) * lanes + lane + 1, block_ * warps + warp.number, block_, epoch_, warp.epoch};
  }

  void check(Warp& warp, int32_t slot, uint32_t mask) {
    if (mask & ~warp.defined[slot])
      faults_.add(uninitialised_register, pc_, "reads a register that holds no value");
  }

  void set(Warp& warp, int32_t slot, int lane, Bits value) {
    if (slot < 0) return;
    warp.slot(slot)[lane] = value;
    warp.defined[slot] |= 1u << lane;
  }

  void load_matrices(Warp& warp, const Instruction& at, uint32_t members) {
    const int32_t address = at.operands[at.count];
    check(warp, address, members);
    const Bits* addresses = warp.slot(address);
    for (int matrix = 0; matrix < at.count; ++matrix) {
      uint8_t rows[8][16] = {};
      int64_t starts[8];
      for (int row = 0; row < 8; ++row) {
        const int lane = 8 * matrix + row;
        starts[row] = int64_t(uint32_t(addresses[lane])) + at.offset;
        if (const uint8_t* found = shared_.read(starts[row], 16, thread(warp, lane), pc_)) std::memcpy(rows[row], found, 16);
      }
      count_conflicts(starts, 8, 16);
      for (int lane = 0; lane < lanes; ++lane) set(warp, at.operands[matrix], lane, matrix_word(rows, lane, at.mode == mode::k_trans));
    }
  }

  // Where an address leads: a space and an offset in it.
  Space* space_of(int how, Bits address, int64_t& offset) {
    offset = int64_t(address);
    if (how == mode::k_generic && offset >= local_window) return nullptr;
    if (how == mode::k_generic && offset >= shared_window) {
      offset -= shared_window;
      return &shared_;
    }
    if (how == mode::k_shared) {
      offset = int64_t(uint32_t(address));
      return &shared_;
    }
    const int64_t buffer = (offset >> buffer_shift) - 1;
    if (buffer < 0 || buffer >= int64_t(global_.size())) {
      faults_.add(bounds, pc_, "accesses the address %lx, which lies in no buffer", long(address));
      return nullptr;
    }
    offset &= (int64_t(1) << buffer_shift) - 1;
    return &global_[buffer];
  }

  uint8_t* local(Warp& warp, int lane, Bits address, int how, int size) {
    const int64_t offset = int64_t(address) - (how == mode::k_generic ? local_window : 0);
    if (offset < 0 || offset + size > launch_.local_bytes) {
      faults_.add(bounds, pc_, "accesses local memory outside its frame");
      return nullptr;
    }
    return warp.stack.data() + lane * launch_.local_bytes + offset;
  }

  // Bytes are counted where they move; a number that a whole warp asks for moves once.
  uint8_t* accessed(Warp& warp, int lane, const Instruction& at, Bits address, int size, bool writes, bool moves = true) {
    if (at.mode == mode::k_local || (at.mode == mode::k_generic && int64_t(address) >= local_window))
      return local(warp, lane, address, at.mode, size);
    int64_t offset = 0;
    Space* space = space_of(at.mode, address, offset);
    if (!space) return nullptr;
    if (space != &shared_ && moves) (writes ? launch_.stored : launch_.loaded)[block_] += size;
    return writes ? space->write(offset, size, thread(warp, lane), pc_) : space->read(offset, size, thread(warp, lane), pc_);
  }

  void load(Warp& warp, const Instruction& at, uint32_t active) {
    const int size = width_of(at.type);
    check(warp, at.operands[at.count], active);
    const Bits* addresses = warp.slot(at.operands[at.count]);
    int64_t starts[lanes];
    int count = 0;
    for (int lane = 0; lane < lanes; ++lane) {
      if (!(active >> lane & 1)) continue;
      const Bits address = addresses[lane] + Bits(at.offset);
      starts[count++] = int64_t(uint32_t(address));
      const int first = std::countr_zero(active);
      const bool moves = lane == first || addresses[lane] != addresses[first];
      const uint8_t* found = accessed(warp, lane, at, address, size * at.count, false, moves);
      for (int k = 0; k < at.count; ++k) {
        Bits value = 0;
        if (found) std::memcpy(&value, found + k * size, size);
        set(warp, at.operands[k], lane, Bits(integer(value, at.type)));
      }
    }
    if (at.mode == mode::k_shared) count_conflicts(starts, count, size * at.count);
  }

  void store(Warp& warp, const Instruction& at, uint32_t active) {
    const int size = width_of(at.type);
    for (int k = 0; k <= at.count; ++k) check(warp, at.operands[k], active);
    const Bits* addresses = warp.slot(at.operands[0]);
    int64_t starts[lanes];
    int count = 0;
    for (int lane = 0; lane < lanes; ++lane) {
      if (!(active >> lane & 1)) continue;
      const Bits address = addresses[lane] + Bits(at.offset);
      starts[count++] = int64_t(uint32_t(address));
      uint8_t* found = accessed(warp, lane, at, address, size * at.count, true);
      if (!found) continue;
      for (int k = 0; k < at.count; ++k) std::memcpy(found + k * size, &warp.slot(at.operands[1 + k])[lane], size);
    }
    if (at.mode == mode::k_shared) count_conflicts(starts, count, size * at.count);
  }

  // The copy happens when the thread waits for it; until then its target holds nothing that may be read. Until
  // then, too, its source must stay as it is: inputs of a kernel do.
  void copy_async(Warp& warp, const Instruction& at, uint32_t active) {
    for (int k = 0; k < 3; ++k) check(warp, at.operands[k], active);
    for (int lane = 0; lane < lanes; ++lane) {
      if (!(active >> lane & 1)) continue;
      const Bits target = warp.slot(at.operands[0])[lane] + Bits(at.offset), source = warp.slot(at.operands[1])[lane];
      const int size = at.count, valid = std::min<int>(size, int(uint32_t(warp.slot(at.operands[2])[lane])));
      const int64_t destination = int64_t(uint32_t(target));
      int64_t offset = 0;
      if (valid) {
        Space* space = space_of(mode::k_global, source, offset);
        if (!space || !space->read(offset, valid, thread(warp, lane), pc_, size)) continue;
        launch_.loaded[block_] += valid;
        offset = int64_t(source);
      }
      uint8_t* place = shared_.write(destination, size, thread(warp, lane), pc_, true);
      if (!place) continue;
      std::memset(place, 0xff, size);
      warp.copies[lane].push_back({destination, valid ? offset : -1, size, valid, warp.groups[lane]});
    }
  }

  void wait(Warp& warp, const Instruction& at, uint32_t active) {
    for (int lane = 0; lane < lanes; ++lane) {
      if (!(active >> lane & 1)) continue;
      auto& copies = warp.copies[lane];
      size_t done = 0;
      // wait_all also waits for what was never committed to a group.
      const int64_t before = at.offset < 0 ? INT64_MAX : warp.groups[lane] - at.offset;
      for (; done < copies.size() && copies[done].group < before; ++done) {
        const PendingCopy& copy = copies[done];
        uint8_t* target = shared_.arrive(copy.destination, copy.size, thread(warp, lane));
        std::memset(target, 0, copy.size);
        if (copy.source < 0) continue;
        int64_t offset = 0;
        std::memcpy(target, space_of(mode::k_global, Bits(copy.source), offset)->data() + offset, copy.valid);
      }
      copies.erase(copies.begin(), copies.begin() + int64_t(done));
    }
  }

  // How many passes the 32 banks of 4 bytes need for these accesses: in one pass a bank gives one word.
  void count_conflicts(const int64_t* starts, int count, int size) {
    const int per_pass = size <= 4 ? 32 : size == 8 ? 16 : 8;
    for (int first = 0; first < count; first += per_pass) {
      std::vector<int64_t> words[32];
      size_t passes = 0;
      for (int k = first; k < std::min(count, first + per_pass); ++k)
        for (int64_t word = starts[k] / 4; word <= (starts[k] + size - 1) / 4; ++word) {
          auto& bank = words[word % 32];
          if (std::find(bank.begin(), bank.end(), word) == bank.end()) bank.push_back(word);
          passes = std::max(passes, bank.size());
        }
      ++launch_.shared_requests[0];
      launch_.shared_requests[1] += int64_t(passes);
    }
  }

  const Launch& launch_;
  Faults faults_;
  std::vector<Space> global_;
  Space shared_;
  std::vector<Warp> warps_;  // of the block that runs
  uint32_t block_ = 0, epoch_ = 0;
  int32_t pc_ = 0;  // the instruction that runs
};

}  // namespace emulate

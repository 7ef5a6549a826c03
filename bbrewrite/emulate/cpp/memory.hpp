// Memory with a shadow cell for every byte: who wrote and read it last, whether it holds a value, whether an
// asynchronous copy to it is still under way. Every access is checked for bounds, alignment, values and races.
//
// Two accesses of different threads are ordered where a barrier of their block lies between them, or, within a warp, a
// synchronisation of the warp. What lies in different blocks is never ordered.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <vector>

#include "program.hpp"

namespace emulate {

// The thread that accesses memory, and its place in the order of synchronisations.
struct Thread {
  uint32_t number;      // in the whole grid, from 1
  uint32_t warp;        // in the whole grid
  uint32_t block;
  uint32_t epoch;       // barriers of all blocks so far, so that an epoch belongs to one block
  uint32_t warp_epoch;  // synchronisations of its warp
};

enum Readers : uint8_t { one_thread, one_warp, several_warps };

struct Cell {
  Thread writer{};
  Thread reader{};
  Readers readers = one_thread;
  bool holds_value = false;
  bool in_flight = false;
};

// Collects faults: all are counted, the first few described, each place in the text once for each kind.
class Faults {
 public:
  explicit Faults(const Launch& launch) : launch_(launch), seen_(fault_count * launch.code_count) {}

  __attribute__((format(printf, 4, 5))) void add(Fault fault, int64_t place, const char* format, ...) {
    ++launch_.faults[fault];
    if (seen_[fault * launch_.code_count + place]++) return;
    char text[240];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const int64_t left = launch_.messages_size - used_;
    const int written = snprintf(launch_.messages + used_, left, "%d\t%s\n", launch_.code[place].line, text);
    if (written < left) used_ += written;
    else launch_.messages[used_] = 0;  // no part of a message
  }
  int64_t total() const {
    int64_t sum = 0;
    for (int k = 0; k < fault_count; ++k) sum += launch_.faults[k];
    return sum;
  }

 private:
  const Launch& launch_;
  std::vector<uint8_t> seen_;
  int64_t used_ = 0;
};

inline bool ordered(const Thread& before, const Thread& now) {
  return before.number == now.number || (before.block == now.block && before.epoch < now.epoch) ||
         (before.warp == now.warp && before.warp_epoch < now.warp_epoch);
}

// One address space.
class Space {
 public:
  Space(const char* name, Faults& faults) : name_(name), faults_(faults) {}

  void attach(uint8_t* data, int64_t size, bool initialised) {
    data_ = data;
    size_ = size;
    cells_.assign(size, Cell{});
    for (Cell& cell : cells_) cell.holds_value = initialised;
  }

  // The bytes at an offset, or nullptr where the access must not happen; what is wrong with it is reported.
  uint8_t* read(int64_t offset, int size, const Thread& thread, int64_t place, int alignment = 0) {
    if (!allowed(offset, size, place, "reads", alignment ? alignment : size)) return nullptr;
    for (int64_t at = offset; at < offset + size; ++at) {
      Cell& cell = cells_[at];
      if (cell.in_flight) {
        faults_.add(asynchronous, place, "reads %s memory at %ld before the copy to it was waited for", name_, long(at));
        break;
      }
      if (!cell.holds_value) {
        faults_.add(uninitialised_memory, place, "reads %s memory at %ld, which holds no value", name_, long(at));
        break;
      }
      if (cell.writer.number && !ordered(cell.writer, thread)) {
        faults_.add(race, place, "reads %s memory at %ld, which thread %u writes without a barrier between", name_,
                    long(at), cell.writer.number - 1);
        break;
      }
      note_reader(cell, thread);
    }
    return data_ + offset;
  }

  uint8_t* write(int64_t offset, int size, const Thread& thread, int64_t place, bool in_flight = false) {
    if (!allowed(offset, size, place, "writes", size)) return nullptr;
    for (int64_t at = offset; at < offset + size; ++at) {
      Cell& cell = cells_[at];
      if (cell.in_flight) {
        faults_.add(asynchronous, place, "writes %s memory at %ld before the copy to it was waited for", name_, long(at));
        break;
      }
      if (cell.writer.number && !ordered(cell.writer, thread)) {
        faults_.add(race, place, "writes %s memory at %ld, which thread %u writes without a barrier between", name_,
                    long(at), cell.writer.number - 1);
        break;
      }
      if (cell.reader.number && !read_before(cell, thread)) {
        faults_.add(race, place, "writes %s memory at %ld, which thread %u reads without a barrier between", name_,
                    long(at), cell.reader.number - 1);
        break;
      }
      cell = Cell{thread, Thread{}, one_thread, true, in_flight};
    }
    return data_ + offset;
  }

  // An asynchronous copy arrives: from now on it is a write of the thread that waited.
  uint8_t* arrive(int64_t offset, int size, const Thread& thread) {
    for (int64_t at = offset; at < offset + size; ++at) cells_[at] = Cell{thread, Thread{}, one_thread, true, false};
    return data_ + offset;
  }

  uint8_t* data() const { return data_; }

 private:
  bool allowed(int64_t offset, int size, int64_t place, const char* does, int alignment) {
    if (offset < 0 || offset + size > size_) {
      faults_.add(bounds, place, "%s %d bytes at %ld of %ld bytes of %s memory", does, size, long(offset), long(size_),
                  name_);
      return false;
    }
    if (offset % alignment) {
      faults_.add(misaligned, place, "%s %d bytes at %ld of %s memory, which is no multiple of %d", does, size,
                  long(offset), name_, alignment);
      return false;
    }
    return true;
  }

  static void note_reader(Cell& cell, const Thread& thread) {
    const Thread& old = cell.reader;
    const bool same_time = old.number && old.block == thread.block && old.epoch == thread.epoch;
    if (!same_time) cell.readers = one_thread;
    else if (old.warp != thread.warp) cell.readers = several_warps;
    else if (old.number != thread.number && cell.readers == one_thread) cell.readers = one_warp;
    cell.reader = thread;
  }

  static bool read_before(const Cell& cell, const Thread& now) {
    const Thread& reader = cell.reader;
    if (reader.block == now.block && reader.epoch < now.epoch) return true;
    if (cell.readers == several_warps || reader.warp != now.warp) return false;
    return reader.warp_epoch < now.warp_epoch || (cell.readers == one_thread && reader.number == now.number);
  }

  const char* name_;
  Faults& faults_;
  uint8_t* data_ = nullptr;
  int64_t size_ = 0;
  std::vector<Cell> cells_;
};

}  // namespace emulate

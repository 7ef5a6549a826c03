// What a generated kernel includes: storage types (bb_types.hpp), scalar mathematics (bb_math.hpp), block products
// (bb_dot.hpp), functions of vectors (bb_lanes.hpp), reductions along rows (bb_reduce.hpp), rows that are rounded
// (bb_round.hpp), rows of results (bb_stream.hpp), masked blocks (bb_spans.hpp) and, here, the working memory of a thread.
// It knows nothing of programs, loops or shapes. Build with -ffp-contract=off (bb_fused.hpp says why).
#pragma once

#include "bb_apart.hpp"
#include "bb_dot.hpp"
#include "bb_lanes.hpp"
#include "bb_math.hpp"
#include "bb_reduce.hpp"
#include "bb_round.hpp"
#include "bb_spans.hpp"
#include "bb_stream.hpp"
#include "bb_types.hpp"

#include <stdlib.h>

namespace bb {
namespace detail {

struct Memory {
  char* data = nullptr;
  size_t size = 0;
  ~Memory() { free(data); }
};
inline thread_local Memory memory;

}  // namespace detail

// At least `bytes` of memory, aligned to a page, that this thread may use until its next call; the contents are
// arbitrary. It only grows, and is freed with the thread. A kernel calls it once in each parallel region, and places its
// local buffers in it at offsets of its own.
inline char* workspace(size_t bytes) {
  detail::Memory& m = detail::memory;
  if (bytes > m.size) {
    const size_t page = 4096, size = (bytes + page - 1) / page * page;
    free(m.data);
    m.size = 0;
    m.data = static_cast<char*>(aligned_alloc(page, size));
    if (!m.data) abort();
    m.size = size;
  }
  return m.data;
}

}  // namespace bb

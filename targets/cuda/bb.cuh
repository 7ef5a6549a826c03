// What a generated CUDA kernel includes: storage types (bb_types.cuh), scalar mathematics (bb_math.cuh), blocks in
// registers and in shared memory (bb_blocks.cuh), copies between memories (bb_copy.cuh), reductions (bb_reduce.cuh)
// and block products (bb_dot.cuh, bb_tf32.cuh). It knows nothing of programs, loops or shapes. It needs sm_80 or newer.
#pragma once

#include "bb_blocks.cuh"
#include "bb_copy.cuh"
#include "bb_dot.cuh"
#include "bb_math.cuh"
#include "bb_reduce.cuh"
#include "bb_tf32.cuh"
#include "bb_types.cuh"

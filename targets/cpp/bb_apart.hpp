// The products of f32, in one list: every program that multiplies would compile them again, and they take longer than its
// kernels. BB_APART says what the list is: `extern template` where they are built apart, from bb_apart.cpp, and `template`
// there. Without it there is no list, and a program compiles what it needs.
#pragma once

#include "bb_dot.hpp"
#include "bb_pack.hpp"
#include "bb_tile.hpp"

#if defined(BB_APART)
namespace bb {

#define BB_APART_PANEL(vectors) \
  BB_APART void detail::panel<float, vectors>( \
      float*, long, const float*, long, const float*, long, long, long, long, bool);
BB_APART_PANEL(1)
BB_APART_PANEL(2)
#if BB_VECTOR_REGISTERS == 32
BB_APART_PANEL(3)
BB_APART_PANEL(4)
#endif
BB_APART void detail::full_panel<float>(
    float*, long, const float*, long, const float*, long, float*, long, long, bool, long);
BB_APART void detail::rows_of_panels<float>(
    float*, long, const float*, long, const float*, long, long, long, long, bool);
BB_APART void pack_kn<float, float>(float*, const float*, long, long, long);
BB_APART void pack_nk<float, float>(float*, const float*, long, long, long);

}  // namespace bb
#endif

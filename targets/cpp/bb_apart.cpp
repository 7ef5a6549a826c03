// The one place where what bb_apart.hpp lists is compiled.
#define BB_APART template
#include "bb_apart.hpp"

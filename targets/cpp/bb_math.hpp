#pragma once
#include "bb_types.hpp"
#include <math.h>

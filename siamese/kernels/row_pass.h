// How a pass over a row, and what it is made of, is compiled: as part of the one function that knows the whole row.
// With a sanitizer's checks that function takes minutes to compile, so there each is a function of its own.
#pragma once

#include "hwy/highway.h"

#ifdef __SANITIZE_ADDRESS__
#define SIAMESE_ROW_PASS HWY_NOINLINE
#else
#define SIAMESE_ROW_PASS HWY_INLINE
#endif

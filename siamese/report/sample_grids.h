// The pictures of drawn samples that evaluations name (`samples.grid`), read for the page.
// A run folder may come from anyone: only a PNG file that truly lies inside it, of at most kGridBytes and
// kGridSide x kGridSide points, is read; anything else becomes a note. All pictures together stay within kGridsBytes as
// the page holds them (base64): the newest of every run come first, what no longer fits is counted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "siamese/report/reader.h"

namespace siamese::report {

inline constexpr uintmax_t kGridBytes = 4u << 20;
inline constexpr uint32_t kGridSide = 8192;
inline constexpr size_t kGridsBytes = 8u << 20;

// Fills `png` of the samples and `grids_left_out`.
void load_sample_grids(Collection& collection, size_t budget = kGridsBytes);

}  // namespace siamese::report

// The table behind kinds(): made by tools/make_character_kinds.py.
#pragma once

#include <array>
#include <cstdint>

namespace siamese::text {

struct KindRun {
  uint32_t first;
  uint16_t kinds;
};

extern const std::array<KindRun, 3446> kKindRuns;

}  // namespace siamese::text

// Where a line of a run directory carries its checksum (io/checksum.h), as the printer spaces it.
#pragma once

#include <string_view>

namespace siamese::runs {

inline constexpr std::string_view kChecksumMark = "\"checksum\":\"";

}  // namespace siamese::runs

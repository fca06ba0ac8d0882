#pragma once

#include <string>

namespace siamese {

// "3h20m", "12m40s", "9s".
std::string duration_text(double seconds);

}  // namespace siamese

// 1279438848 as "1.279B".
#pragma once

#include <string>

namespace siamese::cli {

std::string short_count(double count);

}  // namespace siamese::cli

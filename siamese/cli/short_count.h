// Numbers with four digits: 1279438848 as "1.279B", of bytes as "1.279 GB".
#pragma once

#include <string>

namespace siamese::cli {

std::string short_count(double count);
std::string short_bytes(double bytes);

}  // namespace siamese::cli

// Texts in a row.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace siamese {

// "a, b, c".
std::string join(const std::vector<std::string>& parts, std::string_view separator = ", ");

}  // namespace siamese

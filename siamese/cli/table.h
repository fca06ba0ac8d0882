// Plain text tables: columns padded to the widest cell.
#pragma once

#include <string>
#include <vector>

namespace siamese::cli {

std::string text_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace siamese::cli

// Plain text tables: columns padded to the widest cell, each shown as `printable` does.
#pragma once

#include <string>
#include <vector>

namespace siamese::cli {

std::string text_table(std::vector<std::vector<std::string>> rows);

}  // namespace siamese::cli

// Where shipped recipes are found.
#pragma once

#include <filesystem>
#include <vector>

namespace siamese::cli {

// ./configs, then the source tree this binary was built in, then the installed share/siamese/configs.
std::vector<std::filesystem::path> config_folders();

}  // namespace siamese::cli

#include "siamese/cli/paths.h"

#include <algorithm>

namespace siamese::cli {
namespace fs = std::filesystem;

std::vector<fs::path> config_folders() {
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error).parent_path();
  std::vector<fs::path> folders;
  for (const fs::path& candidate :
       {fs::path("configs"), binary / "../../configs", binary / "../share/siamese/configs"}) {
    if (!fs::is_directory(candidate, error)) continue;
    const fs::path folder = fs::canonical(candidate, error);
    if (!error && std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(folder);
  }
  return folders;
}

}  // namespace siamese::cli

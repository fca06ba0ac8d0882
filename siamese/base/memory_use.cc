#include "siamese/base/memory_use.h"

#include <cstdlib>
#include <fstream>
#include <string>

namespace siamese {

MemoryUse memory_use() {
  MemoryUse use;
  std::ifstream stream("/proc/self/status");
  for (std::string line; std::getline(stream, line);) {
    const auto megabytes = [&line] { return std::strtod(line.c_str() + line.find(':') + 1, nullptr) / 1024; };
    if (line.starts_with("VmRSS:")) use.resident_mb = megabytes();
    if (line.starts_with("VmHWM:")) use.peak_mb = megabytes();
  }
  return use;
}

}  // namespace siamese

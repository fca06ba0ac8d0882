#include "siamese/io/json_lines.h"

#include "fuzz/contract.h"
#include "fuzz/memory_file.h"
#include <nlohmann/json.hpp>

namespace siamese::fuzz {

void check_json_lines(Bytes bytes) {
  const MemoryFile stored(bytes);
  reads_or_refuses([&] {
    size_t total = 0;
    for (const std::string& line : io::read_json_lines(stored.path())) {
      require(line.find('\n') == std::string::npos, "a line is one line");
      require(nlohmann::json::accept(line), "a line is JSON");
      total += line.size();
    }
    require(total <= bytes.size(), "the lines come from the file");
  });
}

}  // namespace siamese::fuzz

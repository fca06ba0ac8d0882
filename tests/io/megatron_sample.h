// A Megatron index for tests: the engine only reads them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace siamese::io {

// Each sequence is a document.
inline std::string megatron_index(uint8_t type, const std::vector<int32_t>& lengths, size_t token_bytes) {
  std::string out("MMIDIDX\0\0", 9);
  const auto put = [&](auto value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
  put(uint64_t{1});
  put(type);
  put(uint64_t{lengths.size()});
  put(uint64_t{lengths.size() + 1});
  for (const int32_t length : lengths) put(length);
  int64_t offset = 0;
  for (const int32_t length : lengths) {
    put(offset);
    offset += static_cast<int64_t>(length) * static_cast<int64_t>(token_bytes);
  }
  for (size_t i = 0; i <= lengths.size(); ++i) put(static_cast<int64_t>(i));
  return out;
}

}  // namespace siamese::io

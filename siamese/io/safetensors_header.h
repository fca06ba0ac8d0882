// The JSON header of a safetensors file, checked for its grammar only: each key once, the right type of value in each
// place. Whether the offsets make sense is for the reader, which knows the data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/io/dtype.h"

namespace siamese::io {

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<uint64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // as written
  std::map<std::string, std::string> metadata;
};

// `file` is what errors call it.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::string_view file);

// Compact JSON, metadata first, entries in the given order, without padding. UsageError for text that is not UTF-8.
std::string safetensors_header_text(const SafetensorsHeader& header);

}  // namespace siamese::io

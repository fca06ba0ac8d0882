// What stands beside the weights in a folder that transformers reads: config.json, for layout hf the code that its
// auto_map names, and the tokenizer where one is known.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/formats/layout.h"
#include "siamese/models/config.h"

namespace siamese::formats {

inline constexpr std::string_view kHfConfigFile = "config.json";

struct HfFile {
  std::string name;
  std::string content;
};

// `torch_dtype` is transformers' name ("bfloat16").
std::vector<HfFile> hf_files(Layout layout, const models::ModelConfig& config, std::string_view torch_dtype);

// The tokenizer beside the weights in the folder that they come from, byte by byte: it goes wherever they go.
std::vector<HfFile> tokenizer_files(Layout to, const std::filesystem::path& source);

// Whether a file of this name may be one of these.
bool is_hf_file(std::string_view name);

}  // namespace siamese::formats

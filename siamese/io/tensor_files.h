// Tensors by name, from one safetensors file or from several shards under an index:
//   model.safetensors.index.json   {"metadata": {"total_size": bytes}, "weight_map": {"name": "shard file", ...}}
// Strict like the files themselves: each name once, each where the index says, no tensor that it does not name, shards
// beside the index only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/io/safetensors.h"

namespace siamese::io {

// "name" -> "shard file" of an index; `file` is what errors call it.
std::map<std::string, std::string> parse_shard_index(std::string_view json, std::string_view file);

class TensorFiles {
 public:
  // A safetensors file, an index (*.json), a model of llama2.c (*.bin, llama2c.h), or a folder with model.safetensors
  // or model.safetensors.index.json.
  static TensorFiles open(const std::filesystem::path& path);

  const std::vector<TensorView>& tensors() const { return tensors_; }  // file after file, each in file order
  const TensorView* find(std::string_view name) const;                 // nullptr when there is none
  const std::map<std::string, std::string>& metadata() const { return metadata_; }  // of the first file
  const std::vector<std::filesystem::path>& files() const { return file_paths_; }   // the shards, or the one file
  const std::filesystem::path& path() const { return path_; }                       // the file or index

 private:
  std::filesystem::path path_;
  std::vector<std::filesystem::path> file_paths_;
  std::vector<SafetensorsFile> files_;  // hold the mappings
  std::vector<MappedFile> mapped_;      // of a file in another format
  std::vector<TensorView> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
  std::map<std::string, std::string> metadata_;
};

// Whether a folder holds weights: model.safetensors or its index.
bool has_tensor_files(const std::filesystem::path& folder);

// Into `folder`: model.safetensors, or, when the data exceeds `shard_bytes` (0 = no limit), shards of at most that much
// (a larger tensor has a shard of its own) named model-00001-of-00003.safetensors and the index, which comes last.
void write_tensor_files(const std::filesystem::path& folder, std::vector<TensorView> tensors,
                        const std::map<std::string, std::string>& metadata, uint64_t shard_bytes = 0,
                        const TensorMaker& make = nullptr);

}  // namespace siamese::io

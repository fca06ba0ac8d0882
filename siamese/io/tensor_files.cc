#include "siamese/io/tensor_files.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/llama2c.h"
#include "siamese/io/message.h"
#include "siamese/io/run_dir.h"
#include "siamese/io/strict_json.h"

namespace siamese::io {

namespace fs = std::filesystem;

namespace {

using nlohmann::json;

// A shard lies beside the index: a name, never a path that leads elsewhere.
bool is_shard_name(const std::string& name) {
  return name.size() > kSafetensorsEnding.size() && name.ends_with(kSafetensorsEnding) &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

fs::path weights_of(const fs::path& path) {
  if (!is_folder(path)) return path;
  for (const auto file : {kModelFile, kModelIndexFile}) {
    if (is_file(path / file)) return path / file;
  }
  throw DataError(fmt::format("{}: expected a folder with {} or {}", path.string(), kModelFile, kModelIndexFile));
}

}  // namespace

std::map<std::string, std::string> parse_shard_index(std::string_view text, std::string_view file) {
  const json index = read_json(text, file, 3);  // the object, a section, and what metadata may hold
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object()) {
    throw DataError(fmt::format("{}: expected an index of shards with an object \"weight_map\"", file));
  }
  std::map<std::string, std::string> shards;
  for (const auto& [name, shard] : map->items()) {
    if (!shard.is_string() || !is_shard_name(shard.get<std::string>())) {
      throw DataError(fmt::format("{}: tensor {}: expected the name of a {} file beside the index, got {}", file,
                                  in_quotes(name), kSafetensorsEnding,
                                  shard.is_string() ? in_quotes(shard.get<std::string>()) : shard.type_name()));
    }
    shards.emplace(name, shard.get<std::string>());
  }
  return shards;
}

TensorFiles TensorFiles::open(const fs::path& path) {
  TensorFiles all;
  all.path_ = weights_of(path);
  std::map<std::string, std::string> shard_of;
  if (all.path_.extension() == ".json") {
    const std::string name = all.path_.string();
    shard_of = parse_shard_index(read_file(all.path_), name);
    std::set<std::string> shards;
    for (const auto& [tensor, shard] : shard_of) shards.insert(shard);
    for (const auto& shard : shards) {
      all.file_paths_.push_back(all.path_.parent_path() / shard);
      const SafetensorsFile& file = all.files_.emplace_back(SafetensorsFile::open(all.file_paths_.back()));
      for (const TensorView& view : file.tensors()) {
        const auto found = shard_of.find(view.name);
        if (found == shard_of.end() || found->second != shard) {
          throw DataError(fmt::format("{}: {} holds the tensor {}, which the index {}", name, shard,
                                      in_quotes(view.name),
                                      found == shard_of.end() ? "does not name" : "places in " + found->second));
        }
      }
    }
  } else if (all.path_.extension() == kLlama2cEnding) {
    all.file_paths_.push_back(all.path_);
    SafetensorsContent content = parse_llama2c(all.mapped_.emplace_back(all.path_).bytes(), all.path_.string());
    for (TensorView& view : content.tensors) {
      all.index_.emplace(view.name, all.tensors_.size());
      all.tensors_.push_back(std::move(view));
    }
    all.metadata_ = std::move(content.metadata);
  } else {
    all.file_paths_.push_back(all.path_);
    all.files_.push_back(SafetensorsFile::open(all.path_));
  }
  for (const SafetensorsFile& file : all.files_) {
    for (const TensorView& view : file.tensors()) {
      all.index_.emplace(view.name, all.tensors_.size());
      all.tensors_.push_back(view);
    }
  }
  for (const auto& [tensor, shard] : shard_of) {
    if (all.find(tensor) == nullptr) {
      throw DataError(fmt::format("{}: expected the tensor {} in {}, and it is not there", all.path_.string(),
                                  in_quotes(tensor), shard));
    }
  }
  if (!all.files_.empty()) all.metadata_ = all.files_.front().metadata();
  return all;
}

const TensorView* TensorFiles::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found != index_.end() ? &tensors_[found->second] : nullptr;
}

bool has_tensor_files(const fs::path& folder) {
  return is_file(folder / kModelFile) || is_file(folder / kModelIndexFile);
}

void write_tensor_files(const fs::path& folder, std::vector<TensorView> tensors,
                        const std::map<std::string, std::string>& metadata, uint64_t shard_bytes,
                        const TensorMaker& make) {
  uint64_t total = 0;
  for (const TensorView& view : tensors) total += view.bytes;
  if (shard_bytes == 0 || total <= shard_bytes) return write_safetensors(folder / kModelFile, tensors, metadata, make);
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::vector<std::vector<TensorView>> shards;
  uint64_t filled = 0;
  for (const TensorView& view : tensors) {
    if (shards.empty() || filled + view.bytes > shard_bytes) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back(view);
    filled += view.bytes;
  }
  json map = json::object();
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}{}", i + 1, shards.size(), kSafetensorsEnding);
    write_safetensors(folder / name, shards[i], metadata, make);
    for (const TensorView& view : shards[i]) map[view.name] = name;
  }
  const json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  write_file_atomic(folder / kModelIndexFile, json_text(index, 2) + "\n");
}

}  // namespace siamese::io

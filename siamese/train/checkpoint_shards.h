// The tensors of a checkpoint as files: model.safetensors, optim.safetensors, ema.safetensors of one process; of
// several ranks, which write at the same time, model-00001-of-00004.safetensors and so on with an index of each kind
// (io/tensor_files.h).
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "siamese/comm/group.h"
#include "siamese/models/weights.h"

namespace siamese::train {

// A file that a rank wrote, and what is in it.
struct ShardFile {
  std::string kind;  // the file in whose place it stands: "model.safetensors"
  std::string name;
  uint64_t bytes = 0;
  std::vector<std::string> tensors;
};

// Writes one rank's files into a folder that all see.
class ShardWriter {
 public:
  // `group`: null when there is one process.
  ShardWriter(std::filesystem::path folder, const comm::Group* group, std::map<std::string, std::string> metadata);

  // Tensors that every rank has: this one writes its share of them.
  void write_share(std::string_view kind, const std::vector<models::NamedTensor>& tensors);
  // Tensors that this rank alone has.
  void write_own(std::string_view kind, const std::vector<models::NamedTensor>& tensors);

  const std::vector<ShardFile>& written() const { return written_; }

 private:
  std::filesystem::path folder_;
  const comm::Group* group_;
  std::map<std::string, std::string> metadata_;
  std::vector<ShardFile> written_;
};

// Every rank calls it: what all wrote, by way of `write`. SystemError naming rank, host and cause when one could not;
// on every rank, after all have tried.
std::vector<ShardFile> written_by_all(comm::Group& group, const std::function<std::vector<ShardFile>()>& write);

// The indices of shards, one for each kind. The names of all files but those that a checkpoint of one process has too.
std::vector<std::string> write_indices(const std::filesystem::path& folder, const std::vector<ShardFile>& files);

}  // namespace siamese::train

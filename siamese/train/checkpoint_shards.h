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

// What one process writes of the tensors of a checkpoint, file by file.
class Shards {
 public:
  // `group`: null when there is one process.
  explicit Shards(const comm::Group* group) : group_(group) {}

  // Tensors that every rank has: this one writes its share of them.
  void add_share(std::string_view kind, const std::vector<models::NamedTensor>& tensors);
  // Tensors that this rank alone has.
  void add_own(std::string_view kind, std::vector<models::NamedTensor> tensors);
  // What other shards hold, after this.
  void append(Shards shards);
  // Copies take the place of the tensors: from here on, who changes those changes nothing here. SystemError when there
  // is no memory for them.
  void copy();
  // The same in the middle of something that the other ranks count on: what fails is for `write` to say.
  void copy_or_fail_later();
  // Into a folder that all see.
  std::vector<ShardFile> write(const std::filesystem::path& folder,
                               const std::map<std::string, std::string>& metadata) const;

 private:
  struct Shard {
    std::string kind;
    std::vector<models::NamedTensor> tensors;
    bool copied = false;
  };

  const comm::Group* group_;
  std::vector<Shard> shards_;
  std::string failed_;  // why there is nothing to write
};

// Every rank calls it: what all wrote, by way of `write`. SystemError naming rank, host and cause when one could not;
// on every rank, after all have tried.
std::vector<ShardFile> written_by_all(comm::Group& group, const std::function<std::vector<ShardFile>()>& write);

// The indices of shards, one for each kind. The names of all files but those that a checkpoint of one process has too.
std::vector<std::string> write_indices(const std::filesystem::path& folder, const std::vector<ShardFile>& files);

}  // namespace siamese::train

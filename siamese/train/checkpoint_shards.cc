#include "siamese/train/checkpoint_shards.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/run_dir.h"
#include "siamese/io/strict_json.h"
#include "siamese/train/failure_text.h"

namespace siamese::train {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

// Whole tensors, consecutive, of about the same size on each rank.
std::vector<models::NamedTensor> share_of(const std::vector<models::NamedTensor>& tensors, int rank, int ranks) {
  double total = 0;
  for (const auto& tensor : tensors) total += static_cast<double>(tensor.value.numel());
  std::vector<models::NamedTensor> share;
  double before = 0;
  for (const auto& tensor : tensors) {
    const auto size = static_cast<double>(tensor.value.numel());
    const double middle = (before + size / 2) / std::max(total, 1.0);
    before += size;
    if (std::min(static_cast<int>(middle * ranks), ranks - 1) == rank) share.push_back(tensor);
  }
  return share;
}

// On the host, where it is written from.
at::Tensor copy_of(const at::Tensor& value) {
  const at::Tensor here = value.detach().cpu().contiguous();
  return here.is_alias_of(value) ? here.clone() : here;
}

std::string to_text(const std::vector<ShardFile>& files) {
  json list = json::array();
  for (const ShardFile& file : files) list.push_back({file.kind, file.name, file.bytes, file.tensors});
  return io::json_text(list);
}

void append(std::vector<ShardFile>& files, const std::string& text) {
  for (const json& one : io::read_json(text, "what a rank wrote")) {
    files.push_back({one[0].get<std::string>(), one[1].get<std::string>(), one[2].get<uint64_t>(),
                     one[3].get<std::vector<std::string>>()});
  }
}

}  // namespace

void Shards::add_share(std::string_view kind, const std::vector<models::NamedTensor>& tensors) {
  add_own(kind, group_ == nullptr ? tensors : share_of(tensors, group_->rank(), group_->size()));
}

void Shards::add_own(std::string_view kind, std::vector<models::NamedTensor> tensors) {
  if (group_ != nullptr && tensors.empty()) return;
  shards_.push_back({std::string(kind), std::move(tensors)});
}

void Shards::append(Shards shards) {
  for (Shard& shard : shards.shards_) shards_.push_back(std::move(shard));
  if (failed_.empty()) failed_ = std::move(shards.failed_);
}

void Shards::copy_or_fail_later() {
  try {
    copy();
  } catch (const SystemError& error) {
    failed_ = error.what();
  }
}

void Shards::copy() {
  try {
    for (Shard& shard : shards_) {
      if (shard.copied) continue;
      for (models::NamedTensor& tensor : shard.tensors) tensor.value = copy_of(tensor.value);
      shard.copied = true;
    }
  } catch (const std::exception& error) {
    throw SystemError("a copy of the run's state to write from: " + failure_text(error));
  }
}

std::vector<ShardFile> Shards::write(const fs::path& folder, const std::map<std::string, std::string>& metadata) const {
  if (!failed_.empty()) throw SystemError(failed_);
  std::vector<ShardFile> written;
  for (const Shard& shard : shards_) {
    ShardFile file{shard.kind, shard.kind};
    if (group_ != nullptr) file.name = io::shard_name(shard.kind, group_->rank(), group_->size());
    for (const auto& tensor : shard.tensors) {
      file.bytes += tensor.value.nbytes();
      file.tensors.push_back(tensor.name);
    }
    models::save_tensors(folder / file.name, shard.tensors, metadata);
    written.push_back(std::move(file));
  }
  return written;
}

std::vector<ShardFile> written_by_all(comm::Group& group, const std::function<std::vector<ShardFile>()>& write) {
  std::string mine, failed;
  try {
    mine = to_text(write());
  } catch (const Error& error) {
    failed = error.what();
  } catch (const std::exception& error) {
    failed = failure_text(error);
  }
  const std::vector<std::string> failures = comm::gather(group, failed.empty() ? "" : group.name() + ": " + failed);
  const std::vector<std::string> texts = comm::gather(group, mine);
  std::vector<ShardFile> files;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (!failures[rank].empty()) throw SystemError(failures[rank]);
    append(files, texts[rank]);
  }
  return files;
}

std::vector<std::string> write_indices(const fs::path& folder, const std::vector<ShardFile>& files) {
  std::map<std::string, json> maps;
  std::map<std::string, uint64_t> bytes;
  std::vector<std::string> names;
  for (const ShardFile& file : files) {
    if (file.name == file.kind) continue;
    names.push_back(file.name);
    for (const std::string& tensor : file.tensors) maps[file.kind][tensor] = file.name;
    bytes[file.kind] += file.bytes;
  }
  for (const auto& [kind, map] : maps) {
    const json index = {{"metadata", {{"total_size", bytes[kind]}}}, {"weight_map", map}};
    io::write_file_atomic(folder / io::index_name(kind), io::json_text(index, 2) + "\n");
  }
  return names;
}

}  // namespace siamese::train

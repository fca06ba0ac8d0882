#include "siamese/data/identity.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "siamese/data/cifar_set.h"
#include "siamese/data/files.h"
#include "siamese/data/folder_set.h"
#include "siamese/data/idx_set.h"
#include "siamese/data/mixture.h"
#include "siamese/io/checksum.h"

namespace siamese::data {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kLargestWhole = uint64_t{64} << 20;
constexpr uint64_t kAllWhole = uint64_t{1} << 30;
constexpr size_t kMostEntries = 10'000;

struct DataFile {
  fs::path path;
  int64_t label = -1;  // of an image in a folder: its place says it
};

std::vector<DataFile> without_labels(const std::vector<fs::path>& paths) {
  std::vector<DataFile> files;
  for (const auto& path : paths) files.push_back({path});
  return files;
}

std::vector<DataFile> files_of(const DataConfig& config, Split split) {
  const bool training = split == Split::train;
  if (!config.mix.empty()) {
    std::vector<DataFile> all;
    for (const MixSource& source : mix_sources(config)) {
      const auto own = files_of(source.data, split);
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }
  switch (config.source) {
    case Source::text:
    case Source::tokens:
    case Source::latents:
      return without_labels(training ? expand_files("data.train", config.train, config.base)
                                     : expand_files("data.val", config.val, config.base));
    case Source::idx:
      return without_labels(idx_files(config, split));
    case Source::cifar:
      return without_labels(cifar_files(config, split));
    case Source::folder: {
      std::vector<DataFile> files;
      if (!training && config.val.empty()) return files;
      const auto by_class = folder_files(config, split);
      for (size_t label = 0; label < by_class.size(); ++label) {
        for (const auto& path : by_class[label]) files.push_back({path, static_cast<int64_t>(label)});
      }
      return files;
    }
    default:
      return {};
  }
}

uint64_t mixed(std::initializer_list<uint64_t> numbers) {
  return io::checksum(std::as_bytes(std::span(numbers.begin(), numbers.size())));
}

// Entries of one folder that follow each other as one.
std::vector<FileIdentity> by_folder(const std::vector<FileIdentity>& files) {
  std::vector<FileIdentity> folders;
  for (const auto& file : files) {
    const std::string folder = fs::path(file.path).parent_path().string();
    if (folders.empty() || folders.back().path != folder) folders.push_back({folder, {}});
    io::FileHash& sum = folders.back().content;
    sum = {sum.bytes + file.content.bytes, mixed({sum.hash, file.content.bytes, file.content.hash})};
  }
  return folders;
}

std::vector<FileIdentity> identities(const std::vector<DataFile>& files, uint64_t& left) {
  std::vector<FileIdentity> found;
  for (const auto& [path, label] : files) {
    const uint64_t whole = std::min(left, kLargestWhole);
    io::FileHash content = io::hash_file(path, whole);
    if (content.bytes <= whole) left -= content.bytes;
    if (label >= 0) content.hash = mixed({content.hash, static_cast<uint64_t>(label)});
    found.push_back({path.string(), content});
  }
  return found.size() > kMostEntries ? by_folder(found) : found;
}

bool holds(const std::vector<FileIdentity>& files, const io::FileHash& content) {
  return std::any_of(files.begin(), files.end(), [&](const auto& file) { return file.content == content; });
}

std::optional<std::string> difference_of(const std::string& key, const std::vector<FileIdentity>& then,
                                         const std::vector<FileIdentity>& now) {
  const size_t both = std::min(then.size(), now.size());
  size_t at = 0;
  while (at < both && then[at].content == now[at].content) ++at;
  if (at == then.size() && at == now.size()) return std::nullopt;
  const std::string counts =
      fmt::format("{}: {} {} then, {} now", key, then.size(), then.size() == 1 ? "file" : "files", now.size());
  const bool is_gone = at < then.size() && !holds(now, then[at].content);
  const bool is_new = at < now.size() && !holds(then, now[at].content);
  const auto added = [&] { return fmt::format("{}: was added ({})", now[at].path, counts); };
  const auto missing = [&] { return fmt::format("{}: is missing ({})", then[at].path, counts); };
  if (is_new && now.size() > then.size()) return added();
  if (is_gone && now.size() < then.size()) return missing();
  if (at == both) return at < now.size() ? added() : missing();
  if (!is_new && !is_gone) {
    return fmt::format("{}: stands where {} stood: the order of the files is another ({})", now[at].path, then[at].path,
                       counts);
  }
  return fmt::format("{}: expected {} bytes with the hash {}, as {} had, got {} bytes with {}", now[at].path,
                     then[at].content.bytes, io::checksum_text(then[at].content.hash), then[at].path,
                     now[at].content.bytes, io::checksum_text(now[at].content.hash));
}

}  // namespace

DataIdentity identity_of(const DataConfig& asked) {
  const DataConfig config = located(asked);
  check_folders(config);
  uint64_t left = kAllWhole;
  DataIdentity identity;
  identity.train = identities(files_of(config, Split::train), left);
  identity.val = identities(files_of(config, Split::test), left);
  return identity;
}

std::optional<std::string> difference(const DataIdentity& then, const DataIdentity& now) {
  const auto of_train = difference_of("data.train", then.train, now.train);
  return of_train ? of_train : difference_of("data.val", then.val, now.val);
}

}  // namespace siamese::data

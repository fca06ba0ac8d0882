#include "siamese/data/cifar_set.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/cifar.h"

namespace siamese::data {
namespace fs = std::filesystem;
namespace {

// Sorted; empty when there is no such folder.
std::vector<fs::path> files_of(const fs::path& folder, bool (*wanted)(const std::string& name)) {
  std::vector<fs::path> found;
  if (!is_folder(folder)) return found;
  for (const fs::path& entry : folder_entries(folder)) {
    if (wanted(entry.filename().string())) found.push_back(entry);
  }
  return found;
}

bool is_train10(const std::string& name) { return name.starts_with("data_batch_") && name.ends_with(".bin"); }
bool is_test10(const std::string& name) { return name == "test_batch.bin"; }
bool is_train100(const std::string& name) { return name == "train.bin"; }
bool is_test100(const std::string& name) { return name == "test.bin"; }

class CifarSet : public ImageSet {
 public:
  CifarSet(const std::vector<fs::path>& paths, io::CifarKind kind, int64_t classes, std::string title)
      : classes_(classes), title_(std::move(title)) {
    first_.push_back(0);
    for (const auto& path : paths) {
      files_.push_back({path, io::CifarFile::open(path, kind)});
      first_.push_back(first_.back() + files_.back().file.size());
      for (int64_t i = 0; i < files_.back().file.size(); ++i) label(files_.back(), i);
    }
  }

  int64_t size() const override { return first_.back(); }
  std::string describe() const override { return fmt::format("{}: {} images of 32 x 32 pixels", title_, size()); }
  LabelledImage read(uint64_t index) const override {
    const auto after = std::upper_bound(first_.begin(), first_.end(), static_cast<int64_t>(index));
    const auto at = static_cast<size_t>(after - first_.begin()) - 1;
    const int64_t record = static_cast<int64_t>(index) - first_[at];
    return {files_[at].file.image(record), label(files_[at], record)};
  }

 private:
  struct Part {
    fs::path path;
    io::CifarFile file;
  };

  // Checked each time: the file may have changed since it was opened.
  int64_t label(const Part& part, int64_t record) const {
    const int64_t found = part.file.label(record);
    if (found < classes_) return found;
    throw DataError(fmt::format("{}: record {}: expected a label below model.classes {}, got {}", part.path.string(),
                                record, classes_, found));
  }

  int64_t classes_;
  std::vector<Part> files_;
  std::vector<int64_t> first_;  // image of each file, then the total
  std::string title_;
};

}  // namespace

int64_t cifar_classes(const std::string& folder) {
  if (!files_of(folder, is_train10).empty() || !files_of(folder, is_test10).empty()) return 10;
  if (!files_of(folder, is_train100).empty() || !files_of(folder, is_test100).empty()) return 100;
  return 0;
}

std::vector<std::string> cifar_names(const std::string& folder) {
  if (cifar_classes(folder) != 10) return {};
  return {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
}

namespace {

const std::string& folder_of(const DataConfig& config, Split split) {
  return split == Split::train || config.val.empty() ? config.train.front() : config.val.front();
}

}  // namespace

std::vector<fs::path> cifar_files(const DataConfig& config, Split split) {
  const bool training = split == Split::train;
  const std::string& folder = folder_of(config, split);
  const bool ten = cifar_classes(folder) != 100;
  auto paths = files_of(folder, training ? (ten ? is_train10 : is_train100) : (ten ? is_test10 : is_test100));
  if (paths.empty()) {
    throw DataError(fmt::format("{}: expected a folder with {} (CIFAR-10) or {} (CIFAR-100) in it, got '{}'",
                                training || config.val.empty() ? "data.train" : "data.val",
                                training ? "data_batch_*.bin" : "test_batch.bin", training ? "train.bin" : "test.bin",
                                folder));
  }
  return paths;
}

std::unique_ptr<ImageSet> cifar_set(const DataConfig& config, Split split, int64_t classes) {
  const bool ten = cifar_classes(folder_of(config, split)) != 100;
  const auto paths = cifar_files(config, split);
  return std::make_unique<CifarSet>(
      paths, ten ? io::CifarKind::cifar10 : io::CifarKind::cifar100, classes,
      fmt::format("cifar-{} {}", ten ? 10 : 100, split == Split::train ? "train" : "test"));
}

}  // namespace siamese::data

#include "siamese/data/folder_set.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/data/files.h"
#include "siamese/io/image_file.h"

namespace siamese::data {
namespace fs = std::filesystem;
namespace {

struct Listed {
  fs::path path;
  size_t rank = 0;  // in its class
  int64_t label = 0;
};

std::vector<fs::path> images_below(const std::string& key, const fs::path& folder, size_t& skipped) {
  auto files = expand_files(key, {folder.string()});
  skipped += std::erase_if(files, [](const fs::path& path) { return !io::is_image_file(path); });
  if (files.empty()) throw DataError(fmt::format("{}: no PNG or JPEG image in folder '{}'", key, folder.string()));
  return files;
}

class FolderSet : public ImageSet {
 public:
  FolderSet(std::vector<Listed> images, size_t classes, size_t skipped, std::string title)
      : images_(std::move(images)), classes_(classes), skipped_(skipped), title_(std::move(title)) {}

  int64_t size() const override { return std::ssize(images_); }
  std::string describe() const override {
    std::string text = fmt::format("{}: {} images of {} classes", title_, size(), classes_);
    if (skipped_ > 0) {
      text += fmt::format(" ({} other file{} skipped: neither PNG nor JPEG)", skipped_, skipped_ == 1 ? "" : "s");
    }
    return text;
  }
  LabelledImage read(uint64_t index) const override {
    const Listed& listed = images_[index];
    return {io::read_image(listed.path), listed.label};
  }

 private:
  std::vector<Listed> images_;
  size_t classes_;
  size_t skipped_;  // files that are no images
  std::string title_;
};

std::vector<std::string> checked_classes(const DataConfig& config, int64_t most) {
  const std::string& folder = config.train.front();
  auto names = class_folders(folder);
  if (names.empty()) {
    throw DataError(fmt::format("data.train: expected a folder with one subfolder per class, got '{}'", folder));
  }
  if (std::ssize(names) > most) {
    throw DataError(fmt::format("{}: {} classes, but model.classes is {}", folder, names.size(), most));
  }
  return names;
}

void check_val(const DataConfig& config, const std::vector<std::string>& names) {
  const std::string& folder = config.val.front();
  std::error_code ignored;
  if (fs::equivalent(folder, config.train.front(), ignored)) {
    throw UsageError(fmt::format("data.val: '{}' is also data.train", folder));
  }
  const auto given = class_folders(folder);
  if (given.empty()) {
    throw DataError(fmt::format("data.val: expected a folder with one subfolder per class, got '{}'", folder));
  }
  for (const auto& name : given) {
    if (!std::binary_search(names.begin(), names.end(), name)) {
      throw DataError(fmt::format("data.val: '{}' has a class '{}' that data.train has not", folder, name));
    }
  }
}

}  // namespace

std::vector<std::string> class_folders(const std::string& folder) {
  std::vector<std::string> names;
  if (!is_folder(folder)) return names;
  for (const fs::path& entry : folder_entries(folder)) {
    const std::string name = entry.filename().string();
    if (!name.starts_with('.') && is_folder(entry)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::vector<fs::path>> folder_files(const DataConfig& config, Split split, size_t* skipped) {
  const bool from_val = split == Split::test;
  const fs::path folder = from_val ? config.val.front() : config.train.front();
  std::vector<std::vector<fs::path>> files;
  size_t others = 0;
  for (const auto& name : class_folders(config.train.front())) {
    const bool has_class = !from_val || is_folder(folder / name);
    files.push_back(has_class ? images_below(from_val ? "data.val" : "data.train", folder / name, others)
                              : std::vector<fs::path>());
  }
  if (skipped != nullptr) *skipped = others;
  return files;
}

std::unique_ptr<ImageSet> folder_set(const DataConfig& config, Split split, int64_t classes) {
  const auto names = checked_classes(config, classes);
  const bool tail = config.val.empty();
  if (!tail) check_val(config, names);
  size_t skipped = 0;
  const auto by_class = folder_files(config, tail ? Split::train : split, &skipped);
  std::vector<Listed> images;
  for (size_t label = 0; label < by_class.size(); ++label) {
    const auto& files = by_class[label];
    const size_t held_out = tail ? static_cast<size_t>(static_cast<double>(files.size()) * config.val_fraction) : 0;
    const size_t border = files.size() - held_out;
    const bool second_part = tail && split == Split::test;
    for (size_t i = second_part ? border : 0; i < (second_part ? files.size() : border); ++i) {
      images.push_back({files[i], i - (second_part ? border : 0), static_cast<int64_t>(label)});
    }
  }
  if (images.empty()) {
    throw UsageError(
        fmt::format("data.val_fraction: {} of each class in '{}' holds out no image; raise it or give "
                    "data.val",
                    config.val_fraction, config.train.front()));
  }
  std::stable_sort(images.begin(), images.end(), [](const Listed& a, const Listed& b) { return a.rank < b.rank; });
  return std::make_unique<FolderSet>(std::move(images), names.size(), skipped,
                                     split == Split::train ? "folder train" : "folder test");
}

}  // namespace siamese::data

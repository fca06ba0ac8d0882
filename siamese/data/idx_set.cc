#include "siamese/data/idx_set.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/idx.h"
#include "siamese/io/message.h"

namespace siamese::data {
namespace fs = std::filesystem;
namespace {

fs::path find_file(const fs::path& folder, const std::string& stem, const std::string& ending) {
  const fs::path usual = folder / (stem + "-" + ending);
  const fs::path dotted = folder / (stem + "." + ending);
  for (const auto& path : {usual, dotted}) {
    if (is_there(path)) return path;
  }
  for (const auto& path : {usual, dotted}) {
    if (is_there(path.string() + ".gz")) {
      throw DataError(fmt::format("{}.gz: expected it unpacked: gunzip it", path.string()));
    }
  }
  throw DataError(fmt::format("{}: no such file (nor with a '.' before idx)", usual.string()));
}

class IdxSet : public ImageSet {
 public:
  IdxSet(const fs::path& images, const fs::path& labels, int64_t classes, std::string title)
      : images_(io::IdxFile::open(images)),
        labels_(io::IdxFile::open(labels)),
        labels_path_(labels),
        classes_(classes),
        title_(std::move(title)) {
    const auto& shape = images_.shape();
    if (shape.size() != 3 || std::find(shape.begin(), shape.end(), 0) != shape.end()) {
      throw DataError(fmt::format("{}: expected images in 3 dimensions, none of them 0, got {}", images.string(),
                                  io::shape_text(shape)));
    }
    if (shape[1] * shape[2] > io::kMostPixels) {
      throw DataError(fmt::format("{}: expected at most {} pixels, got {} x {}", images.string(), io::kMostPixels,
                                  shape[2], shape[1]));
    }
    if (labels_.shape() != std::vector<int64_t>{shape[0]}) {
      throw DataError(fmt::format("{}: expected one label for each of {} images, got {}", labels.string(), shape[0],
                                  io::shape_text(labels_.shape())));
    }
    for (int64_t i = 0; i < size(); ++i) label(i);
  }

  int64_t size() const override { return images_.shape()[0]; }
  std::string describe() const override {
    return fmt::format("{}: {} images of {} x {} pixels", title_, size(), images_.shape()[2], images_.shape()[1]);
  }
  LabelledImage read(uint64_t index) const override {
    io::Image image(images_.shape()[2], images_.shape()[1], 1);
    const auto bytes = images_.data().subspan(index * image.pixels.size(), image.pixels.size());
    std::transform(bytes.begin(), bytes.end(), image.pixels.begin(), std::to_integer<uint8_t>);
    return {std::move(image), label(static_cast<int64_t>(index))};
  }

 private:
  // Checked each time: the file may have changed since it was opened.
  int64_t label(int64_t index) const {
    const auto found = std::to_integer<int64_t>(labels_.data()[static_cast<size_t>(index)]);
    if (found < classes_) return found;
    throw DataError(fmt::format("{}: label {}: expected below model.classes {}, got {} at byte {}",
                                labels_path_.string(), index, classes_, found, 8 + index));
  }

  io::IdxFile images_;
  io::IdxFile labels_;
  fs::path labels_path_;
  int64_t classes_;
  std::string title_;
};

}  // namespace

std::vector<fs::path> idx_files(const DataConfig& config, Split split) {
  const bool training = split == Split::train;
  const fs::path folder = training || config.val.empty() ? config.train.front() : config.val.front();
  const std::string stem = training ? "train" : "t10k";
  return {find_file(folder, stem + "-images", "idx3-ubyte"), find_file(folder, stem + "-labels", "idx1-ubyte")};
}

std::unique_ptr<ImageSet> idx_set(const DataConfig& config, Split split, int64_t classes) {
  const auto files = idx_files(config, split);
  return std::make_unique<IdxSet>(files[0], files[1], classes, split == Split::train ? "idx train" : "idx test");
}

}  // namespace siamese::data

#include "siamese/data/latents.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/data/files.h"
#include "siamese/io/message.h"
#include "siamese/io/safetensors.h"

namespace siamese::data {
namespace fs = std::filesystem;
namespace {

float from_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Sign, 5 bits of exponent, 10 of mantissa; exponent 0 is subnormal, 31 infinity or NaN.
float from_f16(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  float value = std::ldexp(static_cast<float>(exponent == 0 ? mantissa : mantissa + 1024), std::max(exponent, 1) - 25);
  if (exponent == 31) value = mantissa == 0 ? INFINITY : NAN;
  return (bits & 0x8000) != 0 ? -value : value;
}

template <class T>
T value_at(const std::byte* data, size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

int64_t label_at(const io::TensorView& labels, size_t index) {
  if (labels.dtype == io::DType::i64) return value_at<int64_t>(labels.data, index);
  return value_at<int32_t>(labels.data, index);
}

// Checked each time: the file may have changed since it was opened.
int64_t checked_label(const io::TensorView& labels, size_t index, int64_t classes) {
  const int64_t label = label_at(labels, index);
  if (label >= 0 && label < classes) return label;
  throw DataError(fmt::format("{}: label {}: expected 0 to below model.classes {}, got {} at byte {} of 'labels'",
                              labels.file, index, classes, label, index * io::dtype_size(labels.dtype)));
}

// One file, and which of its samples are used.
struct LatentPart {
  io::SafetensorsFile file;
  const io::TensorView* latents = nullptr;
  const io::TensorView* labels = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
};

const io::TensorView* find_tensor(const io::SafetensorsFile& file, const char* name, const fs::path& path) {
  const io::TensorView* view = file.find(name);
  if (view == nullptr) throw DataError(fmt::format("{}: expected a tensor '{}', got none", path.string(), name));
  return view;
}

void check_latents(const io::TensorView& view, const SampleShape& shape, const fs::path& path) {
  const bool known = view.dtype == io::DType::f32 || view.dtype == io::DType::f16 || view.dtype == io::DType::bf16;
  if (!known || view.shape.size() != 4 || view.shape[1] != shape.channels || view.shape[2] != shape.image ||
      view.shape[3] != shape.image) {
    throw DataError(fmt::format(
        "{}: 'latents': expected F32, F16 or BF16 [N, {}, {}, {}] as the model takes, got {} {}", path.string(),
        shape.channels, shape.image, shape.image, enum_text(view.dtype), io::shape_text(view.shape)));
  }
}

void check_labels(const io::TensorView& view, int64_t count, int64_t classes, const fs::path& path) {
  const bool known = view.dtype == io::DType::i64 || view.dtype == io::DType::i32;
  if (!known || view.shape != std::vector<int64_t>{count}) {
    throw DataError(fmt::format("{}: 'labels': expected I64 or I32 [{}], one for each latent, got {} {}", path.string(),
                                count, enum_text(view.dtype), io::shape_text(view.shape)));
  }
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) checked_label(view, i, classes);
}

class LatentSamples : public LabelledSamples {
 public:
  LatentSamples(std::vector<LatentPart> parts, int64_t classes, std::string title)
      : parts_(std::move(parts)), classes_(classes), title_(std::move(title)) {
    first_.push_back(0);
    for (const auto& part : parts_) first_.push_back(first_.back() + part.end - part.begin);
  }

  int64_t size() const override { return first_.back(); }
  std::string describe() const override {
    return fmt::format("{}: {} latents in {} {}", title_, size(), parts_.size(), parts_.size() == 1 ? "file" : "files");
  }

  int64_t sample(uint64_t index, uint64_t /*position*/, std::span<float> out) const override {
    const auto after = std::upper_bound(first_.begin(), first_.end(), static_cast<int64_t>(index));
    const auto at = static_cast<size_t>(after - first_.begin()) - 1;
    const LatentPart& part = parts_[at];
    const auto row = static_cast<size_t>(part.begin + static_cast<int64_t>(index) - first_[at]);
    const std::byte* data = part.latents->data + row * out.size() * io::dtype_size(part.latents->dtype);
    for (size_t i = 0; i < out.size(); ++i) {
      switch (part.latents->dtype) {
        case io::DType::f16:
          out[i] = from_f16(value_at<uint16_t>(data, i));
          break;
        case io::DType::bf16:
          out[i] = from_bf16(value_at<uint16_t>(data, i));
          break;
        default:
          out[i] = value_at<float>(data, i);
      }
    }
    return checked_label(*part.labels, row, classes_);
  }

 private:
  std::vector<LatentPart> parts_;
  int64_t classes_;
  std::vector<int64_t> first_;  // sample of each part, then the total
  std::string title_;
};

}  // namespace

std::unique_ptr<LabelledSamples> latent_samples(const DataConfig& config, Split split, const SampleShape& shape) {
  const auto train = expand_files("data.train", config.train, config.base);
  const auto val = expand_files("data.val", config.val, config.base);
  check_disjoint(train, val);
  std::vector<LatentPart> parts;
  int64_t total = 0;
  for (const auto& path : split == Split::test && !val.empty() ? val : train) {
    LatentPart part{io::SafetensorsFile::open(path)};
    part.latents = find_tensor(part.file, "latents", path);
    part.labels = find_tensor(part.file, "labels", path);
    check_latents(*part.latents, shape, path);
    const int64_t count = part.latents->shape[0];
    check_labels(*part.labels, count, shape.classes, path);
    const auto held_out = static_cast<int64_t>(static_cast<double>(count) * (val.empty() ? config.val_fraction : 0));
    part.begin = split == Split::test && val.empty() ? count - held_out : 0;
    part.end = split == Split::test ? count : count - held_out;
    total += part.end - part.begin;
    parts.push_back(std::move(part));
  }
  if (total == 0) {
    throw UsageError(fmt::format("data.val_fraction: {} of each file leaves no {} latents; change it or give data.val",
                                 config.val_fraction, split == Split::train ? "training" : "test"));
  }
  return std::make_unique<LatentSamples>(std::move(parts), shape.classes,
                                         split == Split::train ? "latents train" : "latents test");
}

}  // namespace siamese::data

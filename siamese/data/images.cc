#include "siamese/data/images.h"

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/random.h"
#include "siamese/data/draws.h"
#include "siamese/data/order.h"
#include "siamese/data/pixels.h"

namespace siamese::data {
namespace {

class ImageBatches : public Batches {
 public:
  ImageBatches(std::unique_ptr<ImageSet> set, const DataConfig& config, Split split, const SampleShape& shape,
               uint64_t seed)
      : set_(std::move(set)),
        shape_(shape),
        order_(set_->size(), split == Split::train ? Order::shuffled : Order::plain, seed ^ hash_text("data.images")),
        pixels_(config.normalize, shape.channels) {}

  int64_t samples() const override { return set_->size(); }
  std::string describe() const override {
    if (samples() == 0) return set_->describe();
    return fmt::format("{}, {}", set_->describe(), order_.shuffled() ? "shuffled each epoch" : "in order");
  }

  Batch batch(uint64_t first, int64_t rows) const override {
    SIAMESE_INVARIANT(rows > 0);
    Batch batch;
    batch.rows = rows;
    batch.shape = shape_;
    batch.first_position = first;
    batch.images.resize(static_cast<size_t>(rows * shape_.pixels()));
    batch.labels.resize(static_cast<size_t>(rows));
    const auto width = static_cast<size_t>(shape_.pixels());
    for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
      batch.labels[row] = sample(first + row, std::span(batch.images).subspan(row * width, width));
    }
    return batch;
  }

 private:
  int64_t sample(uint64_t position, std::span<float> out) const {
    const uint64_t index = order_(position);
    const LabelledImage labelled = set_->read(index);
    if (labelled.label < 0 || labelled.label >= shape_.classes) {
      throw DataError(fmt::format("{}: expected a label below model.classes {}, got {}", set_->name(index),
                                  shape_.classes, labelled.label));
    }
    pixels_.to_floats(with_channels(labelled.image, shape_.channels), out);
    return labelled.label;
  }

  std::unique_ptr<ImageSet> set_;
  SampleShape shape_;
  IndexOrder order_;
  PixelScale pixels_;
};

class RandomImages : public Batches {
 public:
  RandomImages(const SampleShape& shape, uint64_t seed) : shape_(shape), seed_(seed ^ hash_text("data.images")) {}

  int64_t samples() const override { return 0; }
  std::string describe() const override { return "random images"; }

  Batch batch(uint64_t first, int64_t rows) const override {
    SIAMESE_INVARIANT(rows > 0);
    Batch batch;
    batch.rows = rows;
    batch.shape = shape_;
    batch.first_position = first;
    for (uint64_t row = 0; row < static_cast<uint64_t>(rows); ++row) {
      Draws draws(seed_, first + row);
      batch.labels.push_back(draws.below(static_cast<int>(shape_.classes)));
      for (int64_t i = 0; i < shape_.pixels(); ++i) {
        batch.images.push_back(static_cast<float>(draws.between(-1, 1)));
      }
    }
    return batch;
  }

 private:
  SampleShape shape_;
  uint64_t seed_;
};

}  // namespace

std::unique_ptr<Batches> image_batches(std::unique_ptr<ImageSet> set, const DataConfig& config, Split split,
                                       const SampleShape& shape, uint64_t seed) {
  return std::make_unique<ImageBatches>(std::move(set), config, split, shape, seed);
}

std::unique_ptr<Batches> random_images(const SampleShape& shape, uint64_t seed) {
  return std::make_unique<RandomImages>(shape, seed);
}

}  // namespace siamese::data

#include "siamese/data/labelled.h"

#include <algorithm>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/random.h"
#include "siamese/data/mix.h"
#include "siamese/data/order.h"

namespace siamese::data {
namespace {

int64_t count_of(const LabelledSamples& samples, const DataConfig& config, Split split) {
  if (split == Split::test || config.limit == 0) return samples.size();
  return samples.size() == 0 ? config.limit : std::min(samples.size(), config.limit);
}

class LabelledBatches : public Batches {
 public:
  LabelledBatches(std::unique_ptr<LabelledSamples> samples, const DataConfig& config, Split split,
                  const SampleShape& shape, uint64_t seed)
      : samples_(std::move(samples)),
        shape_(shape),
        training_(split == Split::train),
        augment_(config.augment),
        repeats_(training_ ? config.augment.repeats : 1),
        count_(count_of(*samples_, config, split)),
        order_(count_, training_ ? Order::shuffled : Order::plain, seed ^ hash_text("data.images.order")),
        mix_seed_(seed ^ hash_text("data.images.mix")) {}

  int64_t samples() const override { return count_ * repeats_; }

  std::string describe() const override {
    std::string text = samples_->describe();
    if (count_ < samples_->size()) text += fmt::format(", the first {} of them", count_);
    if (count_ > 0) text += training_ ? ", shuffled each epoch" : ", in order";
    if (repeats_ > 1) text += fmt::format(", each {} times in a row", repeats_);
    return text;
  }

  Batch batch(uint64_t first, int64_t rows) const override {
    SIAMESE_INVARIANT(rows > 0);
    Batch batch;
    batch.rows = rows;
    batch.shape = shape_;
    batch.first_position = first;
    const auto width = static_cast<size_t>(shape_.pixels());
    batch.images.resize(static_cast<size_t>(rows) * width);
    batch.labels.resize(static_cast<size_t>(rows));
    for (size_t row = 0; row < batch.labels.size(); ++row) {
      const uint64_t position = first + row;
      batch.labels[row] = samples_->sample(order_(position / static_cast<uint64_t>(repeats_)), position,
                                           std::span(batch.images).subspan(row * width, width));
      SIAMESE_INVARIANT(batch.labels[row] >= 0 && batch.labels[row] < shape_.classes);
    }
    if (training_) {
      Draws draws(mix_seed_, first);
      mix(batch, augment_, draws);
    }
    return batch;
  }

 private:
  std::unique_ptr<LabelledSamples> samples_;
  SampleShape shape_;
  bool training_;
  AugmentConfig augment_;
  int64_t repeats_;
  int64_t count_;
  IndexOrder order_;
  uint64_t mix_seed_;
};

}  // namespace

std::unique_ptr<Batches> labelled_batches(std::unique_ptr<LabelledSamples> samples, const DataConfig& config,
                                          Split split, const SampleShape& shape, uint64_t seed) {
  return std::make_unique<LabelledBatches>(std::move(samples), config, split, shape, seed);
}

}  // namespace siamese::data

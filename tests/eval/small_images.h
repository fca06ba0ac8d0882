// Small vit and dit models and random labelled images for them.
#pragma once

#include "tests/models/small_families.h"

#include "siamese/data/batches.h"

namespace siamese::eval {

// `count` images of random numbers in -1 to 1, and labels that come in no order; 0 = endless.
class RandomPictures : public data::Batches {
 public:
  RandomPictures(const models::ModelConfig& config, int64_t count) : config_(config), count_(count) {}

  int64_t samples() const override { return count_; }
  std::string describe() const override { return "random pictures"; }
  data::Batch batch(uint64_t first, int64_t rows) const override {
    data::Batch batch;
    batch.rows = rows;
    batch.shape = {.image = config_.image, .channels = config_.channels, .classes = config_.classes};
    batch.first_position = first;
    for (int64_t row = 0; row < rows; ++row) {
      const uint64_t position = first + static_cast<uint64_t>(row);
      EXPECT_TRUE(count_ == 0 || position < static_cast<uint64_t>(count_));
      batch.labels.push_back(label(position));
      for (int64_t i = 0; i < batch.shape.pixels(); ++i) {
        batch.images.push_back(static_cast<float>(2 * random_uniform(17, position, static_cast<uint64_t>(i)) - 1));
      }
    }
    return batch;
  }
  int64_t label(uint64_t position) const {
    return static_cast<int64_t>(random_below(static_cast<uint64_t>(config_.classes), 18, position, 0));
  }
  at::Tensor images(int64_t rows) const {
    data::Batch all = batch(0, rows);
    return at::from_blob(all.images.data(), {rows, config_.channels, config_.image, config_.image}, at::kFloat).clone();
  }

 private:
  models::ModelConfig config_;
  int64_t count_;
};

// A model of `family`, perturbed so that nothing in it is zero.
template <class Family>
struct SmallImageModel {
  explicit SmallImageModel(models::Family family, int64_t classes = 7) {
    config = models::small_family(family, "siamese");
    config.classes = classes;
    owner = models::make_small(config);
    models::perturb(*owner);
  }
  const Family& get() const { return dynamic_cast<const Family&>(*owner); }

  models::ModelConfig config;
  std::unique_ptr<models::Model> owner;
};

struct SmallVit : SmallImageModel<models::VisionTransformer> {
  explicit SmallVit(int64_t classes = 7) : SmallImageModel(models::Family::vit, classes) {}
  // logits = bias, whatever the image.
  void always(const std::vector<float>& logits) const {
    const c10::NoGradGuard no_grad;
    owner->parameters().find("head.weight")->value.zero_();
    for (size_t i = 0; i < logits.size(); ++i) {
      owner->parameters().find("head.bias")->value[static_cast<int64_t>(i)] = logits[i];
    }
  }
};

struct SmallDit : SmallImageModel<models::DiffusionTransformer> {
  explicit SmallDit(int64_t classes = 7) : SmallImageModel(models::Family::dit, classes) {}
};

}  // namespace siamese::eval

#include "siamese/data/images.h"

#include "siamese/base/random.h"
#include "siamese/data/augment.h"
#include "siamese/data/pixels.h"
#include "siamese/data/rand_augment.h"
#include "siamese/data/resize.h"

namespace siamese::data {
namespace {

class ImageSamples : public LabelledSamples {
 public:
  ImageSamples(std::unique_ptr<ImageSet> set, Fit fit, const DataConfig& config, Split split, const SampleShape& shape,
               uint64_t seed)
      : set_(std::move(set)),
        fit_(fit),
        shape_(shape),
        scale_(config.normalize, shape.channels),
        seed_(seed ^ hash_text("data.images.augment")) {
    if (split == Split::train) augment_ = config.augment;
  }

  int64_t size() const override { return set_->size(); }
  std::string describe() const override { return set_->describe(); }

  int64_t sample(uint64_t index, uint64_t position, std::span<float> out) const override {
    const LabelledImage labelled = set_->read(index);
    Draws draws(seed_, position);
    io::Image image = cropped(labelled.image, draws);
    if (augment_.flip && draws.chance(0.5)) image = flipped(image);
    image = rand_augment(std::move(image), augment_, draws);
    scale_.to_floats(with_channels(image, shape_.channels), out);
    if (augment_.erase > 0) erase_part(out, shape_.channels, shape_.image, augment_.erase, draws);
    return labelled.label;
  }

 private:
  io::Image cropped(const io::Image& image, Draws& draws) const {
    const int64_t size = shape_.image;
    if (augment_.crop == Crop::resized) {
      return resize(image, random_part(image.width, image.height, draws), size, size, /*inside=*/true);
    }
    const bool fits = image.width == size && image.height == size;
    io::Image fitted = fits || fit_ == Fit::whole ? resize(image, size, size) : center_crop(image, size);
    if (augment_.crop == Crop::none) return fitted;
    const auto most = static_cast<int>(size / 8);
    const int x = draws.below(2 * most + 1) - most;
    const int y = draws.below(2 * most + 1) - most;
    return shifted(fitted, x, y);
  }

  std::unique_ptr<ImageSet> set_;
  Fit fit_;
  SampleShape shape_;
  PixelScale scale_;
  uint64_t seed_;
  AugmentConfig augment_;  // everything off for the test side
};

}  // namespace

std::unique_ptr<LabelledSamples> image_samples(std::unique_ptr<ImageSet> set, Fit fit, const DataConfig& config,
                                               Split split, const SampleShape& shape, uint64_t seed) {
  return std::make_unique<ImageSamples>(std::move(set), fit, config, split, shape, seed);
}

}  // namespace siamese::data

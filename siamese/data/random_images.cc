#include "siamese/data/random_images.h"

#include <algorithm>

#include "siamese/data/draws.h"

namespace siamese::data {
namespace {

class RandomImages : public LabelledSamples {
 public:
  RandomImages(const SampleShape& shape, uint64_t seed) : classes_(static_cast<int>(shape.classes)), seed_(seed) {}

  int64_t size() const override { return 0; }
  std::string describe() const override { return "random images"; }
  int64_t sample(uint64_t index, uint64_t /*position*/, std::span<float> out) const override {
    Draws draws(seed_, index);
    const int64_t label = draws.below(classes_);
    // Values of 8 bits, as those of photographs, four of a word: a benchmark's data are to cost next to nothing.
    for (size_t i = 0; i < out.size(); i += 4) {
      const uint32_t word = draws.word();
      for (size_t k = 0; k < std::min<size_t>(4, out.size() - i); ++k) {
        out[i + k] = static_cast<float>(word >> (8 * k) & 255) / 127.5F - 1;
      }
    }
    return label;
  }

 private:
  int classes_;
  uint64_t seed_;
};

}  // namespace

std::unique_ptr<LabelledSamples> random_images(const SampleShape& shape, uint64_t seed) {
  return std::make_unique<RandomImages>(shape, seed);
}

}  // namespace siamese::data

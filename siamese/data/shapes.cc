#include "siamese/data/shapes.h"

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/random.h"
#include "siamese/data/shape_outlines.h"
#include "siamese/data/shape_render.h"

namespace siamese::data {
namespace {

class ShapeSet : public ImageSet {
 public:
  ShapeSet(const DataConfig& config, Split split, int64_t size, uint64_t seed)
      : split_(split), test_fraction_(config.test_fraction), size_(size) {
    if (split == Split::train) count_ = config.limit;
    const bool fixed = split == Split::test || count_ > 0;
    seed_ = fixed ? hash_text("data.shapes.fixed") : seed ^ hash_text("data.shapes");
    check_split();
  }

  int64_t size() const override { return count_; }
  LabelledImage read(uint64_t index) const override {
    const Scene scene = draw_scene(split_, test_fraction_, seed_, index);
    return {render(scene, size_), scene.outline.kind};
  }
  std::string describe() const override {
    return fmt::format("shapes {}: {} classes of {} x {} pixels, {}", split_ == Split::train ? "train" : "test",
                       kShapeClasses, size_, size_, count_ > 0 ? fmt::format("{} images", count_) : "endless");
  }

 private:
  // A fraction so near 0 or 1 that a class has no outline on this side would be drawn for ever.
  void check_split() const {
    for (int kind = 0; kind < kShapeClasses; ++kind) {
      bool found = false;
      for (int i = 0; i < kPlaces * kPlaces * kSizes && !found; ++i) {
        const Outline outline{
            .kind = kind, .column = i % kPlaces, .row = i / kPlaces % kPlaces, .size = i / kPlaces / kPlaces};
        found = side_of(outline, test_fraction_) == split_;
      }
      if (!found) {
        throw UsageError(fmt::format("data.test_fraction: {} leaves no {} outlines of one class", test_fraction_,
                                     split_ == Split::train ? "training" : "test"));
      }
    }
  }

  Split split_;
  double test_fraction_;
  int64_t size_;
  int64_t count_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace

std::vector<std::string> shape_names() {
  std::vector<std::string> names;
  for (const auto& kind : kOutlines) names.emplace_back(kind.name);
  return names;
}

std::unique_ptr<ImageSet> shape_set(const DataConfig& config, Split split, int64_t size, uint64_t seed) {
  return std::make_unique<ShapeSet>(config, split, size, seed);
}

}  // namespace siamese::data

// How training images are varied: the `data.augment` section. Everything is off by default.
//   a row:   crop -> flip -> RandAugment -> floats -> erase        (the order of timm and DeiT)
//   a batch: mixup or cutmix of row i with row rows - 1 - i, label smoothing
#pragma once

#include "siamese/base/enum_text.h"
#include "siamese/config/use.h"

namespace siamese::data {

enum class Crop { none, shift, resized };

// What changes a picture needs pictures; what mixes samples takes random ones, too.
config::Use of_pixels();
config::Use of_samples();

struct AugmentConfig {
  Crop crop = Crop::none;
  bool flip = false;
  double erase = 0;
  int operations = 0;
  double magnitude = 9;
  double magnitude_std = 0.5;
  double mixup = 0;
  double cutmix = 0;
  double mix = 1;
  double switch_ = 0.5;
  double smoothing = 0;
  int repeats = 1;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    using config::with;
    visit("crop", self.crop, {"shift: move by up to 1/8; resized: a random part of 8 % to all, resized", of_pixels()});
    visit("flip", self.flip, {"mirror left and right with probability 1/2", of_pixels()});
    visit("erase", self.erase, {"probability of replacing a random box by noise", of_pixels()});
    visit("operations", self.operations, {"RandAugment: operations per image; 0 = off", of_pixels()});
    visit("magnitude", self.magnitude,
          {"RandAugment: strength, 0 to 10", of_pixels(), with({"data.augment.operations"})});
    visit("magnitude_std", self.magnitude_std,
          {"RandAugment: standard deviation of the strength", of_pixels(), with({"data.augment.operations"})});
    visit("mixup", self.mixup, {"mixup: parameter of its Beta distribution; 0 = off", of_samples()});
    visit("cutmix", self.cutmix, {"cutmix: parameter of its Beta distribution; 0 = off", of_samples()});
    visit("mix", self.mix,
          {"probability that a batch is mixed", of_samples(), with({"data.augment.mixup", "data.augment.cutmix"})});
    visit("switch", self.switch_,
          {"probability of cutmix where both are on", of_samples(), with({"data.augment.mixup"}),
           with({"data.augment.cutmix"})});
    visit("smoothing", self.smoothing, {"label smoothing: share of the target spread over all classes", of_samples()});
    visit("repeats", self.repeats, {"repeated augmentation: each image comes this many times in a row", of_samples()});
  }
};

// UsageError naming the key when a value is out of range.
void check(const AugmentConfig& config);

}  // namespace siamese::data

namespace siamese {

template <>
struct EnumText<data::Crop> {
  static constexpr EnumNames<data::Crop, 3> names{{
      {data::Crop::none, "none"},
      {data::Crop::shift, "shift"},
      {data::Crop::resized, "resized"},
  }};
};

}  // namespace siamese

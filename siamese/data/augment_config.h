// How training images are varied: the `data.augment` section. Everything is off by default.
//   a row:   crop -> flip -> RandAugment -> floats -> erase        (the order of timm and DeiT)
//   a batch: mixup or cutmix of row i with row rows - 1 - i, label smoothing
#pragma once

#include "siamese/base/enum_text.h"

namespace siamese::data {

enum class Crop { none, shift, resized };

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
    visit("crop", self.crop, "shift: move by up to 1/8; resized: a random part of 8 % to all, resized");
    visit("flip", self.flip, "mirror left and right with probability 1/2");
    visit("erase", self.erase, "probability of replacing a random box by noise");
    visit("operations", self.operations, "RandAugment: operations per image; 0 = off");
    visit("magnitude", self.magnitude, "RandAugment: strength, 0 to 10");
    visit("magnitude_std", self.magnitude_std, "RandAugment: standard deviation of the strength");
    visit("mixup", self.mixup, "mixup: parameter of its Beta distribution; 0 = off");
    visit("cutmix", self.cutmix, "cutmix: parameter of its Beta distribution; 0 = off");
    visit("mix", self.mix, "probability that a batch is mixed (mixup or cutmix)");
    visit("switch", self.switch_, "probability of cutmix where both are on");
    visit("smoothing", self.smoothing, "label smoothing: share of the target spread over all classes");
    visit("repeats", self.repeats, "repeated augmentation: each image comes this many times in a row");
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

#include "siamese/data/rand_augment.h"

#include <algorithm>
#include <cmath>

#include "siamese/data/color_ops.h"
#include "siamese/data/geometry_ops.h"

namespace siamese::data {

io::Image apply(const io::Image& image, Operation operation, double magnitude, double sign) {
  const double share = magnitude / 10;
  const double factor = std::max(0.1, 1 + sign * 0.9 * share);
  switch (operation) {
    case Operation::auto_contrast:
      return auto_contrast(image);
    case Operation::equalize:
      return equalize(image);
    case Operation::invert:
      return invert(image);
    case Operation::rotate:
      return rotate(image, sign * 30 * share);
    case Operation::posterize:
      return posterize(image, 4 - static_cast<int>(4 * share));
    case Operation::solarize:
      return solarize(image, 256 - static_cast<int>(256 * share));
    case Operation::solarize_add:
      return solarize_add(image, static_cast<int>(110 * share));
    case Operation::color:
      return color(image, factor);
    case Operation::contrast:
      return contrast(image, factor);
    case Operation::brightness:
      return brightness(image, factor);
    case Operation::sharpness:
      return sharpness(image, factor);
    case Operation::shear_x:
      return shear_x(image, sign * 0.3 * share);
    case Operation::shear_y:
      return shear_y(image, sign * 0.3 * share);
    case Operation::translate_x:
      return translate(image, sign * 0.45 * share * static_cast<double>(image.width), 0);
    case Operation::translate_y:
      break;
  }
  return translate(image, 0, sign * 0.45 * share * static_cast<double>(image.height));
}

io::Image rand_augment(io::Image image, const AugmentConfig& config, Draws& draws) {
  for (int i = 0; i < config.operations; ++i) {
    const auto operation = static_cast<Operation>(draws.below(kOperations));
    const bool done = draws.chance(0.5);
    const double magnitude = std::clamp(config.magnitude + config.magnitude_std * draws.normal(), 0.0, 10.0);
    const double sign = draws.chance(0.5) ? 1 : -1;
    if (done) image = apply(image, operation, magnitude, sign);
  }
  return image;
}

}  // namespace siamese::data

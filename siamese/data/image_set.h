// Labelled images by index: what every image source is before order, augmentation and batches.
#pragma once

#include <cstdint>
#include <string>

#include "siamese/io/image.h"

namespace siamese::data {

struct LabelledImage {
  io::Image image;
  int64_t label = 0;
};

class ImageSet {
 public:
  virtual ~ImageSet() = default;
  // 0 = endless: every index is an image.
  virtual int64_t size() const = 0;
  // Safe to call from several threads. DataError naming the file when it cannot be read.
  virtual LabelledImage read(uint64_t index) const = 0;
  // One line for the log.
  virtual std::string describe() const = 0;
};

}  // namespace siamese::data

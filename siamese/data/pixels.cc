#include "siamese/data/pixels.h"

#include "siamese/base/check.h"

namespace siamese::data {
namespace {

struct Moments {
  double mean;
  double std;
};

Moments moments_of(Normalize normalize, int64_t channels, size_t channel) {
  if (normalize == Normalize::symmetric) return {0.5, 0.5};
  constexpr std::array<Moments, 3> kImageNet = {{{0.485, 0.229}, {0.456, 0.224}, {0.406, 0.225}}};
  return channels == 3 ? kImageNet[channel] : Moments{0.449, 0.226};
}

}  // namespace

io::Image with_channels(const io::Image& image, int64_t channels) {
  if (image.channels == channels) return image;
  SIAMESE_INVARIANT((image.channels == 3 && channels == 1) || (image.channels == 1 && channels == 3));
  io::Image out(image.width, image.height, channels);
  const auto count = static_cast<size_t>(image.width * image.height);
  for (size_t i = 0; i < count; ++i) {
    if (channels == 3) {
      for (size_t c = 0; c < 3; ++c) out.pixels[3 * i + c] = image.pixels[i];
    } else {
      const uint8_t* p = image.pixels.data() + 3 * i;
      out.pixels[i] = static_cast<uint8_t>((299 * p[0] + 587 * p[1] + 114 * p[2] + 500) / 1000);
    }
  }
  return out;
}

PixelScale::PixelScale(Normalize normalize, int64_t channels) {
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    const Moments moments = moments_of(normalize, channels, c);
    for (size_t v = 0; v < 256; ++v) {
      table_[c][v] = static_cast<float>((static_cast<double>(v) / 255 - moments.mean) / moments.std);
    }
  }
}

void PixelScale::to_floats(const io::Image& image, std::span<float> out) const {
  SIAMESE_INVARIANT(out.size() == image.pixels.size());
  const auto channels = static_cast<size_t>(image.channels);
  const size_t count = image.pixels.size() / channels;
  for (size_t c = 0; c < channels; ++c) {
    for (size_t i = 0; i < count; ++i) out[c * count + i] = table_[c][image.pixels[i * channels + c]];
  }
}

}  // namespace siamese::data

// A config with every field type, for the tests of this room.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "siamese/config/fields.h"

namespace siamese::sample {

enum class Shade { light, dark };

struct Layer {
  int64_t width = 64;
  std::string name = "plain";
  bool operator==(const Layer&) const = default;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("width", self.width, "columns");
    visit("name", self.name, "");
  }
};

struct Sample {
  bool flag = false;
  int count = 3;
  int64_t big = -5;
  uint64_t seed = 1;
  double rate = 1e-3;
  std::string text = "hello";
  Shade shade = Shade::light;
  std::vector<std::string> names = {"a", "b"};
  std::vector<double> rates;
  std::vector<Shade> shades;
  std::vector<Layer> layers;
  Layer layer;
  bool operator==(const Sample&) const = default;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("flag", self.flag, "a switch");
    visit("count", self.count, "");
    visit("big", self.big, "");
    visit("seed", self.seed, "");
    visit("rate", self.rate, "peak rate");
    visit("text", self.text, "");
    visit("shade", self.shade, "how dark");
    visit("names", self.names, "");
    visit("rates", self.rates, "");
    visit("shades", self.shades, "");
    visit("layers", self.layers, "");
    visit("layer", self.layer, "");
  }
};

}  // namespace siamese::sample

namespace siamese {

template <>
struct EnumText<sample::Shade> {
  static constexpr EnumNames<sample::Shade, 2> names{{{sample::Shade::light, "light"}, {sample::Shade::dark, "dark"}}};
};

}  // namespace siamese

namespace siamese::sample {

// What a statement throws as UsageError, or "nothing thrown".
template <class Run>
std::string usage_error(Run run) {
  try {
    run();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing thrown";
}

}  // namespace siamese::sample

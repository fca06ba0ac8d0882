// Weight initialisation rules (all normals cut at `cut` std), L = blocks, l = block index, d = width:
//   full_megatron: everything s, branch outputs s / sqrt(2L), untied head 1 / sqrt(d); s = sqrt(2 / (5 d)) unless set
//   mitchell:      everything s = 1 / sqrt(d) unless set, branch outputs 1 / sqrt(2 fan_in (l + 1))
//   normal:        everything s = 0.02 unless set
//   xavier:        matrices uniform in +-sqrt(6 / (fan_in + fan_out)), tables and heads normal with s = 0.02 unless set
// Factors on top may be asked for (InitFactors).
#pragma once

#include <cstdint>

#include "siamese/base/enum_text.h"
#include "siamese/nn/parameters.h"

namespace siamese::nn {

enum class InitRule { full_megatron, mitchell, normal, xavier };

struct InitConfig {
  InitRule rule = InitRule::full_megatron;
  double std = 0;
  double cut = 3;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("rule", self.rule, "how weights start");
    visit("std", self.std, "standard deviation of the rule; 0 takes the rule's own");
    visit("cut", self.cut, "normals are cut at this many standard deviations; 0 leaves them uncut");
  }
};

// Factors on what the rule gives the projections of one part.
struct InitFactors {
  double input = 1;          // attention: on the value projection; feed-forward: on the input projections
  double output = 1;         // on the projection back to the width of the model
  bool depth_factor = true;  // whether the rule's own factor of depth applies to that
};

// The rule for one model.
class Initializer {
 public:
  Initializer(const InitConfig& config, int64_t width, int64_t blocks);

  Init embedding() const;
  Init head() const;
  Init input_projection(int64_t fan_in, int64_t fan_out) const;
  // The projection back to the stream, in block `block`.
  Init output_projection(int64_t fan_in, int64_t fan_out, int64_t block, bool depth_factor) const;

 private:
  Init normal(double std) const { return Init::normal(std, cut_); }

  InitRule rule_;
  double std_;
  double cut_;
  double width_;
  double blocks_;
};

}  // namespace siamese::nn

template <>
struct siamese::EnumText<siamese::nn::InitRule> {
  static constexpr EnumNames<nn::InitRule, 4> names{{{nn::InitRule::full_megatron, "full_megatron"},
                                                     {nn::InitRule::mitchell, "mitchell"},
                                                     {nn::InitRule::normal, "normal"},
                                                     {nn::InitRule::xavier, "xavier"}}};
};

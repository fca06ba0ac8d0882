// How a model is evaluated: the `eval` section of a config.
#pragma once

#include <cstdint>
#include <string>

#include "siamese/eval/diffusion_sampler.h"

namespace siamese::eval {

struct EvalConfig {
  int64_t batches = 8;
  int64_t problems = 50;
  bool averaged = false;
  int64_t samples = 0;
  SamplerKind sampler = SamplerKind::ddim;
  int64_t sampler_steps = 50;
  double guidance = 1;
  std::string classifier;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("batches", self.batches,
          "held-out batches (of train.batch samples) for the loss; at most the whole held-out set");
    visit("problems", self.problems,
          "arithmetic: test problems per operation and digit count for exact match; 0 = none");
    visit("averaged", self.averaged, "evaluate the averaged weights (train.ema) instead of the trained ones");
    visit("samples", self.samples, "dit: images drawn at each evaluation, the first 64 of them as a picture; 0 = none");
    visit("sampler", self.sampler, "dit: how images are drawn");
    visit("sampler_steps", self.sampler_steps, "dit: steps of the sampler");
    visit("guidance", self.guidance, "dit: classifier-free guidance; 1 = none");
    visit("classifier", self.classifier,
          "dit: a vit run or checkpoint that compares drawn and held-out images (feature distance)");
  }

  SamplerOptions sampler_options() const { return {.kind = sampler, .steps = sampler_steps, .guidance = guidance}; }
};

}  // namespace siamese::eval

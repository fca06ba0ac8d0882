// How a model is evaluated: the `eval` section of a config.
#pragma once

#include <cstdint>
#include <string>

#include "siamese/data/config.h"
#include "siamese/eval/diffusion_sampler.h"
#include "siamese/models/config.h"

namespace siamese::eval {

inline config::Use for_dit() { return models::for_family({models::Family::dit}); }

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
          {"test problems per operation and digit count for exact match; 0 = none",
           data::of({data::Source::arithmetic})});
    visit("averaged", self.averaged,
          {"evaluate the averaged weights instead of the trained ones", config::with({"train.ema"})});
    visit("samples", self.samples,
          {"images drawn at each evaluation, the first 64 of them as a picture; 0 = none", for_dit()});
    visit("sampler", self.sampler, {"how images are drawn", for_dit(), config::with({"eval.samples"})});
    visit("sampler_steps", self.sampler_steps, {"steps of the sampler", for_dit(), config::with({"eval.samples"})});
    visit("guidance", self.guidance, {"classifier-free guidance; 1 = none", for_dit(), config::with({"eval.samples"})});
    visit("classifier", self.classifier,
          {"a vit run or checkpoint that compares drawn and held-out images (feature distance)", for_dit(),
           config::with({"eval.samples"})});
  }

  SamplerOptions sampler_options() const { return {.kind = sampler, .steps = sampler_steps, .guidance = guidance}; }
};

}  // namespace siamese::eval

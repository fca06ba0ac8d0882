// How a model is evaluated: the `eval` section of a config.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "siamese/data/config.h"
#include "siamese/eval/diffusion_sampler.h"
#include "siamese/models/config.h"

namespace siamese::eval {

inline config::Use for_dit() { return models::for_family({models::Family::dit}); }

struct EvalConfig {
  int64_t held_out = 256;
  int64_t batches = 0;
  int64_t problems = 50;
  std::vector<std::string> prompts;
  int64_t prompt_tokens = 48;
  bool averaged = false;
  int64_t samples = 0;
  SamplerKind sampler = SamplerKind::ddim;
  int64_t sampler_steps = 50;
  double guidance = 1;
  std::string classifier;
  std::vector<std::string> tasks;
  int64_t task_limit = 0;
  std::string tokenizer;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("held_out", self.held_out,
          {"held-out samples (windows or images) for the loss, evenly spread over the set; at most all of it",
           config::without("eval.batches")});
    visit("batches", self.batches,
          "as runs before 0.2: instead of eval.held_out the first so many x train.batch held-out samples; 0 = off");
    visit("problems", self.problems,
          {"test problems per operation and digit count for exact match; 0 = none",
           data::of({data::Source::arithmetic})});
    visit("prompts", self.prompts,
          {"texts that are continued at each evaluation, greedily, to be read in eval.jsonl and the report",
           models::for_text()});
    visit("prompt_tokens", self.prompt_tokens,
          {"most tokens of each continuation", models::for_text(), config::with({"eval.prompts"})});
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
    visit("tasks", self.tasks,
          {"folders of evaluation requests (docs/tasks.md) that are asked at each evaluation", models::for_text()});
    visit("task_limit", self.task_limit,
          {"only the first so many documents of each task; 0 = all", models::for_text(), config::with({"eval.tasks"})});
    visit("tokenizer", self.tokenizer,
          {"tokenizer.json that turns tasks into tokens, or a folder that has one; empty = that of the run",
           models::for_text(), config::with({"eval.tasks"})});
  }

  // With steps of `batch` samples.
  int64_t held_out_samples(int64_t batch) const { return batches > 0 ? batches * batch : held_out; }

  SamplerOptions sampler_options() const { return {.kind = sampler, .steps = sampler_steps, .guidance = guidance}; }
};

}  // namespace siamese::eval

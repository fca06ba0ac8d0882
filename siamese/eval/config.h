// How a model is evaluated: the `eval` section of a config.
#pragma once

#include <cstdint>

namespace siamese::eval {

struct EvalConfig {
  int64_t batches = 8;
  int64_t problems = 50;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("batches", self.batches,
          "held-out batches (of train.batch samples) for the loss; at most the whole held-out set");
    visit("problems", self.problems,
          "arithmetic: test problems per operation and digit count for exact match; 0 = none");
  }
};

}  // namespace siamese::eval

// Autoregressive generation: the prompt in one pass, then one token at a time with cached keys and values.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "siamese/models/lm.h"

namespace siamese::eval {

struct Sampling {
  int64_t max_tokens = 64;
  double temperature = 0;  // 0 = greedy
  int64_t top_k = 0;       // 0 = all
  double top_p = 1;        // smallest set of tokens whose probability reaches this
  uint64_t seed = 0;
};

// The token drawn from `logits` (double, one per token) as the index-th draw of the seed.
int64_t sample_token(std::vector<double> logits, const Sampling& sampling, uint64_t index);

// `emit` gets each new token and returns false to stop. Stops at max_tokens or when the context is full.
// UsageError when the prompt is empty, has a token the model lacks, or is longer than the context.
void generate(const models::LanguageModel& model, const std::vector<int64_t>& prompt, const Sampling& sampling,
              const std::function<bool(int64_t token)>& emit);

}  // namespace siamese::eval

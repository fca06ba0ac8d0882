// Autoregressive generation: each prompt in one pass, then one token of every sequence at a time with cached keys and
// values.
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

// Which draw of the seed the made-th token of a sequence is: those of several sequences do not meet.
uint64_t draw_index(size_t sequence, int64_t made);

// Why it ended: all that was asked for was made, or the model knows no further position.
enum class Ended { done, context_full };

// UsageError, which begins with `name`, when a prompt is empty, has a token the model lacks, or is longer than the
// context.
void check_prompt(const models::ModelConfig& config, const std::vector<int64_t>& prompt, const std::string& name);

// Continues one or several prompts, of any lengths, together: each token of the batch reads the weights once. `emit`
// gets each new token with the index of its sequence and returns false to end that one; max_tokens ends all. Sequence i
// draws its tokens as if it were alone with draws of its own; sequence 0 as generation of one prompt does. (To the bit
// for up to eight sequences; more are multiplied by the library's product, whose sums are rounded otherwise, so that a
// token at a near tie may fall to the other.) Past the context a model with rotary positions slides: a token attends to
// the last `context` tokens, itself among them. One with learned positions ends there. UsageError when a prompt is
// empty, has a token the model lacks, or is longer than the context.
Ended generate(const models::LanguageModel& model, const std::vector<std::vector<int64_t>>& prompts,
               const Sampling& sampling, const std::function<bool(size_t sequence, int64_t token)>& emit);

// One prompt.
Ended generate(const models::LanguageModel& model, const std::vector<int64_t>& prompt, const Sampling& sampling,
               const std::function<bool(int64_t token)>& emit);

}  // namespace siamese::eval

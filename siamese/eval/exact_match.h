// Exact-match accuracy of greedy answers to held-out arithmetic problems, by operation and digit count.
// Greedy decoding gives exactly the right answer if and only if, fed the right answer, every next-token argmax along it
// is right; so one forward pass per batch of problems decides, without a decoding loop.
#pragma once

#include <cstdint>
#include <vector>

#include "siamese/data/arithmetic.h"
#include "siamese/models/lm.h"

namespace siamese::eval {

struct MatchGroup {
  char operation = '+';
  int digits = 1;
  int64_t correct = 0;
  int64_t count = 0;
};

// Whether the greedy answer to each problem is exactly right.
std::vector<bool> answered_exactly(const models::LanguageModel& model, const std::vector<data::Problem>& problems);

std::vector<MatchGroup> exact_match(const models::LanguageModel& model, const data::DataConfig& config,
                                    int64_t problems_per_group, uint64_t seed);

}  // namespace siamese::eval

// Log-likelihoods of continuations, the questions of a document together:
//   log p(last `scored` tokens | tokens before them) = sum over them of log softmax(logits)
// What all queries begin with (the examples of a few-shot prompt) is computed once, then what the queries of one group
// begin with (the question), then the rest of each (its answer), all after cached keys and values. A result does not
// depend on what else is asked, but for rounding: the sums of a product may be rounded otherwise in another batch.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "siamese/models/lm.h"

namespace siamese::eval {

struct Query {
  std::vector<int64_t> tokens;  // at most context + 1: the last one is never read
  int64_t scored = 0;           // from 1 to tokens.size() - 1
};

// By OLMo's rules: where context and continuation are too long the context is cut from its left. nullopt when the
// continuation alone does not fit into `longest` tokens, or there is no context.
std::optional<Query> make_query(std::span<const int64_t> context, std::span<const int64_t> continuation,
                                int64_t longest);

using QueryGroup = std::vector<Query>;

// Indices of groups that are computed together, from short to long; a function of the groups alone.
std::vector<std::vector<size_t>> batches_of(const std::vector<QueryGroup>& groups, int64_t context);

class LikelihoodScorer {
 public:
  // Computes what all groups begin with. They and the model must outlive it.
  LikelihoodScorer(const models::LanguageModel& model, const std::vector<QueryGroup>& groups);

  // Of every query of these groups. DataError when the model gives numbers that are not finite.
  std::vector<std::vector<double>> score(const std::vector<size_t>& indices) const;

 private:
  // What the groups of a batch begin with, each a sequence of the cache.
  models::LmCache read_beginnings(const std::vector<size_t>& indices) const;

  const models::LanguageModel& model_;
  const std::vector<QueryGroup>& groups_;
  std::span<const int64_t> common_;  // what all queries begin with
  models::LmCache cache_;            // of it
};

}  // namespace siamese::eval

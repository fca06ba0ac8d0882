// Everything `eval` reports of a model: held-out loss and, for arithmetic, exact-match accuracy.
#pragma once

#include <string>
#include <vector>

#include "siamese/data/config.h"
#include "siamese/eval/config.h"
#include "siamese/eval/exact_match.h"
#include "siamese/eval/held_out.h"

namespace siamese::eval {

struct Evaluation {
  int64_t step = 0;
  HeldOut held_out;
  std::vector<MatchGroup> groups;  // empty: not arithmetic

  int64_t correct() const;
  int64_t problems() const;
  double accuracy() const;  // 0 when there are no problems
};

// config.batches x `batch` samples, `rows` of them in one forward pass. Test samples and problems do not depend on the
// run's seed: all runs answer the same questions.
Evaluation evaluate(const models::Model& model, const data::DataConfig& data, const data::Dataset& held_out,
                    const EvalConfig& config, int64_t context, int64_t batch, int64_t rows, int64_t step);

// One line of eval.jsonl (schema 1).
std::string to_json(const Evaluation& evaluation);

}  // namespace siamese::eval

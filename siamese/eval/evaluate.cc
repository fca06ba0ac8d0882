#include "siamese/eval/evaluate.h"

#include <nlohmann/json.hpp>

namespace siamese::eval {
namespace {

constexpr uint64_t kProblemSeed = 2602;  // which test problems are asked

}  // namespace

int64_t Evaluation::correct() const {
  int64_t total = 0;
  for (const auto& group : groups) total += group.correct;
  return total;
}

int64_t Evaluation::problems() const {
  int64_t total = 0;
  for (const auto& group : groups) total += group.count;
  return total;
}

double Evaluation::accuracy() const {
  return problems() > 0 ? static_cast<double>(correct()) / static_cast<double>(problems()) : 0;
}

Evaluation evaluate(const models::Model& model, const data::DataConfig& data, const data::Dataset& held_out,
                    const EvalConfig& config, int64_t context, int64_t batch, int64_t rows, int64_t step) {
  Evaluation result;
  result.step = step;
  result.held_out = held_out_loss(model, held_out, context, rows, batch * config.batches);
  const auto* const lm = dynamic_cast<const models::LanguageModel*>(&model);
  if (lm != nullptr && data.source == data::Source::arithmetic && config.problems > 0) {
    result.groups = exact_match(*lm, data, config.problems, kProblemSeed);
  }
  return result;
}

std::string to_json(const Evaluation& evaluation) {
  nlohmann::ordered_json line;
  line["schema"] = 1;
  line["step"] = evaluation.step;
  line["loss"] = evaluation.held_out.loss;
  line["perplexity"] = evaluation.held_out.perplexity;
  line["tokens"] = static_cast<int64_t>(evaluation.held_out.targets);
  if (!evaluation.groups.empty()) {
    auto groups = nlohmann::ordered_json::array();
    for (const auto& group : evaluation.groups) {
      groups.push_back({{"operation", std::string(1, group.operation)},
                        {"digits", group.digits},
                        {"correct", group.correct},
                        {"count", group.count}});
    }
    line["accuracy"] = {{"correct", evaluation.correct()}, {"count", evaluation.problems()}, {"groups", groups}};
  }
  return line.dump();
}

}  // namespace siamese::eval

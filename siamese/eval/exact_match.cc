#include "siamese/eval/exact_match.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/data/codec.h"
#include "siamese/ops/operand.h"

namespace siamese::eval {
namespace {

constexpr size_t kRows = 128;

}  // namespace

std::vector<bool> answered_exactly(const models::LanguageModel& model, const std::vector<data::Problem>& problems) {
  const c10::NoGradGuard no_grad;
  const ops::RoundWeightsOnce rounded;
  const auto codec = data::arithmetic_codec();
  std::vector<bool> results;
  for (size_t first = 0; first < problems.size(); first += kRows) {
    const size_t rows = std::min(kRows, problems.size() - first);
    std::vector<std::vector<int64_t>> texts;
    size_t longest = 0;
    for (size_t row = 0; row < rows; ++row) {
      texts.push_back(codec->encode(problems[first + row].prompt + problems[first + row].answer));
      longest = std::max(longest, texts.back().size());
    }
    // What follows an answer cannot reach back: the model is causal.
    const at::Tensor tokens =
        at::full({static_cast<int64_t>(rows), static_cast<int64_t>(longest)}, data::kArithmeticPad, at::kLong);
    auto cells = tokens.accessor<int64_t, 2>();
    for (size_t row = 0; row < rows; ++row) {
      for (size_t i = 0; i < texts[row].size(); ++i)
        cells[static_cast<int64_t>(row)][static_cast<int64_t>(i)] = texts[row][i];
    }
    const at::Tensor best = model.logits(model.hidden(tokens.narrow(1, 0, tokens.size(1) - 1))).argmax(-1).to(at::kCPU);
    const auto guess = best.accessor<int64_t, 2>();
    for (size_t row = 0; row < rows; ++row) {
      bool right = true;
      for (size_t i = problems[first + row].prompt.size(); i < texts[row].size(); ++i) {
        right = right && guess[static_cast<int64_t>(row)][static_cast<int64_t>(i) - 1] == texts[row][i];
      }
      results.push_back(right);
    }
  }
  return results;
}

std::vector<MatchGroup> exact_match(const models::LanguageModel& model, const data::DataConfig& config,
                                    int64_t problems_per_group, uint64_t seed) {
  std::vector<MatchGroup> groups;
  for (const char operation : config.operations) {
    for (int digits = 1; digits <= config.digits; ++digits) {
      const auto problems = data::test_problems(config, operation, digits, problems_per_group, seed);
      const auto right = answered_exactly(model, problems);
      groups.push_back(
          {operation, digits, std::count(right.begin(), right.end(), true), static_cast<int64_t>(problems.size())});
    }
  }
  return groups;
}

}  // namespace siamese::eval

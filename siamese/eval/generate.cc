#include "siamese/eval/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/base/random.h"
#include "siamese/ops/operand.h"

namespace siamese::eval {
namespace {

constexpr uint64_t kStream = 0x67656e;  // the random stream of generation

std::vector<double> last_logits(const models::LanguageModel& model, const at::Tensor& tokens, models::LmCache& cache) {
  const at::Tensor state = model.hidden(tokens, {}, &cache);
  const at::Tensor logits = model.logits(state.select(1, state.size(1) - 1)).to(at::kCPU, at::kDouble).contiguous();
  const double* const data = logits.const_data_ptr<double>();
  return {data, data + logits.size(-1)};
}

}  // namespace

int64_t sample_token(std::vector<double> logits, const Sampling& sampling, uint64_t index) {
  if (!std::all_of(logits.begin(), logits.end(), [](double logit) { return std::isfinite(logit); })) {
    throw DataError("generate: the model gives logits that are not finite");
  }
  const auto best = std::max_element(logits.begin(), logits.end());
  if (sampling.temperature <= 0) return best - logits.begin();
  const double top = *best;
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  if (sampling.top_k > 0 && static_cast<size_t>(sampling.top_k) < order.size()) {
    order.resize(static_cast<size_t>(sampling.top_k));
  }
  std::vector<double> weights;
  for (const size_t token : order) weights.push_back(std::exp((logits[token] - top) / sampling.temperature));
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  double kept = 0;
  size_t count = 0;
  while (count < weights.size() && (count == 0 || kept < sampling.top_p * all)) kept += weights[count++];
  double left = random_uniform(sampling.seed, kStream, index) * kept;
  for (size_t i = 0; i < count; ++i) {
    left -= weights[i];
    if (left <= 0) return static_cast<int64_t>(order[i]);
  }
  return static_cast<int64_t>(order[count - 1]);
}

void generate(const models::LanguageModel& model, const std::vector<int64_t>& prompt, const Sampling& sampling,
              const std::function<bool(int64_t)>& emit) {
  const c10::NoGradGuard no_grad;
  const ops::RoundWeightsOnce rounded;
  const int64_t context = model.config().context;
  const auto length = static_cast<int64_t>(prompt.size());
  if (!(sampling.temperature >= 0) || !(sampling.top_p > 0)) {
    throw UsageError("--temperature: expected a number >= 0; --top-p: a number in (0, 1]");
  }
  if (prompt.empty()) throw UsageError("--prompt: expected at least one token, got none");
  if (length > context) {
    throw UsageError("--prompt: expected at most " + std::to_string(context) + " tokens (model.context), got " +
                     std::to_string(length));
  }
  for (const int64_t token : prompt) {
    if (token < 0 || token >= model.config().vocab) {
      throw UsageError("--prompt: expected tokens below model.vocab (" + std::to_string(model.config().vocab) +
                       "), got " + std::to_string(token));
    }
  }
  models::LmCache cache = model.make_cache(1, std::min(context, length + sampling.max_tokens));
  at::Tensor next = at::empty({1, length}, at::kLong);
  std::copy(prompt.begin(), prompt.end(), next.mutable_data_ptr<int64_t>());
  for (int64_t made = 0; made < sampling.max_tokens; ++made) {
    const int64_t token = sample_token(last_logits(model, next, cache), sampling, static_cast<uint64_t>(made));
    if (!emit(token) || cache.past == cache.capacity) return;
    next = at::full({1, 1}, token, at::kLong);
  }
}

}  // namespace siamese::eval

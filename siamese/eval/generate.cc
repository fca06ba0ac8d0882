#include "siamese/eval/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "siamese/base/check.h"
#include "siamese/base/random.h"
#include "siamese/ops/operand.h"

namespace siamese::eval {
namespace {

constexpr uint64_t kStream = 0x67656e;  // the random stream of generation

constexpr uint64_t kDrawsOfASequence = uint64_t{1} << 40;

// The sequences that still go on.
class Batch {
 public:
  Batch(const models::LanguageModel& model, const std::vector<std::vector<int64_t>>& prompts, const Sampling& sampling)
      : model_(model), sampling_(sampling) {
    const int64_t context = model.config().context;
    int64_t longest = 0;
    for (const auto& prompt : prompts) longest = std::max(longest, static_cast<int64_t>(prompt.size()));
    cache_ = model.make_cache(static_cast<int64_t>(prompts.size()),
                              std::min(context, longest + std::min(sampling.max_tokens, context)),
                              model.config().positions == models::Positions::rope);
    for (size_t i = 0; i < prompts.size(); ++i) {
      sequences_.push_back(i);
      read_prompt(prompts, i);
    }
    logits_ = at::stack(last_);
  }

  // A token of each sequence, drawn from what is known of it; those that end leave. False when none is left.
  bool draw(int64_t made, const std::function<bool(size_t, int64_t)>& emit) {
    tokens_.clear();
    std::vector<int64_t> kept;
    const at::Tensor logits = logits_.to(at::kCPU, at::kDouble).contiguous();
    const int64_t vocab = logits.size(1);
    for (size_t i = 0; i < sequences_.size(); ++i) {
      const double* const row = logits.const_data_ptr<double>() + static_cast<int64_t>(i) * vocab;
      const int64_t token = sample_token({row, row + vocab}, sampling_, draw_index(sequences_[i], made));
      if (!emit(sequences_[i], token) || made + 1 == sampling_.max_tokens) continue;
      if (!cache_.slides && cache_.past[i] == model_.config().context) {
        ended_ = Ended::context_full;
        continue;
      }
      kept.push_back(static_cast<int64_t>(i));
      tokens_.push_back(token);
    }
    if (kept.size() < sequences_.size() && !kept.empty()) keep(kept);
    return !kept.empty();
  }

  Ended ended() const { return ended_; }

  void advance() {
    const at::Tensor next = at::empty({static_cast<int64_t>(tokens_.size()), 1}, at::kLong);
    std::copy(tokens_.begin(), tokens_.end(), next.mutable_data_ptr<int64_t>());
    logits_ = model_.logits(model_.hidden(next, {}, &cache_).select(1, 0));
  }

 private:
  // The same prompt as the one before it need not be computed again.
  void read_prompt(const std::vector<std::vector<int64_t>>& prompts, size_t i) {
    if (i > 0 && prompts[i] == prompts[i - 1]) {
      const models::LmCache from = cache_.sequence(i - 1), to = cache_.sequence(i);
      const auto length = static_cast<int64_t>(prompts[i].size());
      for (size_t layer = 0; layer < from.layers.size(); ++layer) {
        to.layers[layer].keys.narrow(2, 0, length).copy_(from.layers[layer].keys.narrow(2, 0, length));
        to.layers[layer].values.narrow(2, 0, length).copy_(from.layers[layer].values.narrow(2, 0, length));
      }
      cache_.past[i] = from.past[0];
      last_.push_back(last_.back());
      return;
    }
    const at::Tensor prompt = at::empty({1, static_cast<int64_t>(prompts[i].size())}, at::kLong);
    std::copy(prompts[i].begin(), prompts[i].end(), prompt.mutable_data_ptr<int64_t>());
    models::LmCache own = cache_.sequence(i);
    const at::Tensor state = model_.hidden(prompt, {}, &own);
    cache_.past[i] = own.past[0];
    last_.push_back(model_.logits(state.select(1, state.size(1) - 1))[0]);
  }

  void keep(const std::vector<int64_t>& kept) {
    cache_ = cache_.sequences(kept);
    std::vector<size_t> left;
    for (const int64_t i : kept) left.push_back(sequences_[static_cast<size_t>(i)]);
    sequences_ = left;
  }

  const models::LanguageModel& model_;
  const Sampling& sampling_;
  models::LmCache cache_;
  std::vector<size_t> sequences_;  // their indices among the prompts
  std::vector<int64_t> tokens_;    // drawn last, of each
  std::vector<at::Tensor> last_;   // logits after each prompt
  at::Tensor logits_;              // [sequences, vocab]
  Ended ended_ = Ended::done;
};

}  // namespace

void check_prompt(const models::ModelConfig& config, const std::vector<int64_t>& prompt, const std::string& name) {
  const auto length = static_cast<int64_t>(prompt.size());
  if (prompt.empty()) throw UsageError(name + ": expected at least one token, got none");
  if (length > config.context) {
    throw UsageError(name + ": expected at most " + std::to_string(config.context) + " tokens (model.context), got " +
                     std::to_string(length));
  }
  for (const int64_t token : prompt) {
    if (token < 0 || token >= config.vocab) {
      throw UsageError(name + ": expected tokens below model.vocab (" + std::to_string(config.vocab) + "), got " +
                       std::to_string(token));
    }
  }
}

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

uint64_t draw_index(size_t sequence, int64_t made) {
  return sequence * kDrawsOfASequence + static_cast<uint64_t>(made);
}

Ended generate(const models::LanguageModel& model, const std::vector<std::vector<int64_t>>& prompts,
               const Sampling& sampling, const std::function<bool(size_t, int64_t)>& emit) {
  const c10::InferenceMode inference;
  const ops::RoundWeightsOnce rounded;
  if (!(sampling.temperature >= 0) || !(sampling.top_p > 0)) {
    throw UsageError("--temperature: expected a number >= 0; --top-p: a number in (0, 1]");
  }
  for (const auto& prompt : prompts) check_prompt(model.config(), prompt, "--prompt");
  if (prompts.empty() || sampling.max_tokens < 1) return Ended::done;
  Batch batch(model, prompts, sampling);
  for (int64_t made = 0; batch.draw(made, emit); ++made) batch.advance();
  return batch.ended();
}

Ended generate(const models::LanguageModel& model, const std::vector<int64_t>& prompt, const Sampling& sampling,
               const std::function<bool(int64_t)>& emit) {
  return generate(model, std::vector<std::vector<int64_t>>{prompt}, sampling,
                  [&](size_t, int64_t token) { return emit(token); });
}

}  // namespace siamese::eval

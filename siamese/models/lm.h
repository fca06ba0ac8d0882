// The decoder language model: embedding (+ learned positions), the stack, head. Dense (lm), or with experts as its
// feed-forward branches (moe); then the mean over blocks of their auxiliary losses joins the objective.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/models/blocks.h"
#include "siamese/models/config.h"
#include "siamese/models/model.h"
#include "siamese/nn/embedding.h"
#include "siamese/nn/init.h"
#include "siamese/nn/rotary.h"

namespace siamese::models {

// What generation keeps of the tokens so far, of a batch of sequences. The streams need no cache: they belong to one
// position each.
struct LmCache {
  std::vector<nn::KeyValues> layers;
  std::vector<int64_t> past;  // tokens of each sequence so far
  int64_t capacity = 0;       // tokens of a sequence it can hold
  // Past its capacity a sequence goes on, token by token, and the oldest is forgotten; otherwise that is an error. With
  // rotary positions only: they know no last one.
  bool slides = false;

  // One sequence, in the same memory: what is done to it is done here, but for `past`.
  LmCache sequence(size_t index) const;
  // These sequences, in this order, in memory of their own.
  LmCache sequences(const std::vector<int64_t>& indices) const;
};

class LanguageModel : public Model {
 public:
  // `config` must be resolved.
  LanguageModel(const ModelConfig& config, const nn::InitConfig& init, nn::Parameters parameters);

  Losses losses(const Inputs& inputs, const LossOptions& options) const override;
  Pass pass(const Inputs& inputs, const StackOptions& options) const override;
  at::Tensor state(const Inputs& inputs, const StackOptions& options) const override;
  at::Tensor read_out(const at::Tensor& state, const Inputs& inputs) const override;
  const Stack& stack() const override { return *stack_; }
  double forward_flops(int64_t batch) const override;
  int64_t active_parameters() const override;

  // tokens: int64 [batch, n] -> hidden [batch, n, width]. With a cache, the tokens follow the cached ones.
  at::Tensor hidden(const at::Tensor& tokens, const StackOptions& options = {}, LmCache* cache = nullptr) const;
  // hidden [..., width] -> logits [..., vocab].
  at::Tensor logits(const at::Tensor& hidden) const;

  // Nothing is written to it yet, so its memory is taken as it fills.
  LmCache make_cache(int64_t batch, int64_t capacity, bool slides = false) const;
  const ModelConfig& config() const { return config_; }

 private:
  // Elements of the experts that a token is not sent to.
  int64_t idle_experts() const;
  // Checked and on the model's device; at least two of each sample.
  at::Tensor tokens_of(const Inputs& inputs) const;
  // `borders` of documents: Inputs::borders.
  StackOutput run(const at::Tensor& tokens, const StackOptions& options, LmCache* cache, const Dropping& dropping = {},
                  const std::vector<std::vector<int64_t>>& borders = {}) const;
  // The embedding of tokens that follow nothing, and where they stand.
  at::Tensor embed(const at::Tensor& tokens, const std::vector<std::vector<int64_t>>& borders,
                   Sequence& sequence) const;
  void check_cache(const at::Tensor& tokens, const StackOptions& options, const LmCache& cache) const;
  // The embedding of tokens that follow the cached ones, and where they stand.
  at::Tensor embed_after(const at::Tensor& tokens, const LmCache& cache, Sequence& sequence) const;
  void add_router_losses(const std::vector<at::Tensor>& beside, const LossOptions& options, Losses& losses) const;

  ModelConfig config_;
  std::unique_ptr<Stack> stack_;
  nn::Embedding embedding_;
  nn::Embedding positions_;
  nn::Rotary rotary_;
  std::optional<nn::Rotary> unscaled_rotary_;  // where some blocks are not scaled (model.rope_scaling_layers)
  std::shared_ptr<const Blocks> blocks_;       // shared with segments that backward computes again
  nn::Slot head_;
};

}  // namespace siamese::models

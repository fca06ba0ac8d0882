// The sublayers of every family: attention and feed-forward (dense, or experts for moe) of each block, built from the
// config and the scheme's hints.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/models/config.h"
#include "siamese/models/dropping.h"
#include "siamese/models/stack.h"
#include "siamese/nn/attention.h"
#include "siamese/nn/experts.h"
#include "siamese/nn/feed_forward.h"
#include "siamese/nn/init.h"
#include "siamese/nn/rotary.h"

namespace siamese::models {

// Where the tokens of a pass stand.
struct Sequence {
  nn::RotaryTables rotary = {};  // undefined: no rotation
  // Of blocks whose frequencies are not scaled (model.rope_scaling_layers); undefined: there are none.
  nn::RotaryTables unscaled_rotary = {};
  // Generation only: tokens of each sequence before these, and what is kept of them in every block.
  at::IntArrayRef past = {};
  const std::vector<nn::KeyValues>* cache = nullptr;
  Dropping dropping = {};            // training only
  std::vector<int64_t> pieces = {};  // lengths of documents that do not see each other (nn/pieces.h); empty: all do
  AttentionWatch* watch = nullptr;   // in a pass without a cache
};

class Blocks {
 public:
  Blocks() = default;
  Blocks(const nn::Scope& root, const Stack& stack, const ModelConfig& config, const nn::Initializer& initializer);

  // What stands beside the branch of experts: balance loss, router z-loss, counts. `carry`: stack.h.
  SublayerOutput operator()(const residual::Site& site, const at::Tensor& input, const Sequence& sequence,
                            const std::vector<at::Tensor>& carry) const;

 private:
  SublayerOutput computed(const residual::Site& site, const at::Tensor& input, const Sequence& sequence,
                          const std::vector<at::Tensor>& carry) const;

  std::vector<nn::Attention> attentions_;
  std::vector<bool> scales_rope_;  // of each block
  std::vector<nn::FeedForward> feed_forwards_;
  std::vector<nn::Experts> experts_;  // instead, for moe
};

// The scheme's stack in the root scope of a model.
std::unique_ptr<Stack> make_stack(const nn::Scope& root, const ModelConfig& config);

// Elements of the matrices whose names start with `prefix` (all without one).
double matrix_elements(const nn::Parameters& parameters, std::string_view prefix = "");

// Multiply-adds of Depth-Attention for one token in all blocks: a score and a part of a sum for each source.
double depth_attention_products(const ModelConfig& config);

}  // namespace siamese::models

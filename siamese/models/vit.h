// The vision Transformer (ViT, DeiT): patches, a class token in front, learned positions, the stack; the class token's
// final state goes through the head. Attention is not causal. Drop-path: in training a sample skips a branch with a
// chance that grows linearly with depth, from 0 to model.drop_path; what is kept is scaled up by 1 / (1 - chance).
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "siamese/models/blocks.h"
#include "siamese/models/config.h"
#include "siamese/models/model.h"
#include "siamese/nn/linear.h"
#include "siamese/nn/patch_embed.h"

namespace siamese::models {

class VisionTransformer : public Model {
 public:
  // `config` must be resolved.
  VisionTransformer(const ModelConfig& config, const nn::InitConfig& init, nn::Parameters parameters);

  // Mean cross-entropy with the soft targets, or the labels.
  Losses losses(const Inputs& inputs, const LossOptions& options) const override;
  Pass pass(const Inputs& inputs, const StackOptions& options) const override;
  at::Tensor state(const Inputs& inputs, const StackOptions& options) const override;
  at::Tensor read_out(const at::Tensor& state, const Inputs& inputs) const override;
  const Stack& stack() const override { return *stack_; }
  double forward_flops(int64_t batch) const override;

  // The class token's final state [batch, width], as in evaluation.
  at::Tensor features(const at::Tensor& images, const StackOptions& options = {}) const;
  // features -> [batch, classes].
  at::Tensor logits(const at::Tensor& features) const;

  const ModelConfig& config() const { return config_; }

 private:
  // Checked and on the output's device.
  at::Tensor labels_of(const Inputs& inputs, const at::Tensor& output) const;
  // What drops whole branches; none in evaluation.
  struct DropPath {
    double last = 0;  // chance in the last block
    uint64_t seed = 0;
    uint64_t first_position = 0;

    // [batch, 1, 1]: 0 or 1 / (1 - chance); undefined where nothing is dropped. In the type of the streams, whatever
    // that of the branch: such a gate is part of the junction's pass.
    at::Tensor kept(const residual::Site& site, int64_t batch, const at::TensorOptions& streams) const;
  };
  // The final states of all tokens.
  at::Tensor states(const at::Tensor& images, const StackOptions& options, const DropPath& path,
                    const Dropping& dropping) const;

  ModelConfig config_;
  std::unique_ptr<Stack> stack_;
  nn::PatchEmbed patches_;
  nn::Slot class_token_;
  nn::Slot positions_;
  std::shared_ptr<const Blocks> blocks_;  // shared with segments that backward computes again
  nn::Linear head_;
};

}  // namespace siamese::models

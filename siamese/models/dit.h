// The diffusion Transformer (DiT): from a noised image or latent x_t, the timestep t and a class label to the noise in
// x_t and, with learn_sigma, the variance of the step back.
//   c = TimestepEmbedding(t) + LabelTable(label);   per block six vectors (shift, scale, gate) x 2 = W SiLU(c) + b
//   branch = Sublayer(read * (1 + scale) + shift), handed to the scheme's write with its gate (adaLN-Zero)
//   output = W_final(LN0(state) * (1 + scale) + shift)
// The modulation and the last projection start at 0. LN0 has no gain and no shift.
#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/models/blocks.h"
#include "siamese/models/config.h"
#include "siamese/models/diffusion.h"
#include "siamese/models/model.h"
#include "siamese/nn/conditioning.h"
#include "siamese/nn/embedding.h"
#include "siamese/nn/linear.h"
#include "siamese/nn/norm.h"
#include "siamese/nn/patch_embed.h"

namespace siamese::models {

// What a sample's loss is computed from: drawn by the sample's position and `seed`, the same for every model.
struct NoisedImages {
  at::Tensor timesteps;  // int64 [batch]
  at::Tensor noise;
  at::Tensor noised;  // x_t
};
NoisedImages draw_noised(const Diffusion& diffusion, const at::Tensor& images, uint64_t first_position, uint64_t seed);

class DiffusionTransformer : public Model {
 public:
  // `config` must be resolved.
  DiffusionTransformer(const ModelConfig& config, const nn::InitConfig& init, nn::Parameters parameters);

  // Mean over samples of MSE + VLB. Timestep, noise and whether a label is hidden belong to a sample's position.
  Losses losses(const Inputs& inputs, const LossOptions& options) const override;
  Pass pass(const Inputs& inputs, const StackOptions& options) const override;
  at::Tensor state(const Inputs& inputs, const StackOptions& options) const override;
  at::Tensor read_out(const at::Tensor& state, const Inputs& inputs) const override;
  const Stack& stack() const override { return *stack_; }
  // Modulations are made of the condition before the first block.
  int64_t block_of(const nn::Parameter& parameter) const override;
  double forward_flops(int64_t batch) const override;

  // x: [batch, channels, image, image]; timesteps, labels: int64 [batch] -> [batch, out_channels, image, image].
  at::Tensor output(const at::Tensor& x, const at::Tensor& timesteps, const at::Tensor& labels,
                    const StackOptions& options = {}) const;

  int64_t out_channels() const { return config_.channels * (config_.learn_sigma ? 2 : 1); }
  // The label that stands for none; -1: the model was not trained without labels.
  int64_t null_label() const { return config_.label_dropout > 0 ? config_.classes : -1; }
  const Diffusion& diffusion() const { return diffusion_; }
  const ModelConfig& config() const { return config_; }

 private:
  at::Tensor output(const at::Tensor& x, const at::Tensor& timesteps, const at::Tensor& labels,
                    const StackOptions& options, const Dropping& dropping) const;
  // SiLU(c), of given timesteps and labels, [batch, width].
  at::Tensor condition(const at::Tensor& timesteps, const at::Tensor& labels, int64_t batch) const;
  at::Tensor final_state(const at::Tensor& x, const at::Tensor& condition, const StackOptions& options,
                         const Dropping& dropping) const;
  at::Tensor output_of(const at::Tensor& state, const at::Tensor& condition) const;

  ModelConfig config_;
  Diffusion diffusion_;
  std::unique_ptr<Stack> stack_;
  nn::PatchEmbed patches_;
  nn::Slot positions_;  // a buffer
  nn::TimestepEmbedding timesteps_;
  nn::Embedding labels_;
  std::shared_ptr<const Blocks> blocks_;  // shared with segments that backward computes again
  std::vector<nn::Linear> modulations_;   // of each block
  nn::Norm final_norm_;
  nn::Linear final_modulation_;
  nn::Linear final_;
};

}  // namespace siamese::models

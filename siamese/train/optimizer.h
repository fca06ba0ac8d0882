// AdamW over all parameters of a model, with global-norm clipping; decay by parameter kind.
#pragma once

#include <vector>

#include "siamese/models/weights.h"
#include "siamese/nn/parameters.h"
#include "siamese/train/config.h"

namespace siamese::train {

class AdamW {
 public:
  AdamW(const OptimConfig& config, const nn::Parameters& parameters);

  // The squared Euclidean norm of all gradients together, in a fixed order of summation: a scalar where they are.
  at::Tensor squared_gradient_norm() const;
  // One step at learning rate `lr`; gradients of global norm `norm` are scaled down to the clip.
  void step(double lr, double norm);

  int64_t applied_steps() const { return applied_steps_; }
  void set_applied_steps(int64_t steps) { applied_steps_ = steps; }
  // The moments under "m.<parameter>" and "v.<parameter>".
  std::vector<models::NamedTensor> state() const;

 private:
  struct Slot {
    nn::Parameter parameter;
    at::Tensor first_moment;
    at::Tensor second_moment;
    double weight_decay;
  };

  OptimConfig config_;
  std::vector<Slot> slots_;
  int64_t applied_steps_ = 0;
};

}  // namespace siamese::train

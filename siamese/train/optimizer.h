// What the trainer knows of an optimizer: it owns state beside the parameters that are trained (those that require a
// gradient), measures the gradients and makes one step with them. Which one, optim.name says: adamw.h, muon.h.
// Everything that decides the next step is in the parameters, `state` and the number of applied steps, so that a run
// resumes to the bit.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "siamese/models/weights.h"
#include "siamese/nn/parameters.h"
#include "siamese/train/division.h"
#include "siamese/train/optim_config.h"
#include "siamese/train/weight_parts.h"

namespace siamese::train {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // The squared Euclidean norm of all gradients together, in a fixed order of summation: a scalar where they are. Of a
  // divided optimizer: of the gradients of its part.
  at::Tensor squared_gradient_norm() const;
  // One step at learning rate `lr`; gradients of global norm `norm` are scaled down to the clip.
  void step(double lr, double norm);

  int64_t applied_steps() const { return applied_steps_; }
  void set_applied_steps(int64_t steps) { applied_steps_ = steps; }
  // What a checkpoint holds of it, by name: "m.<parameter>" a running mean of the gradients, "v.<parameter>" of their
  // squares, where there is one; of a divided optimizer "m.<parameter>[begin:end]" where a border cuts it.
  virtual std::vector<models::NamedTensor> state() const = 0;

 protected:
  // A parameter that is trained, what of it is updated here, and how.
  struct Trained {
    nn::Parameter parameter;
    Piece piece;
    at::Tensor weights;  // its numbers
    double weight_decay;
    double lr_scale;
  };
  // What all parameters share in one step.
  struct Step {
    double lr;
    double clip_scale;
    int64_t applied_steps;  // this one included
  };

  Optimizer(const OptimConfig& config, const nn::Parameters& parameters, const Division& division,
            const WeightParts* weights);
  const std::vector<Trained>& trained() const { return trained_; }  // in the order of the parameters

 private:
  virtual void update(const Step& step) = 0;

  double clip_;
  std::vector<Trained> trained_;
  int64_t applied_steps_ = 0;
};

// `weights`: where the numbers are that are updated; null: in the parameters.
std::unique_ptr<Optimizer> make_optimizer(const OptimConfig& config, const nn::Parameters& parameters,
                                          const Division& division = {}, const WeightParts* weights = nullptr);

// Of one step: operations of products, of which AdamW has none. The parameters may be shapes alone (meta).
double optimizer_flops(const OptimConfig& config, const nn::Parameters& parameters);
// Of a run: all weights, and the gradients and moments of those that are trained.
double numbers_kept(const OptimConfig& config, const nn::Parameters& parameters);

}  // namespace siamese::train

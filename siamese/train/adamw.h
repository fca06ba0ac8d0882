// AdamW (ops/adamw.h) over all parameters that are trained, with decay and rate by parameter kind.
#pragma once

#include <vector>

#include "siamese/ops/adamw.h"
#include "siamese/train/optimizer.h"

namespace siamese::train {

// The moments of some parameters; also of those that another optimizer leaves to AdamW.
class AdamWMoments {
 public:
  explicit AdamWMoments(const OptimConfig& config);

  // `weights`: the numbers of the piece.
  void add(const nn::Parameter& parameter, const Piece& piece, const at::Tensor& weights, double weight_decay,
           double lr_scale);
  void update(double lr, double clip_scale, int64_t applied_steps) const;
  void append_state(std::vector<models::NamedTensor>& state) const;

 private:
  struct Slot {
    nn::Parameter parameter;
    Piece piece;
    at::Tensor weights;
    at::Tensor first;
    at::Tensor second;
    double weight_decay;
    double lr_scale;
  };

  ops::AdamWArguments common_;
  std::vector<Slot> slots_;
};

class AdamW : public Optimizer {
 public:
  AdamW(const OptimConfig& config, const nn::Parameters& parameters, const Division& division = {},
        const WeightParts* weights = nullptr);

  std::vector<models::NamedTensor> state() const override;

 private:
  void update(const Step& step) override;

  AdamWMoments moments_;
};

}  // namespace siamese::train

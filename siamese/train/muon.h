// Muon (ops/muon.h) for the matrices between hidden states, AdamW for the rest: embeddings and a tied head, the head,
// patches, routers, what mixes streams, biases, gains, scalars. Which weight is which, its owner says
// (nn::Parameter::matrices), not its name or number of dimensions. Decay and clip are those of AdamW; one schedule
// serves both.
#pragma once

#include <vector>

#include "siamese/ops/muon.h"
#include "siamese/train/adamw.h"

namespace siamese::train {

class Muon : public Optimizer {
 public:
  // A division has to leave matrices whole.
  Muon(const OptimConfig& config, const nn::Parameters& parameters, const Division& division = {},
       const WeightParts* weights = nullptr);

  std::vector<models::NamedTensor> state() const override;

  // Operations of the products in one step of a parameter; 0 where it is AdamW's.
  static double flops(const nn::Parameter& parameter);

 private:
  struct Slot {
    nn::Parameter parameter;
    at::Tensor weights;
    at::Tensor momentum;
    double weight_decay;
    double lr_scale;
  };

  void update(const Step& step) override;

  MuonConfig config_;
  std::vector<Slot> matrices_;
  AdamWMoments rest_;
};

}  // namespace siamese::train

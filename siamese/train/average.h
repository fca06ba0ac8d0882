// The exponential moving average of the weights (EMA): a <- d a + (1 - d) w after every applied step, starting as a
// copy of the initial weights.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/models/weights.h"
#include "siamese/nn/parameters.h"

namespace siamese::train {

class WeightAverage {
 public:
  // `decay` 0: there is none, and nothing is kept.
  WeightAverage(double decay, const nn::Parameters& parameters);

  bool kept() const { return decay_ > 0; }
  void update();
  // The averages under the parameters' names.
  std::vector<models::NamedTensor> state() const;

  // While it lives the parameters hold the averages.
  class InUse {
   public:
    explicit InUse(const WeightAverage& average);
    ~InUse();
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;

   private:
    const WeightAverage& average_;
  };

 private:
  void exchange() const;

  double decay_;
  std::vector<nn::Parameter> parameters_;
  std::vector<at::Tensor> averages_;
};

}  // namespace siamese::train

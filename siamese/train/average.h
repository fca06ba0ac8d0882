// The exponential moving average of the weights (EMA): a <- d a + (1 - d) w after every applied step, starting as a
// copy of the initial weights.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/models/weights.h"
#include "siamese/nn/parameters.h"
#include "siamese/train/weight_parts.h"

namespace siamese::train {

class WeightAverage {
 public:
  // `decay` 0: there is none, and nothing is kept. `weights`: of several ranks; averages of divided weights are
  // divided, too. Must outlive this.
  WeightAverage(double decay, const nn::Parameters& parameters, const WeightParts* weights = nullptr);

  bool kept() const { return decay_ > 0; }
  void update();
  // The averages under the parameters' names; of a divided one this rank's part.
  std::vector<models::NamedTensor> state() const;
  // The same as they are held, in the order of the parameters (WeightParts::Parts).
  const std::vector<at::Tensor>& held() const { return averages_; }

  // While it lives the parameters hold the averages, and passes read them. All ranks make one at the same time.
  class InUse {
   public:
    explicit InUse(const WeightAverage& average);
    ~InUse();
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;

   private:
    const WeightAverage& average_;
    at::Tensor rounded_;  // of the weights that are divided
  };

 private:
  void exchange() const;

  bool divides() const { return weights_ != nullptr && weights_->any_is_divided(); }

  double decay_;
  const WeightParts* weights_;
  std::vector<nn::Parameter> parameters_;
  std::vector<at::Tensor> numbers_;  // what is averaged of each
  std::vector<at::Tensor> averages_;
};

}  // namespace siamese::train

// What the trainer, the evaluator and the command line know of any family.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/models/stack.h"
#include "siamese/nn/parameters.h"

namespace siamese::models {

// One batch, as the family takes it.
struct Inputs {
  at::Tensor tokens;   // int64 [batch, context + 1]
  at::Tensor weights;  // [batch, context]: 1 where the target counts
};

struct LossOptions {
  StackOptions stack;
  double normalizer = 1;  // what summed losses are divided by: the weight of the whole step, not of one micro-batch
  double z_loss = 0;      // weight of the squared log-normaliser
};

struct Losses {
  at::Tensor objective;                                   // what is differentiated
  at::Tensor loss;                                        // the task's own term, as reported
  std::vector<std::pair<std::string, at::Tensor>> extra;  // further terms by name
};

class Model {
 public:
  explicit Model(nn::Parameters parameters) : parameters_(std::move(parameters)) {}
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  virtual Losses losses(const Inputs& inputs, const LossOptions& options) const = 0;
  // Multiply-adds of one forward pass for a batch of `batch` samples, matrix products and attention, times two.
  virtual double forward_flops(int64_t batch) const = 0;

  const nn::Parameters& parameters() const { return parameters_; }

 protected:
  nn::Scope root_scope() { return nn::Scope(parameters_); }

 private:
  nn::Parameters parameters_;
};

}  // namespace siamese::models

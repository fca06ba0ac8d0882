#include "siamese/train/optimizer.h"

#include "siamese/ops/reduce.h"
#include "siamese/ops/scope.h"
#include "siamese/train/adamw.h"
#include "siamese/train/muon.h"

namespace siamese::train {

Optimizer::Optimizer(const OptimConfig& config, const nn::Parameters& parameters, const Division& division,
                     const WeightParts* weights)
    : clip_(config.clip) {
  for (size_t i = 0; i < parameters.list().size(); ++i) {
    const nn::Parameter& parameter = parameters.list()[i];
    const Piece piece = division.piece_of(i, parameter.value.numel());
    if (!parameter.value.requires_grad() || piece.size() == 0) continue;
    trained_.push_back({parameter, piece, weights ? weights->own(i) : piece.of(parameter.value.detach()),
                        config.decay.decays(parameter.kind) ? config.weight_decay : 0,
                        config.lr_scale.of(parameter.kind)});
  }
}

at::Tensor Optimizer::squared_gradient_norm() const {
  const ops::PartScope scope("part::optimizer");
  std::vector<at::Tensor> gradients;
  for (const auto& one : trained_) gradients.push_back(one.piece.of(one.parameter.value.grad()));
  return ops::sum_squares_of(gradients);
}

void Optimizer::step(double lr, double norm) {
  const ops::PartScope scope("part::optimizer");
  ++applied_steps_;
  update({lr, clip_ > 0 && norm > clip_ ? clip_ / norm : 1, applied_steps_});
}

std::unique_ptr<Optimizer> make_optimizer(const OptimConfig& config, const nn::Parameters& parameters,
                                          const Division& division, const WeightParts* weights) {
  if (config.name == OptimizerName::muon) return std::make_unique<Muon>(config, parameters, division, weights);
  return std::make_unique<AdamW>(config, parameters, division, weights);
}

double optimizer_flops(const OptimConfig& config, const nn::Parameters& parameters) {
  double flops = 0;
  if (config.name != OptimizerName::muon) return flops;
  for (const auto& parameter : parameters.list()) {
    if (parameter.value.requires_grad()) flops += Muon::flops(parameter);
  }
  return flops;
}

double numbers_kept(const OptimConfig& config, const nn::Parameters& parameters) {
  auto numbers = static_cast<double>(parameters.count());
  for (const auto& parameter : parameters.list()) {
    const bool one_moment = config.name == OptimizerName::muon && !parameter.matrices.empty();
    const double beside = one_moment ? 2 : 3;  // the gradient among them
    if (parameter.value.requires_grad()) numbers += beside * static_cast<double>(parameter.value.numel());
  }
  return numbers;
}

}  // namespace siamese::train

#include "siamese/ops/gradient.h"

#include <atomic>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

namespace siamese::ops {
namespace {

std::atomic<int> open_scopes{0};  // of the process: backward may run on another thread

}  // namespace

GradientsInPlace::GradientsInPlace() { ++open_scopes; }
GradientsInPlace::~GradientsInPlace() { --open_scopes; }

bool adds_in_place(const at::Tensor& weight) {
  if (open_scopes == 0 || c10::GradMode::is_enabled() || !weight.is_leaf() || !weight.requires_grad()) return false;
  const at::Tensor& gradient = weight.grad();
  return gradient.defined() && gradient.layout() == at::kStrided && gradient.is_cpu() &&
         gradient.scalar_type() == at::kFloat && gradient.sizes() == weight.sizes() && gradient.is_contiguous();
}

}  // namespace siamese::ops

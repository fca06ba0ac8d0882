#include "siamese/ops/gradient.h"

#include <atomic>

#include <ATen/ATen.h>

namespace siamese::ops {
namespace {

std::atomic<int> open_scopes{0};  // of the process: backward may run on another thread

}  // namespace

GradientsInPlace::GradientsInPlace() { ++open_scopes; }
GradientsInPlace::~GradientsInPlace() { --open_scopes; }

bool adds_in_place(const at::Tensor& weight) {
  return open_scopes > 0 && weight.is_leaf() && weight.requires_grad() && weight.grad().defined();
}

}  // namespace siamese::ops

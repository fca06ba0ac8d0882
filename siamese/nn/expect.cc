#include "siamese/nn/expect.h"

#include <sstream>

#include <ATen/ATen.h>

#include "siamese/base/check.h"

namespace siamese::nn {
namespace expect_detail {

std::string text_of(at::IntArrayRef shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i > 0 ? ", " : "") + (shape[i] < 0 ? "*" : std::to_string(shape[i]));
  return text + "]";
}

std::string text_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return "no tensor";
  return std::string(c10::toString(tensor.scalar_type())) + " " + text_of(tensor.sizes());
}

bool fits(at::IntArrayRef got, at::IntArrayRef shape) {
  if (got.size() != shape.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] >= 0 && shape[i] != got[i]) return false;
  }
  return true;
}

}  // namespace expect_detail

void expect_shape(const std::string& what, const at::Tensor& got, at::IntArrayRef shape) {
  if (got.defined() && expect_detail::fits(got.sizes(), shape)) return;
  throw UsageError(what + ": expected a tensor of shape " + expect_detail::text_of(shape) + ", got " +
                   expect_detail::text_of(got));
}

void expect_indices(const std::string& what, const at::Tensor& got, at::IntArrayRef shape, int64_t count) {
  if (!got.defined() || got.scalar_type() != at::kLong || !expect_detail::fits(got.sizes(), shape)) {
    throw UsageError(what + ": expected Long " + expect_detail::text_of(shape) + ", got " +
                     expect_detail::text_of(got));
  }
  if (!got.device().is_cpu() || got.numel() == 0) return;
  const auto [least, most] = at::aminmax(got);
  const int64_t low = least.item<int64_t>(), high = most.item<int64_t>();
  expect_that(low >= 0 && high < count, what, "numbers from 0 to " + std::to_string(count - 1), low < 0 ? low : high);
}

void expect_that(bool holds, const std::string& what, const std::string& expected, int64_t got) {
  if (!holds) throw UsageError(what + ": expected " + expected + ", got " + std::to_string(got));
}

}  // namespace siamese::nn

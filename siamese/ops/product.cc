#include "siamese/ops/product.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "siamese/kernels/outer_products.h"
#include "siamese/ops/gradient.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {
namespace {

// oneDNN's product on plain tensors. LibTorch has no C++ header for it, and a build without oneDNN has no such op.
using OneDnnLinear = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                                std::string_view, c10::List<std::optional<at::Scalar>>,
                                std::optional<std::string_view>);

const c10::TypedOperatorHandle<OneDnnLinear>* onednn_linear() {
  static const auto handle = []() -> std::optional<c10::TypedOperatorHandle<OneDnnLinear>> {
    const auto found = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
    if (!found.has_value()) return std::nullopt;
    return found->typed<OneDnnLinear>();
  }();
  return handle.has_value() ? &*handle : nullptr;
}

// Below this many multiply-adds oneDNN's fixed cost of about 12 us a call is more than what it saves.
constexpr int64_t kWorthOneDnn = int64_t{1} << 24;

at::Tensor multiply_best(const at::Tensor& x, const at::Tensor& w) {
  const at::AutoDispatchBelowAutograd no_autograd;
  const bool large = x.size(0) * x.size(1) * w.size(0) >= kWorthOneDnn;
  if (!large || !x.is_cpu() || x.scalar_type() != at::kFloat || onednn_linear() == nullptr) return at::mm(x, w.t());
  return onednn_linear()->call(x, w, std::nullopt, "none", c10::List<std::optional<at::Scalar>>(), std::nullopt);
}

}  // namespace

at::Tensor times_transposed(const at::Tensor& x, const at::Tensor& w) { return multiply_best(x, w.detach()); }

at::Tensor times(const at::Tensor& y, const at::Tensor& w) { return multiply_best(y, w.detach().t()); }

void add_weight_gradient(const at::Tensor& gradient, const at::Tensor& given_dy, const at::Tensor& given_x) {
  const PartScope scope("siamese::linear");
  const at::Tensor dy = given_dy.contiguous();
  const at::Tensor x = given_x.contiguous();
  const int64_t rows = x.size(0);
  const int64_t in = x.size(1);
  const int64_t out = dy.size(1);
  constexpr int64_t kWorthAThread = 1 << 18;  // multiply-adds
  at::parallel_for(0, out, std::max<int64_t>(1, kWorthAThread / std::max<int64_t>(1, rows * in)),
                   [&](int64_t begin, int64_t end) {
                     const at::Tensor scratch = at::empty({kernels::outer_products_scratch(rows, out, in)}, at::kFloat);
                     kernels::add_outer_products(dy.const_data_ptr<float>(), x.const_data_ptr<float>(),
                                                 gradient.mutable_data_ptr<float>(), rows, out, in, begin, end,
                                                 scratch.mutable_data_ptr<float>());
                   });
}

at::Tensor weight_gradient(const at::Tensor& w, const at::Tensor& dy, const at::Tensor& x) {
  const bool in_place = adds_in_place(w);
  const at::Tensor gradient = in_place ? w.grad() : at::zeros_like(w.detach());
  add_weight_gradient(gradient, dy, x);
  return in_place ? at::Tensor() : gradient;
}

}  // namespace siamese::ops

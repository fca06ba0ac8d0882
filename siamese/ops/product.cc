#include "siamese/ops/product.h"

#include <optional>
#include <string_view>

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>

#include "siamese/ops/gradient.h"

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

at::Tensor weight_gradient(const at::Tensor& w, const at::Tensor& dy, const at::Tensor& x) {
  const c10::NoGradGuard no_grad;
  if (!adds_in_place(w)) return at::mm(dy.t(), x);
  w.mutable_grad().addmm_(dy.t(), x);
  return {};
}

}  // namespace siamese::ops

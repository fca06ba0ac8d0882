#include "siamese/ops/plain_gradient.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>

namespace siamese::ops {
namespace plain_gradient_detail {

// Below autograd its keys are switched off for the thread; here they are on again.
c10::impl::LocalDispatchKeySet with_autograd() {
  auto keys = c10::impl::tls_local_dispatch_key_set();
  keys.excluded_ = keys.excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
  return keys;
}

// Dense and nobody else's: the derivative of a sum is the gradient that came, the same tensor for all its terms.
at::Tensor of_its_own(const at::Tensor& gradient, const at::Tensor& input, const Tensors& came, const Tensors& given) {
  if (!gradient.defined()) return at::zeros(input.sizes(), input.options());
  const auto is_it = [&](const auto& other) { return other.defined() && other.is_alias_of(gradient); };
  const bool shared = std::any_of(came.begin(), came.end(), is_it) || std::any_of(given.begin(), given.end(), is_it);
  return shared ? gradient.clone(at::MemoryFormat::Contiguous) : gradient.contiguous();
}

}  // namespace plain_gradient_detail

Tensors gradients_of(const Tensors& inputs, const std::vector<bool>& wanted, const Tensors& gradients,
                     const Expression& expression) {
  const OneThread one_thread;
  const auto keys = plain_gradient_detail::with_autograd();
  const c10::impl::ForceDispatchKeyGuard on_again(keys);
  const c10::AutoGradMode record(true);
  Tensors leaves, sources;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool source = wanted[i] && inputs[i].defined();
    leaves.push_back(inputs[i].defined() ? inputs[i].detach() : at::Tensor());
    if (source) sources.push_back(leaves.back().set_requires_grad(true));
  }
  const Tensors made = expression(leaves);
  Tensors roots, root_gradients;
  for (size_t i = 0; i < made.size() && i < gradients.size(); ++i) {
    if (!gradients[i].defined() || !made[i].defined() || !made[i].requires_grad()) continue;
    roots.push_back(made[i]);
    root_gradients.push_back(gradients[i].detach());
  }
  Tensors found(sources.size());
  if (!roots.empty() && !sources.empty()) {
    found = torch::autograd::grad(roots, sources, root_gradients, /*retain_graph=*/std::nullopt,
                                  /*create_graph=*/false, /*allow_unused=*/true);
  }
  const auto first = std::find_if(inputs.begin(), inputs.end(), [](const auto& i) { return i.defined(); });
  const at::TensorOptions options = first == inputs.end() ? at::TensorOptions() : first->options();
  Tensors result;
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool source = wanted[i] && inputs[i].defined();
    result.push_back(source ? plain_gradient_detail::of_its_own(found[next++], inputs[i], gradients, result)
                            : at::empty({0}, options));
  }
  return result;
}

}  // namespace siamese::ops

#include "siamese/models/recompute.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

namespace siamese::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Carries the segment through the context's IValue table.
struct SegmentHolder : torch::CustomClassHolder {
  explicit SegmentHolder(Segment s) : segment(std::move(s)) {}
  Segment segment;
};

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  static variable_list forward(AutogradContext* context, const Segment& segment, at::TensorList inputs) {
    context->set_materialize_grads(false);
    context->save_for_backward(inputs.vec());
    context->saved_data["segment"] = c10::IValue::make_capsule(c10::make_intrusive<SegmentHolder>(segment));
    return segment(inputs.vec());  // gradients are off inside a custom function's forward
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    variable_list inputs;
    for (const auto& saved : context->get_saved_variables()) {
      inputs.push_back(saved.detach().set_requires_grad(saved.requires_grad()));
    }
    const auto capsule = context->saved_data["segment"].toCapsule();
    const Segment& segment = static_cast<const SegmentHolder&>(*capsule).segment;
    variable_list outputs;
    {
      const c10::AutoGradMode with_gradients(true);
      outputs = segment(inputs);
    }
    variable_list roots;
    variable_list root_grads;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!grads[i].defined() || !outputs[i].requires_grad()) continue;
      roots.push_back(outputs[i]);
      root_grads.push_back(grads[i]);
    }
    torch::autograd::backward(roots, root_grads);  // adds to the parameters' gradients as the outer pass would
    variable_list result = {at::Tensor()};         // the segment itself
    for (const auto& input : inputs) result.push_back(input.grad());
    return result;
  }
};

}  // namespace

std::vector<at::Tensor> recompute(const Segment& segment, const std::vector<at::Tensor>& inputs) {
  // Without an input to differentiate the node would be no part of the graph, and with it the segment's parameters.
  if (std::none_of(inputs.begin(), inputs.end(), [](const at::Tensor& input) { return input.requires_grad(); })) {
    return segment(inputs);
  }
  return Recompute::apply(segment, at::TensorList(inputs));
}

}  // namespace siamese::models

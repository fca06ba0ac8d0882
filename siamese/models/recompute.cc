#include "siamese/models/recompute.h"

#include <algorithm>
#include <unordered_set>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include "siamese/base/check.h"

namespace siamese::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Node;
using torch::autograd::variable_list;

// Carries the segment through the context's IValue table.
struct SegmentHolder : torch::CustomClassHolder {
  SegmentHolder(Segment s, SegmentParameters p) : segment(std::move(s)), parameters(std::move(p)) {}
  Segment segment;
  SegmentParameters parameters;
};

// Every leaf that `roots` lead to must be among `wanted`: its gradient would be lost otherwise.
void check_leaves(const variable_list& roots, const variable_list& wanted) {
  std::vector<torch::autograd::Edge> held;  // a leaf's node lives only as long as somebody holds it
  const auto node_of = [&](const at::Tensor& tensor) {
    return held.emplace_back(torch::autograd::impl::gradient_edge(tensor)).function.get();
  };
  std::unordered_set<const Node*> known;
  for (const auto& tensor : wanted) known.insert(node_of(tensor));
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> open;
  const auto visit = [&](const Node* node) {
    if (node != nullptr && seen.insert(node).second) open.push_back(node);
  };
  for (const auto& root : roots) visit(node_of(root));
  while (!open.empty()) {
    const Node* const node = open.back();
    open.pop_back();
    if (known.contains(node)) continue;
    if (const auto* const leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(node)) {
      std::stringstream shape;
      shape << leaf->variable.sizes();
      throw UsageError("recompute: a tensor of shape " + shape.str() +
                       " requires a gradient: expected it among the segment's inputs, conditions or parameters");
    }
    for (const auto& edge : node->next_edges()) visit(edge.function.get());
  }
}

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  // tensors: the inputs, then the parameters.
  static variable_list forward(AutogradContext* context, const Segment& segment, const SegmentParameters& parameters,
                               at::TensorList tensors) {
    context->set_materialize_grads(false);
    context->save_for_backward(tensors.vec());
    context->saved_data["segment"] = c10::IValue::make_capsule(c10::make_intrusive<SegmentHolder>(segment, parameters));
    // Gradients are off inside a custom function's forward.
    return segment(tensors.slice(0, tensors.size() - parameters.used.size()).vec());
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    if (c10::GradMode::is_enabled()) {
      throw UsageError("recompute: expected first derivatives, got create_graph: a recomputed segment has no second");
    }
    const auto capsule = context->saved_data["segment"].toCapsule();
    const auto& held = static_cast<const SegmentHolder&>(*capsule);
    variable_list tensors = context->get_saved_variables();
    const size_t inputs = tensors.size() - held.parameters.used.size();
    std::vector<at::Tensor> values = held.parameters.all.values();
    for (size_t i = 0; i < tensors.size(); ++i) {
      // A parameter that is a leaf stays itself: ops may add to its gradient (ops/gradient.h).
      at::Tensor& tensor = tensors[i];
      if (i < inputs || !tensor.is_leaf()) tensor = tensor.detach().set_requires_grad(tensor.requires_grad());
      if (i >= inputs) values[held.parameters.used[i - inputs]] = tensor;
    }
    variable_list outputs;
    {
      const nn::ParameterGuard with_values(held.parameters.all, std::move(values));
      const c10::AutoGradMode with_gradients(true);
      outputs = held.segment({tensors.begin(), tensors.begin() + static_cast<std::ptrdiff_t>(inputs)});
    }
    variable_list result = {at::Tensor(), at::Tensor()};  // the segment and its parameters' places
    for (auto& gradient : gradients(outputs, grads, tensors)) result.push_back(std::move(gradient));
    return result;
  }

 private:
  // Of each tensor; undefined where it has none, or where an op has added it to .grad itself.
  static variable_list gradients(const variable_list& outputs, const variable_list& grads,
                                 const variable_list& tensors) {
    variable_list roots, root_grads, wanted;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!grads[i].defined() || !outputs[i].requires_grad()) continue;
      roots.push_back(outputs[i]);
      root_grads.push_back(grads[i]);
    }
    std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(wanted),
                 [](const at::Tensor& tensor) { return tensor.requires_grad(); });
    variable_list result(tensors.size());
    check_leaves(roots, wanted);
    if (roots.empty() || wanted.empty()) return result;
    const variable_list made = torch::autograd::grad(roots, wanted, root_grads, /*retain_graph=*/std::nullopt,
                                                     /*create_graph=*/false, /*allow_unused=*/true);
    auto next = made.begin();
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].requires_grad()) result[i] = *next++;
    }
    return result;
  }
};

}  // namespace

std::vector<at::Tensor> recompute(const Segment& segment, const std::vector<at::Tensor>& inputs,
                                  const SegmentParameters& parameters) {
  std::vector<at::Tensor> tensors = inputs;
  const std::vector<at::Tensor> values = parameters.all.values();
  for (const size_t index : parameters.used) tensors.push_back(values.at(index));
  // Without a tensor to differentiate the node would be no part of the graph, and with it whatever else the segment
  // uses.
  if (std::none_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) { return tensor.requires_grad(); })) {
    return segment(inputs);
  }
  return Recompute::apply(segment, parameters, at::TensorList(tensors));
}

}  // namespace siamese::models

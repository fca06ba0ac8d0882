#include "siamese/ops/one_thread.h"

#include <algorithm>
#include <iterator>

#include <omp.h>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

// MKL has a number of threads of its own, LibTorch sets it. A LibTorch without MKL does not have the function; its BLAS
// asks OpenMP.
extern "C" int MKL_Set_Num_Threads_Local(int threads) __attribute__((weak));

namespace siamese::ops {
namespace one_thread_detail {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

int set_mkl_threads(int threads) {
  return MKL_Set_Num_Threads_Local != nullptr ? MKL_Set_Num_Threads_Local(threads) : 0;
}

// What forward made, with the graph that leads from the outputs to the inputs.
struct Made : torch::CustomClassHolder {
  variable_list inputs;  // detached from the caller's graph
  variable_list outputs;
};

class Recorded : public torch::autograd::Function<Recorded> {
 public:
  static variable_list forward(AutogradContext* context, const Expression& expression, at::TensorList inputs) {
    auto made = c10::make_intrusive<Made>();
    for (const auto& input : inputs) made->inputs.push_back(input.detach().set_requires_grad(input.requires_grad()));
    {
      const OneThread one_thread;
      const c10::AutoGradMode with_gradients(true);  // they are off inside a custom function's forward
      made->outputs = expression(made->inputs);
    }
    variable_list outputs;
    variable_list constant;
    for (const auto& output : made->outputs) {
      outputs.push_back(output.detach());
      if (!output.requires_grad()) constant.push_back(outputs.back());
    }
    context->mark_non_differentiable(constant);
    context->set_materialize_grads(false);
    context->saved_data["made"] = c10::IValue::make_capsule(std::move(made));
    return outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto capsule = context->saved_data["made"].toCapsule();
    const auto& made = static_cast<const Made&>(*capsule);
    variable_list roots, root_grads, wanted;
    for (size_t i = 0; i < made.outputs.size(); ++i) {
      if (!grads[i].defined() || !made.outputs[i].requires_grad()) continue;
      roots.push_back(made.outputs[i]);
      root_grads.push_back(grads[i]);
    }
    for (const auto& input : made.inputs) {
      if (input.requires_grad()) wanted.push_back(input);
    }
    variable_list found(wanted.size());
    if (!roots.empty()) {
      const OneThread one_thread;
      // The graph is kept: the caller's may be run again.
      found = torch::autograd::grad(roots, wanted, root_grads, /*retain_graph=*/true, /*create_graph=*/false,
                                    /*allow_unused=*/true);
    }
    variable_list result = {at::Tensor()};  // the expression itself
    size_t next = 0;
    for (const auto& input : made.inputs) result.push_back(input.requires_grad() ? found[next++] : at::Tensor());
    return result;
  }
};

std::vector<bool> which_are_defined(const Tensors& tensors) {
  std::vector<bool> which;
  for (const auto& tensor : tensors) which.push_back(tensor.defined());
  return which;
}

Tensors defined_ones(const Tensors& tensors) {
  Tensors result;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(result), [](const auto& t) { return t.defined(); });
  return result;
}

// The opposite: those that are defined back in their places.
Tensors spread(const Tensors& defined, const std::vector<bool>& which) {
  Tensors result(which.size());
  size_t next = 0;
  for (size_t i = 0; i < which.size(); ++i) {
    if (which[i]) result[i] = defined[next++];
  }
  return result;
}

}  // namespace one_thread_detail

// LibTorch sets the numbers of a thread that is new to it when that thread first asks for them: ask before.
OneThread::OneThread() : openmp_(at::get_num_threads()), mkl_(one_thread_detail::set_mkl_threads(1)) {
  omp_set_num_threads(1);
}

OneThread::~OneThread() {
  omp_set_num_threads(openmp_);
  one_thread_detail::set_mkl_threads(mkl_);
}

Tensors all_on_one_thread(const Tensors& inputs, const Expression& expression) {
  const bool records = c10::GradMode::is_enabled() && std::any_of(inputs.begin(), inputs.end(), [](const auto& input) {
                         return input.defined() && input.requires_grad();
                       });
  if (!records) {
    const OneThread one_thread;
    return expression(inputs);
  }
  // An undefined tensor may be neither input nor output of an autograd node.
  std::vector<bool> made;
  const Expression of_defined = [&](const Tensors& defined) {
    const Tensors outputs =
        expression(one_thread_detail::spread(defined, one_thread_detail::which_are_defined(inputs)));
    made = one_thread_detail::which_are_defined(outputs);
    return one_thread_detail::defined_ones(outputs);
  };
  const Tensors defined = one_thread_detail::defined_ones(inputs);
  const Tensors outputs = one_thread_detail::Recorded::apply(of_defined, at::TensorList(defined));
  return one_thread_detail::spread(outputs, made);
}

}  // namespace siamese::ops

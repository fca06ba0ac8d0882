#include "siamese/ops/junction.h"

#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "siamese/kernels/junction.h"
#include "siamese/ops/gradient.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/norm.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {

namespace plain {

JunctionResult junction(const Junction& j) {
  const auto normed = [&](const NormStep& norm, const at::Tensor& value) {
    if (!norm.present) return value;
    return norm.layer ? layer_norm(value, norm.gain, norm.bias, norm.eps) : rms_norm(value, norm.gain, norm.eps);
  };
  JunctionResult result;
  result.y = j.y_skip != 1 ? j.y * j.y_skip : j.y;
  result.x_sum = j.x;
  if (j.branch.defined()) {
    const at::Tensor branch = normed(j.branch_norm, j.branch);
    if (j.x.defined() && j.x_branch != 0) result.x_sum = at::add(j.x, branch, j.x_branch);
    if (j.y_branch != 0) result.y = at::add(result.y, branch, j.y_branch);
  }
  at::Tensor merged = normed(j.y_norm, result.y);
  if (j.x.defined()) {
    result.x = normed(j.x_norm, result.x_sum);
    merged = (j.x_scale.defined() ? j.x_scale * result.x : result.x) + merged;
  }
  result.input = normed(j.input_norm, merged);
  if (j.input_scale != 1) result.input = result.input * j.input_scale;
  return result;
}

}  // namespace plain

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// The tensors of a junction in one order; undefined ones are left out of what autograd sees.
enum Slot { kBranch, kX, kY, kXScale, kGains, kSlots = kGains + 8 };  // then gain, bias of branch, x, y, input norms

std::array<at::Tensor, kSlots> slots_of(const Junction& j) {
  return {j.branch,      j.x,           j.y,           j.x_scale,     j.branch_norm.gain, j.branch_norm.bias,
          j.x_norm.gain, j.x_norm.bias, j.y_norm.gain, j.y_norm.bias, j.input_norm.gain,  j.input_norm.bias};
}

Junction with_slots(Junction j, const Tensors& slots) {
  j.branch = slots[kBranch];
  j.x = slots[kX];
  j.y = slots[kY];
  j.x_scale = slots[kXScale];
  size_t next = kGains;
  for (NormStep* norm : {&j.branch_norm, &j.x_norm, &j.y_norm, &j.input_norm}) {
    norm->gain = slots[next++];
    norm->bias = slots[next++];
  }
  return j;
}

// What backward must know beside the tensors.
struct Shape : torch::CustomClassHolder {
  kernels::Junction numbers;  // pointers are set anew
  std::array<bool, kSlots> defined{};
  bool makes_x = false;  // U is made, not given
  bool makes_y = false;  // V likewise
  // Where V, X, input and U stand among the outputs; -1: not made.
  std::array<int, 4> output{-1, -1, -1, -1};
};

std::array<kernels::RowNorm*, 4> norms_of(kernels::Junction& numbers) {
  return {&numbers.branch_norm, &numbers.x_norm, &numbers.y_norm, &numbers.input_norm};
}

// Gains, scales and statistics ([8, rows]: mean and rstd of each norm) into the kernel's pointers.
void point(kernels::Junction& numbers, const std::array<at::Tensor, kSlots>& slots, const at::Tensor& statistics) {
  numbers.x_scale = data_or_null(slots[kXScale]);
  const auto norms = norms_of(numbers);
  float* row_statistics = statistics.mutable_data_ptr<float>();
  for (size_t i = 0; i < norms.size(); ++i) {
    norms[i]->gain = data_or_null(slots[kGains + 2 * i]);
    norms[i]->bias = data_or_null(slots[kGains + 2 * i + 1]);
    norms[i]->mean = std::exchange(row_statistics, row_statistics + statistics.size(1));
    norms[i]->rstd = std::exchange(row_statistics, row_statistics + statistics.size(1));
  }
}

class FusedJunction : public torch::autograd::Function<FusedJunction> {
 public:
  // -> those of V, X, input and U that are made
  static tensor_list forward(AutogradContext* context, const c10::intrusive_ptr<Shape>& shape, at::TensorList inputs) {
    std::array<at::Tensor, kSlots> slots;
    size_t next = 0;
    for (size_t i = 0; i < kSlots; ++i) {
      if (shape->defined[i]) slots[i] = inputs[next++].contiguous();
    }
    const at::Tensor& y = slots[kY];
    kernels::Junction& numbers = shape->numbers;
    const int64_t rows = y.numel() / numbers.cols;
    const at::Tensor statistics = at::empty({8, rows}, y.options());
    point(numbers, slots, statistics);
    const bool two_streams = slots[kX].defined();
    const bool plain_input = !two_streams && !numbers.y_norm.present && numbers.input_scale == 1;
    at::Tensor y_sum, x_sum, x, input;
    if (shape->makes_y) y_sum = at::empty_like(y);
    if (shape->makes_x) x_sum = at::empty_like(y);
    if (numbers.x_norm.present) x = at::empty_like(y);
    if (!plain_input) input = at::empty_like(y);
    kernels::JunctionRows row_data;
    row_data.branch = data_or_null(slots[kBranch]);
    row_data.x = data_or_null(slots[kX]);
    row_data.y = y.const_data_ptr<float>();
    row_data.x_sum = writable_or_null(x_sum);
    row_data.y_sum = writable_or_null(y_sum);
    row_data.x_out = writable_or_null(x);
    row_data.input = writable_or_null(input);
    at::parallel_for(0, rows, row_grain(numbers.cols),
                     [&](int64_t begin, int64_t end) { kernels::junction_forward(numbers, row_data, begin, end); });
    tensor_list saved(slots.begin(), slots.end());
    if (!numbers.branch_norm.present) saved[kBranch] = at::Tensor();
    if (shape->makes_x) saved[kX] = x_sum;
    if (shape->makes_y) saved[kY] = y_sum;
    saved.push_back(statistics);
    context->save_for_backward(saved);
    context->saved_data["shape"] = c10::IValue::make_capsule(shape);
    // Without a norm of its own X is U, and carries its gradient.
    const bool u_is_x = x_sum.defined() && !numbers.x_norm.present;
    if (x_sum.defined() && !u_is_x) context->mark_non_differentiable({x_sum});
    tensor_list outputs;
    const std::array<at::Tensor, 4> made = {y_sum, u_is_x ? x_sum : x, input, u_is_x ? at::Tensor() : x_sum};
    for (size_t i = 0; i < made.size(); ++i) {
      if (!made[i].defined()) continue;  // an output must be a tensor
      shape->output[i] = static_cast<int>(outputs.size());
      outputs.push_back(made[i]);
    }
    return outputs;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const auto shape = c10::static_intrusive_pointer_cast<Shape>(context->saved_data["shape"].toCapsule());
    kernels::Junction numbers = shape->numbers;
    std::array<at::Tensor, kSlots> slots;
    std::copy_n(saved.begin(), kSlots, slots.begin());
    point(numbers, slots, saved[kSlots]);
    const at::Tensor& y_sum = slots[kY];
    const int64_t cols = numbers.cols;
    const auto dense = [](const at::Tensor& tensor) { return tensor.defined() ? tensor.contiguous() : tensor; };
    const auto gradient_of = [&](size_t output) {
      const int at = shape->output[output];
      return at < 0 ? at::Tensor() : dense(grads[static_cast<size_t>(at)]);
    };
    const at::Tensor d_y_sum = gradient_of(0);
    const at::Tensor d_x_out = gradient_of(1);
    const at::Tensor d_input = gradient_of(2);

    std::array<at::Tensor, kSlots> gradients;
    for (const Slot slot : {kBranch, kX, kY}) {
      if (shape->defined[slot]) gradients[slot] = at::empty_like(y_sum);
    }
    kernels::JunctionGradients wanted;
    wanted.branch = data_or_null(slots[kBranch]);
    wanted.x_sum = data_or_null(slots[kX]);
    wanted.y_sum = y_sum.const_data_ptr<float>();
    wanted.d_x_out = data_or_null(d_x_out);
    wanted.d_y_sum = data_or_null(d_y_sum);
    wanted.d_input = data_or_null(d_input);
    wanted.d_x = writable_or_null(gradients[kX]);
    wanted.d_y = writable_or_null(gradients[kY]);
    wanted.d_branch = writable_or_null(gradients[kBranch]);

    std::vector<size_t> summed;  // the slots whose gradients are sums over rows
    for (size_t i = kXScale; i < kSlots; ++i) {
      if (shape->defined[i]) summed.push_back(i);
    }
    RowPartials partials(y_sum.numel() / cols, cols, static_cast<int>(summed.size()));
    partials.for_each([&](int64_t begin, int64_t end, float* const* sums) {
      static thread_local std::vector<float> scratch;
      scratch.resize(static_cast<size_t>(kernels::kJunctionScratchRows * cols));
      kernels::JunctionGradients mine = wanted;
      std::array<float*, kSlots> pointers{};
      for (size_t i = 0; i < summed.size(); ++i) pointers[summed[i]] = sums[i];
      mine.d_x_scale = pointers[kXScale];
      mine.branch_norm = {pointers[kGains], pointers[kGains + 1]};
      mine.x_norm = {pointers[kGains + 2], pointers[kGains + 3]};
      mine.y_norm = {pointers[kGains + 4], pointers[kGains + 5]};
      mine.input_norm = {pointers[kGains + 6], pointers[kGains + 7]};
      mine.scratch = scratch.data();
      kernels::junction_backward(numbers, mine, begin, end);
    });
    for (size_t i = 0; i < summed.size(); ++i) {
      const at::Tensor& parameter = slots[summed[i]];
      if (adds_in_place(parameter)) {
        partials.add_total(static_cast<int>(i), parameter.grad());
      } else {
        gradients[summed[i]] = partials.total(static_cast<int>(i));
      }
    }

    tensor_list result = {at::Tensor()};  // for the shape
    for (size_t i = 0; i < kSlots; ++i) {
      if (shape->defined[i]) result.push_back(gradients[i]);
    }
    return result;
  }
};

std::array<const NormStep*, 4> norms_of(const Junction& j) {
  return {&j.branch_norm, &j.x_norm, &j.y_norm, &j.input_norm};
}

bool one_kind_of_norm(const Junction& j) {
  bool layer = false;
  bool rms = false;
  for (const NormStep* norm : norms_of(j)) (norm->layer ? layer : rms) |= norm->present;
  return !(layer && rms);
}

kernels::RowNorm numbers_of(const NormStep& norm) {
  kernels::RowNorm row;
  row.present = norm.present;
  row.eps = static_cast<float>(norm.eps);
  return row;
}

}  // namespace

JunctionResult junction(const Junction& j) {
  const PartScope scope("part::junction");
  const auto slots = slots_of(j);
  if (!one_kind_of_norm(j) || !use_fused("junction", {j.branch, j.x, j.y, j.x_scale, j.y_norm.gain, j.x_norm.gain})) {
    const Tensors made = all_on_one_thread({slots.begin(), slots.end()}, [&](const Tensors& given) {
      const JunctionResult result = plain::junction(with_slots(j, given));
      return Tensors{result.x, result.y, result.input, result.x_sum};
    });
    return {made[0], made[1], made[2], made[3]};
  }
  const auto shape = c10::make_intrusive<Shape>();
  for (const NormStep* norm : norms_of(j)) shape->numbers.layer |= norm->present && norm->layer;
  shape->numbers.cols = j.y.size(-1);
  shape->numbers.x_branch = static_cast<float>(j.x_branch);
  shape->numbers.y_branch = static_cast<float>(j.y_branch);
  shape->numbers.y_skip = static_cast<float>(j.y_skip);
  shape->numbers.input_scale = static_cast<float>(j.input_scale);
  shape->numbers.branch_norm = numbers_of(j.branch_norm);
  shape->numbers.x_norm = numbers_of(j.x_norm);
  shape->numbers.y_norm = numbers_of(j.y_norm);
  shape->numbers.input_norm = numbers_of(j.input_norm);
  shape->makes_x = j.x.defined() && j.branch.defined() && j.x_branch != 0;
  shape->makes_y = (j.branch.defined() && j.y_branch != 0) || j.y_skip != 1;
  std::vector<at::Tensor> inputs;
  for (size_t i = 0; i < kSlots; ++i) {
    shape->defined[i] = slots[i].defined();
    if (slots[i].defined()) inputs.push_back(slots[i]);
  }
  const bool nothing_to_do = !shape->makes_y && !j.x.defined() && !j.y_norm.present && j.input_scale == 1;
  if (nothing_to_do) return plain::junction(j);
  const tensor_list made = FusedJunction::apply(shape, at::TensorList(inputs));
  const auto output_or = [&](size_t output, const at::Tensor& otherwise) {
    const int at = shape->output[output];
    return at < 0 ? otherwise : made[static_cast<size_t>(at)];
  };
  JunctionResult result;
  result.y = output_or(0, j.y);
  result.x = output_or(1, j.x);
  result.input = output_or(2, result.y);
  result.x_sum = output_or(3, j.x_norm.present ? j.x : result.x);
  return result;
}

}  // namespace siamese::ops

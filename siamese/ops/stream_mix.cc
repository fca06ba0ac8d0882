#include "siamese/ops/stream_mix.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "siamese/kernels/stream_mix.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/norm.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/row_linear.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {

namespace plain {
namespace stream_mix_detail {

// Coefficients of `dims` dimensions for all rows become those of each row.
at::Tensor for_rows_of(const at::Tensor& stream, const at::Tensor& coefficients, int64_t dims) {
  if (coefficients.dim() != dims) return coefficients;
  return for_each_row(coefficients, stream.sizes().slice(0, static_cast<size_t>(stream.dim() - 1)));
}

}  // namespace stream_mix_detail

std::vector<at::Tensor> stream_mix(const std::vector<at::Tensor>& streams, const at::Tensor& matrix,
                                   const at::Tensor& branch, const at::Tensor& branch_weights) {
  const at::Tensor mixing = stream_mix_detail::for_rows_of(streams[0], matrix, 2);
  const at::Tensor weights = stream_mix_detail::for_rows_of(streams[0], branch_weights, 1);
  std::vector<at::Tensor> out = at::matmul(mixing, at::stack(streams, -2)).unbind(-2);
  for (size_t j = 0; j < out.size(); ++j) {
    out[j] = out[j] + weights.select(-1, static_cast<int64_t>(j)).unsqueeze(-1) * branch;
  }
  return out;
}

StreamRead stream_read(const std::vector<at::Tensor>& streams, const at::Tensor& weights, const NormStep& norm) {
  const at::Tensor mixing = stream_mix_detail::for_rows_of(streams[0], weights, 1).unsqueeze(-2);
  const at::Tensor sum = at::matmul(mixing, at::stack(streams, -2)).squeeze(-2);
  if (!norm.present) return {sum, streams};
  return {norm.layer ? layer_norm(sum, norm.gain, norm.bias, norm.eps) : rms_norm(sum, norm.gain, norm.eps), streams};
}

}  // namespace plain

namespace stream_mix_detail {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// What a pass is beside its tensors, which come as: the streams, M, z and b (a write) or those of gain and bias that
// are there (a read).
struct Pass : torch::CustomClassHolder {
  kernels::StreamMix numbers;  // pointers are set anew
  bool write = false;
  bool gain = false;
  bool bias = false;

  size_t streams() const { return static_cast<size_t>(numbers.streams); }
  size_t outputs() const { return static_cast<size_t>(numbers.outputs); }
  size_t matrix_at() const { return streams(); }
  size_t branch_at() const { return streams() + 1; }
  size_t weights_at() const { return streams() + 2; }
  size_t gain_at() const { return streams() + 1; }
  size_t bias_at() const { return streams() + (gain ? 2 : 1); }
  // Floats of M, and of b, of one row.
  int64_t matrix_size() const { return static_cast<int64_t>(numbers.outputs) * numbers.streams; }
};

// Coefficients and statistics ([2, rows]) into the kernel's pointers.
kernels::StreamMix pointed(const Pass& pass, const tensor_list& inputs, const at::Tensor& statistics) {
  kernels::StreamMix mix = pass.numbers;
  mix.matrix = inputs[pass.matrix_at()].const_data_ptr<float>();
  if (pass.write) mix.branch_weights = inputs[pass.weights_at()].const_data_ptr<float>();
  if (pass.gain) mix.norm.gain = inputs[pass.gain_at()].const_data_ptr<float>();
  if (pass.bias) mix.norm.bias = inputs[pass.bias_at()].const_data_ptr<float>();
  if (mix.norm.present) {
    mix.norm.mean = statistics[0].mutable_data_ptr<float>();
    mix.norm.rstd = statistics[1].mutable_data_ptr<float>();
  }
  return mix;
}

class FusedStreamMix : public torch::autograd::Function<FusedStreamMix> {
 public:
  // -> the outputs; a read: also the streams it got.
  static tensor_list forward(AutogradContext* context, const c10::intrusive_ptr<Pass>& pass, at::TensorList given) {
    tensor_list inputs;
    for (const at::Tensor& tensor : given) inputs.push_back(tensor.contiguous());
    const at::Tensor& first = inputs[0];
    const int64_t cols = pass->numbers.cols;
    const int64_t rows = first.numel() / cols;
    const at::Tensor statistics = pass->numbers.norm.present ? at::empty({2, rows}, first.options()) : at::Tensor();
    const kernels::StreamMix mix = pointed(*pass, inputs, statistics);
    kernels::StreamMixRows row_data;
    tensor_list outputs;
    for (size_t i = 0; i < pass->streams(); ++i) row_data.streams[i] = inputs[i].const_data_ptr<float>();
    for (size_t j = 0; j < pass->outputs(); ++j) {
      outputs.push_back(at::empty_like(first));
      row_data.outputs[j] = outputs[j].mutable_data_ptr<float>();
    }
    if (pass->write) row_data.branch = inputs[pass->branch_at()].const_data_ptr<float>();
    at::parallel_for(0, rows, row_grain(cols),
                     [&](int64_t begin, int64_t end) { kernels::stream_mix_forward(mix, row_data, begin, end); });
    inputs.push_back(statistics);
    context->save_for_backward(inputs);
    context->saved_data["pass"] = c10::IValue::make_capsule(pass);
    if (!pass->write) outputs.insert(outputs.end(), given.begin(), given.begin() + pass->numbers.streams);
    return outputs;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto inputs = context->get_saved_variables();  // the statistics come last
    const auto pass = c10::static_intrusive_pointer_cast<Pass>(context->saved_data["pass"].toCapsule());
    const int64_t cols = pass->numbers.cols;
    const int64_t rows = inputs[0].numel() / cols;
    const kernels::StreamMix mix = pointed(*pass, inputs, inputs.back());
    tensor_list kept, gradients;
    for (const at::Tensor& grad : grads) kept.push_back(grad.contiguous());
    for (size_t i = 0; i + 1 < inputs.size(); ++i) gradients.push_back(at::empty_like(inputs[i]));

    kernels::StreamMixGradients wanted;
    for (size_t j = 0; j < pass->outputs(); ++j) wanted.d_outputs[j] = kept[j].const_data_ptr<float>();
    for (size_t i = 0; i < pass->streams(); ++i) {
      wanted.streams[i] = inputs[i].const_data_ptr<float>();
      wanted.d_streams[i] = gradients[i].mutable_data_ptr<float>();
      if (!pass->write) wanted.through[i] = kept[pass->outputs() + i].const_data_ptr<float>();
    }
    wanted.d_matrix = gradients[pass->matrix_at()].mutable_data_ptr<float>();
    if (pass->write) {
      wanted.branch = inputs[pass->branch_at()].const_data_ptr<float>();
      wanted.d_branch = gradients[pass->branch_at()].mutable_data_ptr<float>();
      wanted.d_branch_weights = gradients[pass->weights_at()].mutable_data_ptr<float>();
    }

    // Sums over rows: gain, bias, and M with b where one serves all rows, which may be more numbers than a row has.
    const int64_t matrix_size = pass->matrix_size();
    RowPartials partials(rows, std::max(cols, matrix_size + pass->numbers.outputs), 3);
    partials.for_each([&](int64_t begin, int64_t end, float* const* sums) {
      static thread_local std::vector<float> scratch;
      scratch.resize(static_cast<size_t>(kernels::kStreamMixScratchRows * cols));
      kernels::StreamMixGradients mine = wanted;
      mine.scratch = scratch.data();
      mine.norm = {pass->gain ? sums[0] : nullptr, pass->bias ? sums[1] : nullptr};
      if (!mix.each_row) {
        mine.d_matrix = sums[2];
        mine.d_branch_weights = sums[2] + matrix_size;
      }
      kernels::stream_mix_backward(mix, mine, begin, end);
    });
    const auto take = [&](size_t at, int sum, int64_t offset) {
      gradients[at] = partials.total(sum).narrow(0, offset, gradients[at].numel()).view_as(gradients[at]);
    };
    if (pass->gain) take(pass->gain_at(), 0, 0);
    if (pass->bias) take(pass->bias_at(), 1, 0);
    if (!mix.each_row) take(pass->matrix_at(), 2, 0);
    if (!mix.each_row && pass->write) take(pass->weights_at(), 2, matrix_size);
    gradients.insert(gradients.begin(), at::Tensor());  // for the pass
    return gradients;
  }
};

c10::intrusive_ptr<Pass> pass_over(const std::vector<at::Tensor>& streams, int64_t outputs, bool each_row) {
  auto pass = c10::make_intrusive<Pass>();
  pass->numbers.cols = streams[0].size(-1);
  pass->numbers.streams = static_cast<int>(streams.size());
  pass->numbers.outputs = static_cast<int>(outputs);
  pass->numbers.each_row = each_row;
  return pass;
}

}  // namespace stream_mix_detail

std::vector<at::Tensor> stream_mix(const std::vector<at::Tensor>& streams, const at::Tensor& matrix,
                                   const at::Tensor& branch, const at::Tensor& branch_weights) {
  using namespace stream_mix_detail;
  const int64_t outputs = matrix.size(-2);
  const auto most = static_cast<size_t>(kernels::kMaxMixedStreams);
  const bool too_many = streams.size() > most || static_cast<size_t>(outputs) > most;
  const PartScope scope("part::junction");
  if (too_many || !use_fused("stream_mix", {streams[0], streams.back(), matrix, branch, branch_weights})) {
    Tensors inputs = {matrix, branch, branch_weights};
    inputs.insert(inputs.end(), streams.begin(), streams.end());
    return all_on_one_thread(inputs, [](const Tensors& given) {
      return plain::stream_mix({given.begin() + 3, given.end()}, given[0], given[1], given[2]);
    });
  }
  const auto pass = pass_over(streams, outputs, matrix.dim() != 2);
  pass->write = true;
  tensor_list inputs = streams;
  inputs.insert(inputs.end(), {matrix, branch, branch_weights});
  return FusedStreamMix::apply(pass, at::TensorList(inputs));
}

StreamRead stream_read(const std::vector<at::Tensor>& streams, const at::Tensor& weights, const NormStep& norm) {
  using namespace stream_mix_detail;
  const PartScope scope("part::junction");
  const bool fused = use_fused("stream_read", {streams[0], streams.back(), weights, norm.gain});
  if (!fused || streams.size() > static_cast<size_t>(kernels::kMaxMixedStreams)) {  // the norm may have a kernel
    Tensors inputs = {weights};
    inputs.insert(inputs.end(), streams.begin(), streams.end());
    const at::Tensor sum = on_one_thread(inputs, [](const Tensors& given) {
      return plain::stream_read({given.begin() + 1, given.end()}, given[0], {}).input;
    });
    return {apply(norm, sum), streams};
  }
  const auto pass = pass_over(streams, 1, weights.dim() != 1);
  pass->numbers.layer = norm.layer;
  pass->numbers.norm.present = norm.present;
  pass->numbers.norm.eps = static_cast<float>(norm.eps);
  pass->gain = norm.gain.defined();
  pass->bias = norm.bias.defined();
  tensor_list inputs = streams;
  inputs.push_back(weights);
  if (pass->gain) inputs.push_back(norm.gain);
  if (pass->bias) inputs.push_back(norm.bias);
  const tensor_list made = FusedStreamMix::apply(pass, at::TensorList(inputs));
  return {made[0], {made.begin() + 1, made.end()}};
}

}  // namespace siamese::ops

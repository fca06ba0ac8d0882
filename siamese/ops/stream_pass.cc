#include "siamese/ops/stream_pass.h"

#include <algorithm>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/kernels/stream_mix.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/row_linear.h"
#include "siamese/ops/wide.h"

namespace siamese::ops::stream_pass {

at::Tensor for_rows_of(const at::Tensor& stream, const at::Tensor& coefficients, int64_t dims) {
  if (coefficients.dim() != dims) return coefficients;
  return plain::for_each_row(coefficients, stream.sym_sizes().slice(0, static_cast<size_t>(stream.dim() - 1)));
}

const at::Tensor& first_of(at::TensorList streams) {
  static const at::Tensor none;
  return streams.empty() ? none : streams[0];
}

void check_streams(const Arguments& arguments, at::TensorList streams) {
  arguments.least_rank("streams", streams[0], 1);
  for (const at::Tensor& stream : streams) arguments.shape("streams", stream, streams[0].sym_sizes());
}

c10::SymDimVector coefficient_shape(const at::Tensor& stream, bool each_row, c10::SymIntArrayRef last) {
  c10::SymDimVector shape;
  if (each_row) {
    const auto leading = stream.sym_sizes().slice(0, static_cast<size_t>(stream.dim() - 1));
    shape.append(leading.begin(), leading.end());
  }
  shape.append(last.begin(), last.end());
  return shape;
}

bool is_absent(const at::Tensor& gradient) {
  return !gradient.defined() || (gradient.dim() == 1 && gradient.sym_size(0) == 0);
}

void check_gradients(const Arguments& arguments, const char* name, at::TensorList gradients, size_t count,
                     const at::Tensor& like) {
  arguments.require(gradients.size() == count, name, std::to_string(count) + " tensors",
                    std::to_string(gradients.size()));
  for (const at::Tensor& gradient : gradients) {
    if (!is_absent(gradient)) arguments.shape(name, gradient, like.sym_sizes());
  }
}

Tensors with_absent(const Tensors& gradients, const at::Tensor& like) {
  Tensors result;
  for (const at::Tensor& gradient : gradients) result.push_back(gradient.defined() ? gradient : no_gradient(like));
  return result;
}

bool has_kernel(const char* op, at::TensorList streams, int64_t outputs) {
  const auto most = static_cast<size_t>(kernels::kMaxMixedStreams);
  return streams.size() <= most && outputs >= 1 && outputs <= kernels::kMaxMixedStreams && use_fused(op, {streams[0]});
}

namespace {

int64_t rows_of(const at::Tensor& stream) {
  return c10::multiply_integers(stream.sizes().slice(0, stream.sizes().size() - 1));
}

kernels::StreamMix pointed(const StreamPass& pass) {
  kernels::StreamMix mix;
  mix.cols = pass.streams[0].size(-1);
  mix.streams = static_cast<int>(pass.streams.size());
  mix.outputs = static_cast<int>(pass.outputs);
  mix.each_row = pass.each_row;
  mix.matrix = data_or_null(pass.matrix);
  mix.branch_weights = data_or_null(pass.branch_weights);
  if (!pass.norm.present) return mix;
  mix.layer = pass.norm.layer;
  mix.norm.present = true;
  mix.norm.eps = static_cast<float>(pass.norm.eps);
  mix.norm.gain = data_or_null(pass.norm.gain);
  float* next = pass.statistics.mutable_data_ptr<float>();
  if (pass.norm.layer) {
    mix.norm.bias = data_or_null(pass.norm.bias);
    mix.norm.mean = std::exchange(next, next + rows_of(pass.streams[0]));
  }
  mix.norm.rstd = next;
  return mix;
}

// A sum over rows in the shape of its tensor: the parts' buffers are as wide as the widest of them.
at::Tensor total_like(const RowPartials& partials, int sum, int64_t offset, const at::Tensor& like) {
  return partials.total(sum).narrow(0, offset, like.numel()).clone().view(like.sizes());
}

// Gradients that backward_rows overwrites, row by row, and the kernel's pointers to them.
StreamPassGradients empty_gradients(const StreamPass& pass, kernels::StreamMixGradients& rows) {
  StreamPassGradients made;
  for (size_t i = 0; i < pass.streams.size(); ++i) {
    made.streams.push_back(empty_dense(pass.streams[i]));
    rows.streams[i] = pass.streams[i].const_data_ptr<float>();
    rows.d_streams[i] = made.streams[i].mutable_data_ptr<float>();
  }
  if (pass.branch.defined()) {
    made.branch = empty_dense(pass.branch);
    rows.branch = pass.branch.const_data_ptr<float>();
    rows.d_branch = made.branch.mutable_data_ptr<float>();
  }
  if (!pass.each_row) return made;  // else they are sums over rows
  made.matrix = empty_dense(pass.matrix);
  rows.d_matrix = made.matrix.mutable_data_ptr<float>();
  if (pass.branch.defined()) {
    made.branch_weights = empty_dense(pass.branch_weights);
    rows.d_branch_weights = made.branch_weights.mutable_data_ptr<float>();
  }
  return made;
}

}  // namespace

Tensors forward_rows(const StreamPass& pass) {
  const kernels::StreamMix mix = pointed(pass);
  kernels::StreamMixRows rows;
  for (size_t i = 0; i < pass.streams.size(); ++i) rows.streams[i] = pass.streams[i].const_data_ptr<float>();
  Tensors outputs;
  for (size_t j = 0; j < static_cast<size_t>(pass.outputs); ++j) {
    outputs.push_back(at::empty(pass.streams[0].sizes(), half_if(pass.half_input, pass.streams[0])));
    if (!pass.half_input) rows.outputs[j] = outputs[j].mutable_data_ptr<float>();
  }
  if (pass.half_input) rows.half_output = writable_of<kernels::Bfloat16>(outputs[0]);
  rows.branch = data_or_null(pass.branch);
  at::parallel_for(0, rows_of(pass.streams[0]), row_grain(mix.cols), [&](int64_t begin, int64_t end) {
    static thread_local std::vector<float> scratch;
    scratch.resize(static_cast<size_t>(mix.cols));
    kernels::StreamMixRows mine = rows;
    mine.scratch = scratch.data();
    kernels::stream_mix_forward(mix, mine, begin, end);
  });
  return outputs;
}

StreamPassGradients backward_rows(const StreamPass& pass, at::TensorList d_outputs, at::TensorList through) {
  const kernels::StreamMix mix = pointed(pass);
  kernels::StreamMixGradients rows;
  StreamPassGradients made = empty_gradients(pass, rows);
  Tensors dense;  // keeps what the kernel points into
  for (size_t j = 0; j < d_outputs.size(); ++j) {
    if (is_absent(d_outputs[j])) continue;
    dense.push_back(d_outputs[j].contiguous());
    if (dense.back().scalar_type() == at::kBFloat16) {
      rows.half_d_output = data_of<kernels::Bfloat16>(dense.back());
    } else {
      rows.d_outputs[j] = dense.back().const_data_ptr<float>();
    }
  }
  for (size_t i = 0; i < through.size(); ++i) {
    if (is_absent(through[i])) continue;
    dense.push_back(through[i].contiguous());
    rows.through[i] = dense.back().const_data_ptr<float>();
  }

  // Sums over rows: gain, bias, and M with b where one serves all rows, which may be more numbers than a row has.
  const int64_t matrix_size = pass.outputs * static_cast<int64_t>(pass.streams.size());
  const bool gain = pass.norm.present && pass.norm.gain.defined();
  const bool bias = pass.norm.present && pass.norm.layer && pass.norm.bias.defined();
  RowPartials partials(rows_of(pass.streams[0]), std::max(mix.cols, matrix_size + pass.outputs), 3);
  partials.for_each([&](int64_t begin, int64_t end, float* const* sums) {
    static thread_local std::vector<float> scratch;
    scratch.resize(static_cast<size_t>(kernels::kStreamMixScratchRows * mix.cols));
    kernels::StreamMixGradients mine = rows;
    mine.scratch = scratch.data();
    mine.norm = {gain ? sums[0] : nullptr, bias ? sums[1] : nullptr};
    if (!mix.each_row) {
      mine.d_matrix = sums[2];
      mine.d_branch_weights = sums[2] + matrix_size;
    }
    kernels::stream_mix_backward(mix, mine, begin, end);
  });
  if (gain) made.gain = total_like(partials, 0, 0, pass.norm.gain);
  if (bias) made.bias = total_like(partials, 1, 0, pass.norm.bias);
  if (!mix.each_row) made.matrix = total_like(partials, 2, 0, pass.matrix);
  if (!mix.each_row && pass.branch.defined()) {
    made.branch_weights = total_like(partials, 2, matrix_size, pass.branch_weights);
  }
  return made;
}

}  // namespace siamese::ops::stream_pass

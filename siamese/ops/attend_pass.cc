#include "siamese/ops/attend_pass.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/kernels/stream_attend.h"
#include "siamese/ops/library.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/stream_pass.h"
#include "siamese/ops/wide.h"

namespace siamese::ops::attend_pass {
namespace {

at::Tensor dense(const at::Tensor& tensor) { return tensor.defined() ? tensor.contiguous() : tensor; }

int64_t rows_of(const AttendPass& pass) { return pass.streams[0].numel() / pass.query.numel(); }

kernels::StreamAttend pointed(const AttendPass& pass) {
  kernels::StreamAttend attend;
  attend.cols = pass.query.numel();
  attend.streams = static_cast<int64_t>(pass.streams.size());
  attend.query = pass.query.const_data_ptr<float>();
  attend.eps = static_cast<float>(pass.eps);
  attend.layer = pass.norm.layer;
  attend.norm.present = pass.norm.present;
  attend.norm.eps = static_cast<float>(pass.norm.eps);
  attend.norm.gain = data_or_null(pass.norm.gain);
  attend.norm.bias = data_or_null(pass.norm.bias);
  attend.statistics = pass.statistics.mutable_data_ptr<float>();
  return attend;
}

std::vector<const float*> pointers_of(at::TensorList tensors) {
  std::vector<const float*> result;
  for (const at::Tensor& tensor : tensors) {
    result.push_back(stream_pass::is_absent(tensor) ? nullptr : tensor.const_data_ptr<float>());
  }
  return result;
}

}  // namespace

AttendPass::AttendPass(at::TensorList given, const at::Tensor& q, double key_eps, const NormStep& step,
                       const at::Tensor& made)
    : query(q.contiguous()), eps(key_eps), norm(step), statistics(made.contiguous()) {
  for (const at::Tensor& stream : given) streams.push_back(stream.contiguous());
  norm.gain = dense(norm.gain);
  norm.bias = dense(norm.bias);
}

AttendOutputs forward_rows(const AttendPass& pass, const at::Tensor& given_branch, bool half_input) {
  const at::Tensor& last = pass.streams.back();
  const at::Tensor branch = dense(given_branch);
  AttendOutputs made{at::empty(last.sizes(), half_if(half_input, last)),
                     branch.defined() ? at::empty_like(last) : no_gradient(last)};
  std::vector<const float*> used = pointers_of(pass.streams);
  if (branch.defined()) used.back() = made.sum.const_data_ptr<float>();
  kernels::StreamAttendRows rows;
  rows.streams = used.data();
  rows.last = last.const_data_ptr<float>();
  rows.branch = data_or_null(branch);
  rows.sum = made.sum.mutable_data_ptr<float>();
  if (half_input) {
    rows.half_input = writable_of<kernels::Bfloat16>(made.input);
  } else {
    rows.input = made.input.mutable_data_ptr<float>();
  }
  const kernels::StreamAttend attend = pointed(pass);
  at::parallel_for(0, rows_of(pass), row_grain(attend.cols * attend.streams), [&](int64_t begin, int64_t end) {
    static thread_local std::vector<float> scratch;
    scratch.resize(static_cast<size_t>(attend.streams + attend.cols));
    kernels::StreamAttendRows mine = rows;
    mine.scratch = scratch.data();
    kernels::stream_attend_forward(attend, mine, begin, end);
  });
  return made;
}

AttendGradients backward_rows(const AttendPass& pass, const at::Tensor& given_d_input, at::TensorList given_through,
                              const AttendWanted& wanted) {
  const at::Tensor d_input = dense(given_d_input);
  const bool half_input = d_input.defined() && d_input.scalar_type() == at::kBFloat16;
  Tensors through;
  for (const at::Tensor& gradient : given_through) through.push_back(dense(gradient));
  AttendGradients made;
  std::vector<float*> written;
  for (const at::Tensor& stream : pass.streams) {
    made.streams.push_back(wanted.streams ? at::empty_like(stream) : no_gradient(stream));
    written.push_back(made.streams.back().mutable_data_ptr<float>());
  }
  const bool want_gain = wanted.gain && pass.norm.gain.defined();
  const bool want_bias = wanted.bias && pass.norm.bias.defined();
  const std::vector<const float*> used = pointers_of(pass.streams);
  const std::vector<const float*> came = pointers_of(through);
  const kernels::StreamAttend attend = pointed(pass);
  RowPartials partials(rows_of(pass), attend.cols, 3);
  partials.for_each([&](int64_t begin, int64_t end, float* const* sums) {
    static thread_local std::vector<float> scratch;
    static thread_local std::vector<double> dots;
    scratch.resize(static_cast<size_t>(3 * attend.cols + 2 * attend.streams));
    dots.resize(static_cast<size_t>(attend.streams));
    kernels::StreamAttendGradients rows;
    rows.streams = used.data();
    if (half_input) {
      rows.half_d_input = data_of<kernels::Bfloat16>(d_input);
    } else {
      rows.d_input = data_or_null(d_input);
    }
    rows.through = came.empty() ? nullptr : came.data();
    rows.d_streams = wanted.streams ? written.data() : nullptr;
    rows.d_query = wanted.query ? sums[0] : nullptr;
    rows.norm = {want_gain ? sums[1] : nullptr, want_bias ? sums[2] : nullptr};
    rows.scratch = scratch.data();
    rows.dots = dots.data();
    kernels::stream_attend_backward(attend, rows, begin, end);
  });
  const auto total_if = [&](bool there, int sum) { return there ? partials.total(sum) : no_gradient(pass.query); };
  made.query = total_if(wanted.query, 0);
  made.gain = total_if(want_gain, 1);
  made.bias = total_if(want_bias, 2);
  return made;
}

}  // namespace siamese::ops::attend_pass

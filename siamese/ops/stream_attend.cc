// The op stream_attend. The mathematics is in ops/stream_attend.h and kernels/stream_attend.h.
//
//   stream_attend_forward    streams, branch, query, gain, bias -> input, sum of the last stream and the branch,
//                            statistics: per row the scores, then the scales 1 / sqrt(mean square + eps) of the
//                            streams, then those of the norm
//   stream_attend_backward   gradient of the input, what came back to the streams that were handed on, what forward saw
//                            and made (the last stream is the sum) -> gradients of streams, query, gain, bias. That of
//                            the branch is the last stream's.
//   stream_attend            the pair; in C++ it also hands the streams on
#include "siamese/ops/stream_attend.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <ATen/ATen.h>

#include "siamese/ops/attend_pass.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/norm.h"
#include "siamese/ops/norm_statistics.h"
#include "siamese/ops/plain_gradient.h"
#include "siamese/ops/scope.h"
#include "siamese/ops/stream_pass.h"
#include "siamese/ops/wide.h"

namespace siamese::ops {

namespace stream_attend_op {

using namespace attend_pass;
using namespace stream_pass;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Optional = std::optional<at::Tensor>;
using Made = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Wanted = std::array<bool, 4>;  // streams, query, gain, bias
using Gradients = std::tuple<tensor_list, at::Tensor, at::Tensor, at::Tensor>;

NormStep step_of(const Optional& gain, const Optional& bias, bool norm, bool layer, double norm_eps) {
  if (!norm) return {};
  return {true, layer, or_undefined(gain), layer ? or_undefined(bias) : at::Tensor(), norm_eps};
}

// The streams as the pass uses them.
Tensors with_branch(at::TensorList streams, const at::Tensor& branch) {
  Tensors used = streams.vec();
  if (branch.defined()) used.back() = used.back() + branch;
  return used;
}

struct Attention {
  at::Tensor scores, scales, sum;
};

Attention attention(const Tensors& streams, const at::Tensor& query, double eps) {
  const at::Tensor v = wide(at::stack(streams, -2));
  const at::Tensor scales = at::rsqrt(v.square().mean(-1) + eps);
  const at::Tensor scores = (v * wide(query)).sum(-1) * scales;
  return {scores, scales, (at::softmax(scores, -1).unsqueeze(-1) * v).sum(-2)};
}

at::Tensor normed(const NormStep& norm, const at::Tensor& sum) {
  if (!norm.present) return sum;
  return norm.layer ? plain::layer_norm(sum, norm.gain, norm.bias, norm.eps)
                    : plain::rms_norm(sum, norm.gain, norm.eps);
}

void check(const char* op, at::TensorList streams, const Optional& branch, const at::Tensor& query,
           const Optional& gain, const Optional& bias, bool norm, bool layer) {
  const Arguments arguments(op, "streams", first_of(streams));
  check_streams(arguments, streams);
  const at::Tensor& first = streams[0];
  const c10::SymInt cols = first.sym_size(-1);
  if (cols == 0) {
    arguments.require(false, "streams", "rows of at least one number", "shape " + shape_text(first.sym_sizes()));
  }
  arguments.shape("branch", or_undefined(branch), first.sym_sizes()).parameter("query", query, {cols});
  arguments.parameter("gain", or_undefined(gain), {cols}).parameter("bias", or_undefined(bias), {cols});
  arguments.require(!norm || layer || !bias.has_value(), "bias", "no bias beside an RMSNorm", "one");
}

c10::SymDimVector statistics_shape(at::TensorList streams, bool norm, bool layer) {
  c10::SymDimVector shape(streams[0].sym_sizes().begin(), streams[0].sym_sizes().end());
  shape.back() = 2 * static_cast<int64_t>(streams.size()) + (norm ? (layer ? 2 : 1) : 0);
  return shape;
}

at::Tensor empty_statistics(at::TensorList streams, bool norm, bool layer) {
  return at::empty_symint(statistics_shape(streams, norm, layer), streams[0].options().dtype(wide_type(streams[0])));
}

void check_backward(const Optional& d_input, at::TensorList through, at::TensorList streams, const at::Tensor& query,
                    const Optional& gain, const Optional& bias, const at::Tensor& statistics, bool norm, bool layer) {
  constexpr const char* kOp = "stream_attend_backward";
  check(kOp, streams, {}, query, gain, bias, norm, layer);
  const Arguments arguments(kOp, "streams", streams[0]);
  arguments.shape_or_half("d_input", or_undefined(d_input), streams[0].sym_sizes());
  if (!through.empty()) check_gradients(arguments, "through", through, streams.size(), streams[0]);
  arguments.wide_shape("statistics", statistics, statistics_shape(streams, norm, layer));
}

Made plain_forward(at::TensorList streams, const Optional& branch, const at::Tensor& query, const Optional& gain,
                   const Optional& bias, double eps, bool norm, bool layer, double norm_eps, bool half_input) {
  check("stream_attend", streams, branch, query, gain, bias, norm, layer);
  const OneThread one_thread;
  const Tensors used = with_branch(streams, or_undefined(branch));
  const auto [scores, scales, sum] = attention(used, query, eps);
  Tensors statistics = {scores, scales};
  if (norm) {
    for (const at::Tensor& each : plain::norm_statistics(sum, layer, norm_eps)) {
      statistics.push_back(each.unsqueeze(-1));
    }
  }
  const at::Tensor input = normed(step_of(gain, bias, norm, layer, norm_eps), sum).to(half_if(half_input, streams[0]));
  return {input.contiguous(), branch.has_value() ? used.back().contiguous() : no_gradient(streams[0]),
          at::cat(statistics, -1).contiguous()};
}

Made meta_forward(at::TensorList streams, const Optional& branch, const at::Tensor& query, const Optional& gain,
                  const Optional& bias, double, bool norm, bool layer, double, bool half_input) {
  check("stream_attend", streams, branch, query, gain, bias, norm, layer);
  return {at::empty_symint(streams[0].sym_sizes(), half_if(half_input, streams[0])),
          branch.has_value() ? empty_dense(streams[0]) : no_gradient(streams[0]),
          empty_statistics(streams, norm, layer)};
}

Made fused_forward(at::TensorList streams, const Optional& branch, const at::Tensor& query, const Optional& gain,
                   const Optional& bias, double eps, bool norm, bool layer, double norm_eps, bool half_input) {
  check("stream_attend", streams, branch, query, gain, bias, norm, layer);
  if (!use_fused("stream_attend", {streams[0]})) {
    return plain_forward(streams, branch, query, gain, bias, eps, norm, layer, norm_eps, half_input);
  }
  const at::Tensor statistics = empty_statistics(streams, norm, layer);
  const AttendPass pass(streams, query, eps, step_of(gain, bias, norm, layer, norm_eps), statistics);
  const AttendOutputs made = forward_rows(pass, or_undefined(branch), half_input);
  return {made.input, made.sum, statistics};
}

Gradients plain_backward(const Optional& d_input, at::TensorList through, at::TensorList streams,
                         const at::Tensor& query, const Optional& gain, const Optional& bias,
                         const at::Tensor& statistics, double eps, bool norm, bool layer, double norm_eps,
                         Wanted wanted) {
  check_backward(d_input, through, streams, query, gain, bias, statistics, norm, layer);
  const NormStep step = step_of(gain, bias, norm, layer, norm_eps);
  Tensors inputs = {query, step.gain, step.bias};
  inputs.insert(inputs.end(), streams.begin(), streams.end());
  std::vector<bool> wanted_ones = {wanted[1], wanted[2], wanted[3]};
  wanted_ones.resize(inputs.size(), wanted[0]);
  const at::Tensor d_sum = d_input ? d_input->to(streams[0].scalar_type()) : at::Tensor();
  const Tensors made = gradients_of(inputs, wanted_ones, {d_sum}, [&](const Tensors& t) {
    const NormStep mine{step.present, step.layer, t[1], t[2], step.eps};
    const at::Tensor sum = attention({t.begin() + 3, t.end()}, t[0], eps).sum;
    return Tensors{normed(mine, sum).to(t[3].scalar_type())};
  });
  const OneThread one_thread;
  tensor_list d_streams(made.begin() + 3, made.end());
  for (size_t j = 0; j < through.size() && wanted[0]; ++j) {
    if (!is_absent(through[j])) d_streams[j] = (d_streams[j] + through[j]).contiguous();
  }
  return {d_streams, made[0], made[1], made[2]};
}

Gradients fused_backward(const Optional& d_input, at::TensorList through, at::TensorList streams,
                         const at::Tensor& query, const Optional& gain, const Optional& bias,
                         const at::Tensor& statistics, double eps, bool norm, bool layer, double norm_eps,
                         Wanted wanted) {
  check_backward(d_input, through, streams, query, gain, bias, statistics, norm, layer);
  if (!use_fused("stream_attend", {streams[0]})) {
    return plain_backward(d_input, through, streams, query, gain, bias, statistics, eps, norm, layer, norm_eps, wanted);
  }
  const AttendPass pass(streams, query, eps, step_of(gain, bias, norm, layer, norm_eps), statistics);
  const AttendGradients made =
      backward_rows(pass, or_undefined(d_input), through, {wanted[0], wanted[1], wanted[2], wanted[3]});
  return {made.streams, made.query, made.gain, made.bias};
}

Gradients meta_backward(const Optional& d_input, at::TensorList through, at::TensorList streams,
                        const at::Tensor& query, const Optional& gain, const Optional& bias,
                        const at::Tensor& statistics, double, bool norm, bool layer, double norm_eps, Wanted wanted) {
  check_backward(d_input, through, streams, query, gain, bias, statistics, norm, layer);
  const NormStep step = step_of(gain, bias, norm, layer, norm_eps);
  const auto empty_if = [&](bool is_wanted, const at::Tensor& like) {
    return is_wanted && like.defined() ? empty_dense(like) : no_gradient(query);
  };
  tensor_list d_streams;
  for (const at::Tensor& stream : streams) d_streams.push_back(empty_if(wanted[0], stream));
  return {d_streams, empty_if(wanted[1], query), empty_if(wanted[2], step.gain), empty_if(wanted[3], step.bias)};
}

// The input and the sum; with `hand_on`, for callers in C++, the input and all streams: an autograd function may return
// its inputs, an op may not.
class Pair : public torch::autograd::Function<Pair> {
 public:
  static tensor_list forward(AutogradContext* context, at::TensorList streams, const Optional& branch,
                             const at::Tensor& query, const Optional& gain, const Optional& bias, double eps, bool norm,
                             bool layer, double norm_eps, bool half_input, bool hand_on) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("stream_attend_forward", fused_forward);
    const auto [input, sum, statistics] =
        op.call(streams, branch, query, gain, bias, eps, norm, layer, norm_eps, half_input);
    context->set_materialize_grads(false);
    tensor_list saved = {query, or_undefined(gain), or_undefined(bias), statistics};
    saved.insert(saved.end(), streams.begin(), streams.end());
    if (branch.has_value()) saved.back() = sum;
    context->save_for_backward(saved);
    context->saved_data["numbers"] = std::vector<double>{eps, norm_eps};
    context->saved_data["flags"] = c10::List<bool>({branch.has_value(), norm, layer, hand_on});
    if (!hand_on) {
      if (!branch.has_value()) context->mark_non_differentiable({sum});
      return {input, sum};
    }
    tensor_list made = {input};
    made.insert(made.end(), streams.begin(), streams.end());
    if (branch.has_value()) made.back() = sum;
    return made;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const tensor_list streams(saved.begin() + 4, saved.end());
    const size_t n = streams.size();
    const auto numbers = context->saved_data["numbers"].toDoubleVector();
    const auto flags = context->saved_data["flags"].toBoolList();
    const bool branch = flags[0], norm = flags[1], layer = flags[2], hand_on = flags[3];
    std::vector<bool> present(n, true);
    present.insert(present.end(), {branch, true, saved[1].defined(), saved[2].defined()});
    const auto wanted = wanted_gradients(context, present);
    const bool any_stream =
        std::any_of(wanted.begin(), wanted.begin() + static_cast<int64_t>(n) + 1, [](bool w) { return w; });
    tensor_list came(n);
    if (hand_on) std::copy_n(grads.begin() + 1, n, came.begin());
    if (!hand_on && branch) came.back() = grads[1];
    const BelowAutograd below;
    static const auto op = find_op("stream_attend_backward", fused_backward);
    const auto [d_streams, d_query, d_gain, d_bias] =
        op.call(as_optional(grads[0]), with_absent(came, streams[0]), streams, saved[0], as_optional(saved[1]),
                as_optional(saved[2]), saved[3], numbers[0], norm, layer, numbers[1],
                {any_stream, wanted[n + 1], wanted[n + 2], wanted[n + 3]});
    tensor_list result;
    for (size_t j = 0; j < n; ++j) result.push_back(if_wanted(wanted[j], d_streams[j]));
    result.push_back(if_wanted(wanted[n], d_streams.back()));  // one tensor for stream and branch
    result.push_back(if_wanted(wanted[n + 1], d_query));
    result.push_back(if_wanted(wanted[n + 2] && norm, d_gain));
    result.push_back(if_wanted(wanted[n + 3] && norm && layer, d_bias));
    result.resize(result.size() + 6);  // eps, norm, layer, norm_eps, half_input, hand_on
    return result;
  }
};

std::tuple<at::Tensor, at::Tensor> pair(at::TensorList streams, const Optional& branch, const at::Tensor& query,
                                        const Optional& gain, const Optional& bias, double eps, bool norm, bool layer,
                                        double norm_eps, bool half_input) {
  const tensor_list dense_streams = dense_once(streams);
  const auto made = Pair::apply(at::TensorList(dense_streams), branch, dense_once(query), gain, bias, eps, norm, layer,
                                norm_eps, half_input, false);
  return {made[0], made[1]};
}

std::tuple<at::Tensor, at::Tensor> alone(at::TensorList streams, const Optional& branch, const at::Tensor& query,
                                         const Optional& gain, const Optional& bias, double eps, bool norm, bool layer,
                                         double norm_eps, bool half_input) {
  static const auto op = find_op("stream_attend_forward", fused_forward);
  const auto [input, sum, statistics] =
      op.call(streams, branch, query, gain, bias, eps, norm, layer, norm_eps, half_input);
  return {input, sum};
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  const std::string affine = "Tensor query, Tensor? gain, Tensor? bias";
  const std::string given = "(Tensor[] streams, Tensor? branch, " + affine;
  const std::string numbers = "float eps, bool norm, bool layer, float norm_eps";
  const std::string half = ", bool half_input=False";
  define_pair(library, "stream_attend" + given + ", " + numbers + half + ") -> (Tensor input, Tensor sum)", pair,
              alone);
  define_part(
      library,
      "stream_attend_forward" + given + ", " + numbers + half + ") -> (Tensor input, Tensor sum, Tensor statistics)",
      plain_forward, fused_forward, meta_forward);
  define_part(library,
              "stream_attend_backward(Tensor? d_input, Tensor[] through, Tensor[] streams, " + affine +
                  ", Tensor statistics, " + numbers +
                  ", bool[4] wanted) -> (Tensor[] d_streams, Tensor d_query, Tensor d_gain, Tensor d_bias)",
              plain_backward, fused_backward, meta_backward);
}

}  // namespace stream_attend_op

namespace plain {

StreamAttended stream_attend(const std::vector<at::Tensor>& streams, const at::Tensor& branch, const at::Tensor& query,
                             double eps, const NormStep& norm) {
  const Tensors used = stream_attend_op::with_branch(streams, branch);
  const at::Tensor sum = stream_attend_op::attention(used, query, eps).sum;
  return {stream_attend_op::normed(norm, sum).to(streams[0].scalar_type()), used};
}

}  // namespace plain

StreamAttended stream_attend(const std::vector<at::Tensor>& streams, const at::Tensor& branch, const at::Tensor& query,
                             double eps, const NormStep& norm, bool half_input) {
  if (norm.pointwise()) {  // an op of its own
    StreamAttended made = stream_attend(streams, branch, query, eps, {});
    made.input = apply(norm, made.input);
    made.input = made.input.to(half_if(half_input, made.input));
    return made;
  }
  const PartScope scope("part::junction");
  const Tensors dense_streams = dense_once(streams);
  const auto made = stream_attend_op::Pair::apply(at::TensorList(dense_streams), as_optional(dense_once(branch)),
                                                  dense_once(query), as_optional(norm.gain), as_optional(norm.bias),
                                                  eps, norm.present, norm.layer, norm.eps, half_input, true);
  return {made[0], {made.begin() + 1, made.end()}};
}

}  // namespace siamese::ops

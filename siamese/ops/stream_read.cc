// The op stream_read. The mathematics is in ops/stream_mix.h, the kernel's pass in ops/stream_pass.h.
//
//   stream_read_forward    streams, m, gain, bias -> input, statistics of its norm
//   stream_read_backward   gradient of the input, what came back to the streams that were handed on, what forward saw
//                          and made -> gradients of streams, m, gain, bias
//   stream_read            the pair; in C++ it also hands the streams on
#include <algorithm>
#include <array>
#include <tuple>

#include <ATen/ATen.h>

#include "siamese/kernels/stream_mix.h"
#include "siamese/ops/library.h"
#include "siamese/ops/norm.h"
#include "siamese/ops/norm_statistics.h"
#include "siamese/ops/plain_gradient.h"
#include "siamese/ops/scope.h"
#include "siamese/ops/stream_mix.h"
#include "siamese/ops/stream_pass.h"
#include "siamese/ops/wide.h"

namespace siamese::ops {

namespace plain {

StreamRead stream_read(const std::vector<at::Tensor>& streams, const at::Tensor& weights, const NormStep& norm) {
  const at::Tensor mixing = stream_pass::for_rows_of(streams[0], weights, 1).unsqueeze(-2);
  const at::Tensor sum = at::matmul(mixing, at::stack(streams, -2)).squeeze(-2);
  if (!norm.present) return {sum, streams};
  return {norm.layer ? layer_norm(sum, norm.gain, norm.bias, norm.eps) : rms_norm(sum, norm.gain, norm.eps), streams};
}

}  // namespace plain

namespace stream_read_op {

using namespace stream_pass;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Optional = std::optional<at::Tensor>;
using Made = std::tuple<at::Tensor, at::Tensor>;
using Wanted = std::array<bool, 4>;  // streams, m, gain, bias
using Gradients = std::tuple<tensor_list, at::Tensor, at::Tensor, at::Tensor>;

NormStep step_of(const Optional& gain, const Optional& bias, bool norm, bool layer, double eps) {
  if (!norm) return {};
  return {true, layer, or_undefined(gain), layer ? or_undefined(bias) : at::Tensor(), eps};
}

void check(const char* op, at::TensorList streams, const at::Tensor& weights, const Optional& gain,
           const Optional& bias, bool norm, bool layer) {
  const Arguments arguments(op, "streams", first_of(streams));
  check_streams(arguments, streams);
  const auto n = static_cast<int64_t>(streams.size());
  arguments.shape("weights", weights, coefficient_shape(streams[0], weights.dim() != 1, {n}));
  const c10::SymInt cols = streams[0].sym_size(-1);
  arguments.shape("gain", or_undefined(gain), {cols}).shape("bias", or_undefined(bias), {cols});
  arguments.require(!norm || layer || !bias.has_value(), "bias", "no bias beside an RMSNorm", "one");
}

c10::SymDimVector statistics_shape(const at::Tensor& stream, bool norm, bool layer) {
  c10::SymDimVector shape(stream.sym_sizes().begin(), stream.sym_sizes().end() - 1);
  shape.insert(shape.begin(), norm ? (layer ? 2 : 1) : 0);
  return shape;
}

void check_backward(const Optional& d_input, at::TensorList through, at::TensorList streams, const at::Tensor& weights,
                    const Optional& gain, const Optional& bias, const at::Tensor& statistics, bool norm, bool layer) {
  constexpr const char* kOp = "stream_read_backward";
  check(kOp, streams, weights, gain, bias, norm, layer);
  const Arguments arguments(kOp, "streams", streams[0]);
  arguments.shape_or_half("d_input", or_undefined(d_input), streams[0].sym_sizes());
  if (!through.empty()) check_gradients(arguments, "through", through, streams.size(), streams[0]);
  arguments.shape("statistics", statistics, statistics_shape(streams[0], norm, layer));
}

StreamPass pass_of(at::TensorList streams, const at::Tensor& weights, NormStep norm, const at::Tensor& statistics) {
  StreamPass pass;
  for (const at::Tensor& stream : streams) pass.streams.push_back(stream.contiguous());
  pass.matrix = weights.contiguous();
  pass.each_row = weights.dim() != 1;
  if (norm.gain.defined()) norm.gain = norm.gain.contiguous();
  if (norm.bias.defined()) norm.bias = norm.bias.contiguous();
  pass.norm = std::move(norm);
  pass.statistics = statistics;
  return pass;
}

Made plain_forward(at::TensorList streams, const at::Tensor& weights, const Optional& gain, const Optional& bias,
                   bool norm, bool layer, double eps, bool half_input) {
  check("stream_read", streams, weights, gain, bias, norm, layer);
  const OneThread one_thread;
  const at::Tensor sum = plain::stream_read(streams.vec(), weights, {}).input;
  const at::Tensor empty = at::empty_symint(statistics_shape(streams[0], norm, layer), streams[0].options());
  const at::TensorOptions options = half_if(half_input, sum);
  if (!norm) return {sum.contiguous().to(options), empty};
  const at::Tensor input = layer ? plain::layer_norm(sum, or_undefined(gain), or_undefined(bias), eps)
                                 : plain::rms_norm(sum, or_undefined(gain), eps);
  return {input.contiguous().to(options), at::stack(plain::norm_statistics(sum, layer, eps)).contiguous()};
}

Made meta_forward(at::TensorList streams, const at::Tensor& weights, const Optional& gain, const Optional& bias,
                  bool norm, bool layer, double, bool half_input) {
  check("stream_read", streams, weights, gain, bias, norm, layer);
  return {at::empty_symint(streams[0].sym_sizes(), half_if(half_input, streams[0])),
          at::empty_symint(statistics_shape(streams[0], norm, layer), streams[0].options())};
}

Made fused_forward(at::TensorList streams, const at::Tensor& weights, const Optional& gain, const Optional& bias,
                   bool norm, bool layer, double eps, bool half_input) {
  check("stream_read", streams, weights, gain, bias, norm, layer);
  if (!has_kernel("stream_read", streams, 1)) {
    return plain_forward(streams, weights, gain, bias, norm, layer, eps, half_input);
  }
  const at::Tensor statistics = at::empty_symint(statistics_shape(streams[0], norm, layer), streams[0].options());
  StreamPass pass = pass_of(streams, weights, step_of(gain, bias, norm, layer, eps), statistics);
  pass.half_input = half_input;
  return {forward_rows(pass)[0], statistics};
}

// What came back through the streams that were handed on, added.
at::Tensor plus(const at::Tensor& gradient, at::TensorList through, size_t stream) {
  return through.empty() || is_absent(through[stream]) ? gradient : gradient + through[stream];
}

Gradients plain_backward(const Optional& d_input, at::TensorList through, at::TensorList streams,
                         const at::Tensor& weights, const Optional& gain, const Optional& bias,
                         const at::Tensor& statistics, bool norm, bool layer, double eps, Wanted wanted) {
  check_backward(d_input, through, streams, weights, gain, bias, statistics, norm, layer);
  const NormStep step = step_of(gain, bias, norm, layer, eps);
  Tensors inputs = {weights, step.gain, step.bias};
  inputs.insert(inputs.end(), streams.begin(), streams.end());
  std::vector<bool> wanted_ones = {wanted[1], wanted[2], wanted[3]};
  wanted_ones.resize(inputs.size(), wanted[0]);
  const at::Tensor d_sum = d_input ? d_input->to(weights.scalar_type()) : at::Tensor();
  const Tensors made = gradients_of(inputs, wanted_ones, {d_sum}, [&](const Tensors& given) {
    const at::Tensor sum = plain::stream_read({given.begin() + 3, given.end()}, given[0], {}).input;
    if (!norm) return Tensors{sum};
    return Tensors{layer ? plain::layer_norm(sum, given[1], given[2], eps) : plain::rms_norm(sum, given[1], eps)};
  });
  const OneThread one_thread;
  tensor_list d_streams;
  for (size_t i = 0; i < streams.size(); ++i) {
    d_streams.push_back(wanted[0] ? plus(made[3 + i], through, i).contiguous() : made[3 + i]);
  }
  return {d_streams, made[0], made[1], made[2]};
}

Gradients fused_backward(const Optional& d_input, at::TensorList through, at::TensorList streams,
                         const at::Tensor& weights, const Optional& gain, const Optional& bias,
                         const at::Tensor& statistics, bool norm, bool layer, double eps, Wanted wanted) {
  check_backward(d_input, through, streams, weights, gain, bias, statistics, norm, layer);
  if (!has_kernel("stream_read", streams, 1)) {
    return plain_backward(d_input, through, streams, weights, gain, bias, statistics, norm, layer, eps, wanted);
  }
  const StreamPass pass = pass_of(streams, weights, step_of(gain, bias, norm, layer, eps), statistics.contiguous());
  StreamPassGradients made = backward_rows(pass, {or_undefined(d_input)}, through);
  for (at::Tensor& gradient : made.streams) gradient = wanted[0] ? gradient : no_gradient(gradient);
  const auto or_none = [&](bool is_wanted, const at::Tensor& gradient) {
    return is_wanted && gradient.defined() ? gradient : no_gradient(weights);
  };
  return {made.streams, or_none(wanted[1], made.matrix), or_none(wanted[2], made.gain), or_none(wanted[3], made.bias)};
}

Gradients meta_backward(const Optional& d_input, at::TensorList through, at::TensorList streams,
                        const at::Tensor& weights, const Optional& gain, const Optional& bias,
                        const at::Tensor& statistics, bool norm, bool layer, double eps, Wanted wanted) {
  check_backward(d_input, through, streams, weights, gain, bias, statistics, norm, layer);
  const NormStep step = step_of(gain, bias, norm, layer, eps);
  const auto empty_if = [&](bool is_wanted, const at::Tensor& like) {
    return is_wanted && like.defined() ? empty_dense(like) : no_gradient(weights);
  };
  tensor_list d_streams;
  for (const at::Tensor& stream : streams) d_streams.push_back(empty_if(wanted[0], stream));
  return {d_streams, empty_if(wanted[1], weights), empty_if(wanted[2], step.gain), empty_if(wanted[3], step.bias)};
}

// With `hand_on` also the streams, for callers in C++: an autograd function may return its inputs, an op may not.
class Pair : public torch::autograd::Function<Pair> {
 public:
  static tensor_list forward(AutogradContext* context, at::TensorList streams, const at::Tensor& weights,
                             const Optional& gain, const Optional& bias, bool norm, bool layer, double eps,
                             bool half_input, bool hand_on) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("stream_read_forward", fused_forward);
    const auto [input, statistics] = op.call(streams, weights, gain, bias, norm, layer, eps, half_input);
    context->set_materialize_grads(false);
    tensor_list saved = {weights, or_undefined(gain), or_undefined(bias), statistics};
    saved.insert(saved.end(), streams.begin(), streams.end());
    context->save_for_backward(saved);
    context->saved_data["norm"] = norm;
    context->saved_data["layer"] = layer;
    context->saved_data["eps"] = eps;
    tensor_list made = {input};
    if (hand_on) made.insert(made.end(), streams.begin(), streams.end());
    return made;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const tensor_list streams(saved.begin() + 4, saved.end());
    const size_t n = streams.size();
    std::vector<bool> present(n + 1, true);
    present.insert(present.end(), {saved[1].defined(), saved[2].defined()});
    const auto wanted = wanted_gradients(context, present);
    const bool any_stream =
        std::any_of(wanted.begin(), wanted.begin() + static_cast<int64_t>(n), [](bool w) { return w; });
    const BelowAutograd below;
    static const auto op = find_op("stream_read_backward", fused_backward);
    const bool norm = context->saved_data["norm"].toBool();
    const bool layer = context->saved_data["layer"].toBool();
    const auto [d_streams, d_weights, d_gain, d_bias] =
        op.call(as_optional(grads[0]), with_absent({grads.begin() + 1, grads.end()}, saved[0]), streams, saved[0],
                as_optional(saved[1]), as_optional(saved[2]), saved[3], norm, layer,
                context->saved_data["eps"].toDouble(), {any_stream, wanted[n], wanted[n + 1], wanted[n + 2]});
    tensor_list result;
    for (size_t i = 0; i < n; ++i) result.push_back(if_wanted(wanted[i], d_streams[i]));
    result.push_back(if_wanted(wanted[n], d_weights));
    result.push_back(if_wanted(wanted[n + 1] && norm, d_gain));
    result.push_back(if_wanted(wanted[n + 2] && norm && layer, d_bias));
    result.resize(result.size() + 5);  // norm, layer, eps, half_input, hand_on
    return result;
  }
};

at::Tensor pair(at::TensorList streams, const at::Tensor& weights, const Optional& gain, const Optional& bias,
                bool norm, bool layer, double eps, bool half_input) {
  const tensor_list dense = dense_once(streams);
  return Pair::apply(at::TensorList(dense), dense_once(weights), gain, bias, norm, layer, eps, half_input, false)[0];
}

at::Tensor alone(at::TensorList streams, const at::Tensor& weights, const Optional& gain, const Optional& bias,
                 bool norm, bool layer, double eps, bool half_input) {
  static const auto op = find_op("stream_read_forward", fused_forward);
  return std::get<0>(op.call(streams, weights, gain, bias, norm, layer, eps, half_input));
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  const std::string tensors = "Tensor[] streams, Tensor weights, Tensor? gain, Tensor? bias";
  const std::string norm = "bool norm, bool layer, float eps";
  const std::string given = "(" + tensors + ", " + norm + ", bool half_input=False)";
  define_pair(library, "stream_read" + given + " -> Tensor", pair, alone);
  define_part(library, "stream_read_forward" + given + " -> (Tensor input, Tensor statistics)", plain_forward,
              fused_forward, meta_forward);
  define_part(library,
              "stream_read_backward(Tensor? d_input, Tensor[] through, " + tensors + ", Tensor statistics, " + norm +
                  ", bool[4] wanted) -> (Tensor[] d_streams, Tensor d_weights, Tensor d_gain, Tensor d_bias)",
              plain_backward, fused_backward, meta_backward);
}

}  // namespace stream_read_op

StreamRead stream_read(const std::vector<at::Tensor>& streams, const at::Tensor& weights, const NormStep& norm,
                       bool half_input) {
  const PartScope scope("part::junction");
  // More streams than the kernel takes: only their sum is plain, its norm has a kernel of its own. So has one that is
  // element-wise.
  const bool norm_after = norm.pointwise() || streams.size() > static_cast<size_t>(kernels::kMaxMixedStreams);
  const bool norm_within = norm.present && !norm_after;
  const Tensors dense = dense_once(streams);
  const auto made = stream_read_op::Pair::apply(at::TensorList(dense), dense_once(weights),
                                                norm_within ? as_optional(norm.gain) : std::nullopt,
                                                norm_within ? as_optional(norm.bias) : std::nullopt, norm_within,
                                                norm.layer, norm.eps, half_input && !norm_after, true);
  const at::Tensor input = norm_after ? apply(norm, made[0]) : made[0];
  return {input.to(half_if(half_input, input)), {made.begin() + 1, made.end()}};
}

}  // namespace siamese::ops

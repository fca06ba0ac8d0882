// The op stream_mix. The mathematics is in ops/stream_mix.h, the kernel's pass in ops/stream_pass.h.
//
//   stream_mix_forward    streams, M, z, b -> outputs
//   stream_mix_backward   gradients of the outputs, what forward saw -> gradients of streams, M, z, b
//   stream_mix            the pair
#include "siamese/ops/stream_mix.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <ATen/ATen.h>

#include "siamese/ops/library.h"
#include "siamese/ops/plain_gradient.h"
#include "siamese/ops/scope.h"
#include "siamese/ops/stream_pass.h"

namespace siamese::ops {

namespace plain {

std::vector<at::Tensor> stream_mix(const std::vector<at::Tensor>& streams, const at::Tensor& matrix,
                                   const at::Tensor& branch, const at::Tensor& branch_weights) {
  const at::Tensor mixing = stream_pass::for_rows_of(streams[0], matrix, 2);
  const at::Tensor weights = stream_pass::for_rows_of(streams[0], branch_weights, 1);
  std::vector<at::Tensor> out = at::matmul(mixing, at::stack(streams, -2)).unbind(-2);
  for (size_t j = 0; j < out.size(); ++j) {
    out[j] = out[j] + weights.select(-1, static_cast<int64_t>(j)).unsqueeze(-1) * branch;
  }
  return out;
}

}  // namespace plain

namespace stream_mix_op {

using namespace stream_pass;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Wanted = std::array<bool, 4>;  // streams, M, z, b
using Gradients = std::tuple<tensor_list, at::Tensor, at::Tensor, at::Tensor>;

void check(const char* op, at::TensorList streams, const at::Tensor& matrix, const at::Tensor& branch,
           const at::Tensor& branch_weights) {
  const Arguments arguments(op, "streams", first_of(streams));
  check_streams(arguments, streams);
  const at::Tensor& first = streams[0];
  arguments.least_rank("matrix", matrix, 2);
  const c10::SymInt outputs = matrix.sym_size(-2);
  const auto n = static_cast<int64_t>(streams.size());
  const bool each_row = matrix.dim() != 2;  // then b is for each row too
  arguments.shape("matrix", matrix, coefficient_shape(first, each_row, {outputs, n}));
  arguments.shape("branch", branch, first.sym_sizes());
  arguments.shape("branch_weights", branch_weights, coefficient_shape(first, each_row, {outputs}));
}

void check_backward(at::TensorList d_outputs, at::TensorList streams, const at::Tensor& matrix,
                    const at::Tensor& branch, const at::Tensor& branch_weights) {
  constexpr const char* kOp = "stream_mix_backward";
  check(kOp, streams, matrix, branch, branch_weights);
  const Arguments arguments(kOp, "streams", streams[0]);
  const auto outputs = static_cast<size_t>(matrix.sym_size(-2).guard_int(__FILE__, __LINE__));
  check_gradients(arguments, "d_outputs", d_outputs, outputs, streams[0]);
}

StreamPass pass_of(at::TensorList streams, const at::Tensor& matrix, const at::Tensor& branch,
                   const at::Tensor& branch_weights) {
  StreamPass pass;
  for (const at::Tensor& stream : streams) pass.streams.push_back(stream.contiguous());
  pass.matrix = matrix.contiguous();
  pass.outputs = matrix.size(-2);
  pass.each_row = matrix.dim() != 2;
  pass.branch = branch.contiguous();
  pass.branch_weights = branch_weights.contiguous();
  return pass;
}

tensor_list plain_forward(at::TensorList streams, const at::Tensor& matrix, const at::Tensor& branch,
                          const at::Tensor& branch_weights) {
  check("stream_mix", streams, matrix, branch, branch_weights);
  const OneThread one_thread;
  tensor_list made = plain::stream_mix(streams.vec(), matrix, branch, branch_weights);
  for (at::Tensor& output : made) output = output.contiguous();
  return made;
}

tensor_list fused_forward(at::TensorList streams, const at::Tensor& matrix, const at::Tensor& branch,
                          const at::Tensor& branch_weights) {
  check("stream_mix", streams, matrix, branch, branch_weights);
  if (!has_kernel("stream_mix", streams, matrix.size(-2))) {
    return plain_forward(streams, matrix, branch, branch_weights);
  }
  return forward_rows(pass_of(streams, matrix, branch, branch_weights));
}

tensor_list meta_forward(at::TensorList streams, const at::Tensor& matrix, const at::Tensor& branch,
                         const at::Tensor& branch_weights) {
  check("stream_mix", streams, matrix, branch, branch_weights);
  tensor_list made;
  const int64_t outputs = matrix.sym_size(-2).guard_int(__FILE__, __LINE__);
  for (int64_t j = 0; j < outputs; ++j) made.push_back(empty_dense(streams[0]));
  return made;
}

Gradients plain_backward(at::TensorList d_outputs, at::TensorList streams, const at::Tensor& matrix,
                         const at::Tensor& branch, const at::Tensor& branch_weights, Wanted wanted) {
  check_backward(d_outputs, streams, matrix, branch, branch_weights);
  Tensors inputs = {matrix, branch, branch_weights};
  inputs.insert(inputs.end(), streams.begin(), streams.end());
  std::vector<bool> wanted_ones = {wanted[1], wanted[2], wanted[3]};
  wanted_ones.resize(inputs.size(), wanted[0]);
  Tensors came;
  for (const at::Tensor& gradient : d_outputs) came.push_back(is_absent(gradient) ? at::Tensor() : gradient);
  const Tensors made = gradients_of(inputs, wanted_ones, came, [](const Tensors& given) {
    return plain::stream_mix({given.begin() + 3, given.end()}, given[0], given[1], given[2]);
  });
  return {tensor_list(made.begin() + 3, made.end()), made[0], made[1], made[2]};
}

Gradients fused_backward(at::TensorList d_outputs, at::TensorList streams, const at::Tensor& matrix,
                         const at::Tensor& branch, const at::Tensor& branch_weights, Wanted wanted) {
  check_backward(d_outputs, streams, matrix, branch, branch_weights);
  if (!has_kernel("stream_mix", streams, matrix.size(-2))) {
    return plain_backward(d_outputs, streams, matrix, branch, branch_weights, wanted);
  }
  StreamPassGradients made = backward_rows(pass_of(streams, matrix, branch, branch_weights), d_outputs, {});
  for (at::Tensor& gradient : made.streams) gradient = wanted[0] ? gradient : no_gradient(gradient);
  return {made.streams, wanted[1] ? made.matrix : no_gradient(matrix), wanted[2] ? made.branch : no_gradient(branch),
          wanted[3] ? made.branch_weights : no_gradient(branch)};
}

Gradients meta_backward(at::TensorList d_outputs, at::TensorList streams, const at::Tensor& matrix,
                        const at::Tensor& branch, const at::Tensor& branch_weights, Wanted wanted) {
  check_backward(d_outputs, streams, matrix, branch, branch_weights);
  const auto empty_if = [](bool is_wanted, const at::Tensor& like) {
    return is_wanted ? empty_dense(like) : no_gradient(like);
  };
  tensor_list d_streams;
  for (const at::Tensor& stream : streams) d_streams.push_back(empty_if(wanted[0], stream));
  return {d_streams, empty_if(wanted[1], matrix), empty_if(wanted[2], branch), empty_if(wanted[3], branch_weights)};
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  static tensor_list forward(AutogradContext* context, at::TensorList streams, const at::Tensor& matrix,
                             const at::Tensor& branch, const at::Tensor& branch_weights) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("stream_mix_forward", fused_forward);
    context->set_materialize_grads(false);
    tensor_list saved = {matrix, branch, branch_weights};
    saved.insert(saved.end(), streams.begin(), streams.end());
    context->save_for_backward(saved);
    return op.call(streams, matrix, branch, branch_weights);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const tensor_list streams(saved.begin() + 3, saved.end());
    const size_t n = streams.size();
    const auto wanted = wanted_gradients(context, std::vector<bool>(n + 3, true));
    const bool any_stream =
        std::any_of(wanted.begin(), wanted.begin() + static_cast<int64_t>(n), [](bool w) { return w; });
    const BelowAutograd below;
    static const auto op = find_op("stream_mix_backward", fused_backward);
    const auto [d_streams, d_matrix, d_branch, d_weights] =
        op.call(with_absent(grads, streams[0]), streams, saved[0], saved[1], saved[2],
                {any_stream, wanted[n], wanted[n + 1], wanted[n + 2]});
    tensor_list result;
    for (size_t i = 0; i < n; ++i) result.push_back(if_wanted(wanted[i], d_streams[i]));
    result.push_back(if_wanted(wanted[n], d_matrix));
    result.push_back(if_wanted(wanted[n + 1], d_branch));
    result.push_back(if_wanted(wanted[n + 2], d_weights));
    return result;
  }
};

tensor_list pair(at::TensorList streams, const at::Tensor& matrix, const at::Tensor& branch,
                 const at::Tensor& branch_weights) {
  const tensor_list dense = dense_once(streams);
  return Pair::apply(at::TensorList(dense), dense_once(matrix), dense_once(branch), dense_once(branch_weights));
}

tensor_list alone(at::TensorList streams, const at::Tensor& matrix, const at::Tensor& branch,
                  const at::Tensor& branch_weights) {
  static const auto op = find_op("stream_mix_forward", fused_forward);
  return op.call(streams, matrix, branch, branch_weights);
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  const std::string given = "Tensor[] streams, Tensor matrix, Tensor branch, Tensor branch_weights";
  define_pair(library, "stream_mix(" + given + ") -> Tensor[]", pair, alone);
  define_part(library, "stream_mix_forward(" + given + ") -> Tensor[]", plain_forward, fused_forward, meta_forward);
  define_part(library,
              "stream_mix_backward(Tensor[] d_outputs, " + given +
                  ", bool[4] wanted) -> (Tensor[] d_streams, Tensor d_matrix, Tensor d_branch, Tensor "
                  "d_branch_weights)",
              plain_backward, fused_backward, meta_backward);
}

}  // namespace stream_mix_op

std::vector<at::Tensor> stream_mix(const std::vector<at::Tensor>& streams, const at::Tensor& matrix,
                                   const at::Tensor& branch, const at::Tensor& branch_weights) {
  const PartScope scope("part::junction");
  static const auto op = find_op("stream_mix", stream_mix_op::pair);
  return op.call(streams, matrix, branch, branch_weights);
}

}  // namespace siamese::ops

#include "siamese/ops/cross_entropy.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/kernels/cross_entropy.h"
#include "siamese/ops/arguments.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/plain_gradient.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/reduce.h"
#include "siamese/ops/scope.h"
#include "siamese/ops/wide.h"

namespace siamese::ops {
namespace cross_entropy_op {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Optional = std::optional<at::Tensor>;
using Made = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Gradients = std::tuple<at::Tensor, at::Tensor>;

void check(const char* op, const at::Tensor& logits, const at::Tensor& targets, const Optional& weights) {
  const Arguments arguments(op, "logits", logits);
  arguments.rank("logits", logits, 2).index_shape("targets", targets, {logits.sym_size(0)});
  arguments.parameter("weights", or_undefined(weights), {logits.sym_size(0)})
      .require(logits.sym_size(1) > 0, "logits", "at least one column", shape_text(logits.sym_sizes()));
}

void check_backward(const Optional& d_nll, const Optional& d_z, const at::Tensor& logits, const at::Tensor& targets,
                    const Optional& weights, const at::Tensor& losses) {
  const char* const op = "cross_entropy_backward";
  check(op, logits, targets, weights);
  const Arguments arguments(op, "logits", logits);
  arguments.wide_shape("d_nll", or_undefined(d_nll), {}).wide_shape("d_z", or_undefined(d_z), {});
  arguments.wide_shape("losses", losses, {2, logits.sym_size(0)});
}

// nll and z of each row.
std::array<at::Tensor, 2> plain_rows(const at::Tensor& given, const at::Tensor& targets) {
  const at::Tensor logits = wide(given);
  const at::Tensor normalizer = log_sum_exp(logits);
  return {normalizer - logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1), normalizer.square()};
}

at::Tensor weighted(const at::Tensor& rows, const at::Tensor& weights) {
  return weights.defined() ? rows * weights : rows;
}

}  // namespace cross_entropy_op

namespace plain {

CrossEntropy cross_entropy(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& weights) {
  const auto [nll, z] = cross_entropy_op::plain_rows(logits, targets);
  return {fixed_sum(cross_entropy_op::weighted(nll, weights)), fixed_sum(cross_entropy_op::weighted(z, weights))};
}

}  // namespace plain

void cross_entropy_rows(const at::Tensor& logits, const at::Tensor& given_targets, const at::Tensor& given_weights,
                        const at::Tensor& losses, const LossScales* gradient) {
  const PartScope scope("part::loss");
  const char* const op = "cross_entropy_rows";
  cross_entropy_op::check(op, logits, given_targets, as_optional(given_weights));
  const Arguments arguments(op, "logits", logits);
  const bool known = logits.scalar_type() == at::kFloat || logits.scalar_type() == at::kBFloat16;
  const bool dense = logits.is_contiguous() && logits.is_cpu() && known;
  arguments.require(dense, "logits", "dense float32 or bfloat16 on the CPU",
                    shape_text(logits.sym_strides()) + " as strides");
  arguments.wide_shape("losses", losses, {2, logits.sym_size(0)});
  arguments.require(losses.size(1) < 2 || losses.stride(1) == 1, "losses", "dense rows",
                    shape_text(losses.sym_strides()) + " as strides");
  const int64_t vocab = logits.size(1);
  check_indices(op, "targets", given_targets, vocab);
  const at::Tensor targets = given_targets.contiguous();
  const at::Tensor weights = given_weights.defined() ? wide(given_weights).contiguous() : given_weights;
  with_element_type(logits, [&](auto element) {
    using T = decltype(element);
    const kernels::CrossEntropyRowsOf<T> rows{.logits = writable_of<T>(logits),
                                              .targets = targets.const_data_ptr<int64_t>(),
                                              .weights = data_or_null(weights),
                                              .nll = losses[0].mutable_data_ptr<float>(),
                                              .z = losses[1].mutable_data_ptr<float>(),
                                              .vocab = vocab};
    at::parallel_for(0, logits.size(0), std::max<int64_t>(1, 4096 / vocab), [&](int64_t begin, int64_t end) {
      if (gradient != nullptr) {
        kernels::cross_entropy_with_gradient(rows, gradient->nll, gradient->z, begin, end);
      } else {
        kernels::cross_entropy(rows, begin, end);
      }
    });
  });
}

// nll, z, and both of each row: [2, rows].
namespace cross_entropy_op {

Made plain_forward(const at::Tensor& logits, const at::Tensor& targets, const Optional& weights) {
  check("cross_entropy", logits, targets, weights);
  const OneThread one_thread;
  const auto [nll, z] = plain_rows(logits, targets);
  return {plain::fixed_sum(weighted(nll, or_undefined(weights))), plain::fixed_sum(weighted(z, or_undefined(weights))),
          at::stack({nll, z})};
}

Made fused_forward(const at::Tensor& logits, const at::Tensor& targets, const Optional& weights) {
  check("cross_entropy", logits, targets, weights);
  check_indices("cross_entropy", "targets", targets, logits.size(1));
  if (!use_fused("cross_entropy", {logits})) return plain_forward(logits, targets, weights);
  at::Tensor losses = at::empty({2, logits.size(0)}, logits.options());
  cross_entropy_rows(logits.contiguous(), targets, or_undefined(weights), losses, nullptr);
  return {fixed_sum(weighted(losses[0], or_undefined(weights))), fixed_sum(weighted(losses[1], or_undefined(weights))),
          losses};
}

Made meta_forward(const at::Tensor& logits, const at::Tensor& targets, const Optional& weights) {
  check("cross_entropy", logits, targets, weights);
  const auto options = logits.options().dtype(wide_type(logits));
  return {at::empty({}, options), at::empty({}, options), at::empty_symint({2, logits.sym_size(0)}, options)};
}

// -> dlogits, dweights
Gradients plain_backward(const Optional& d_nll, const Optional& d_z, const at::Tensor& logits,
                         const at::Tensor& targets, const Optional& weights, const at::Tensor& losses,
                         std::array<bool, 2> wanted) {
  check_backward(d_nll, d_z, logits, targets, weights, losses);
  const Tensors made = gradients_of({logits, or_undefined(weights)}, {wanted[0], wanted[1]},
                                    {or_undefined(d_nll), or_undefined(d_z)}, [&](const Tensors& given) {
                                      const CrossEntropy terms = plain::cross_entropy(given[0], targets, given[1]);
                                      return Tensors{terms.nll, terms.z};
                                    });
  return {made[0], made[1]};
}

double value_or_zero(const Optional& scalar) { return scalar.has_value() ? scalar->item<double>() : 0; }

Gradients fused_backward(const Optional& d_nll, const Optional& d_z, const at::Tensor& logits,
                         const at::Tensor& targets, const Optional& weights, const at::Tensor& losses,
                         std::array<bool, 2> wanted) {
  check_backward(d_nll, d_z, logits, targets, weights, losses);
  check_indices("cross_entropy_backward", "targets", targets, logits.size(1));
  if (!use_fused("cross_entropy", {logits})) {
    return plain_backward(d_nll, d_z, logits, targets, weights, losses, wanted);
  }
  const LossScales scales{value_or_zero(d_nll), value_or_zero(d_z)};
  at::Tensor dlogits = no_gradient(logits);
  at::Tensor dweights = no_gradient(logits);
  if (wanted[0]) {
    dlogits = logits.clone(at::MemoryFormat::Contiguous);
    cross_entropy_rows(dlogits, targets, or_undefined(weights), at::empty({2, logits.size(0)}, logits.options()),
                       &scales);
  }
  if (wanted[1] && weights.has_value()) {
    const OneThread one_thread;
    dweights = losses[0] * scales.nll + losses[1] * scales.z;
  }
  return {dlogits, dweights};
}

Gradients meta_backward(const Optional& d_nll, const Optional& d_z, const at::Tensor& logits, const at::Tensor& targets,
                        const Optional& weights, const at::Tensor& losses, std::array<bool, 2> wanted) {
  check_backward(d_nll, d_z, logits, targets, weights, losses);
  return {wanted[0] ? empty_dense(logits) : no_gradient(logits),
          wanted[1] && weights.has_value() ? empty_dense(*weights) : no_gradient(logits)};
}

// Returns nll, z.
class Pair : public torch::autograd::Function<Pair> {
 public:
  static tensor_list forward(AutogradContext* context, const at::Tensor& logits, const at::Tensor& targets,
                             const Optional& weights) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("cross_entropy_forward", fused_forward);
    const auto [nll, z, losses] = op.call(logits, targets, weights);
    context->save_for_backward({logits, targets, or_undefined(weights), losses});
    context->set_materialize_grads(false);
    return {nll, z};
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    if (!grads[0].defined() && !grads[1].defined()) return tensor_list(3);
    const auto saved = context->get_saved_variables();
    const auto wanted = wanted_gradients(context, {true, true, saved[2].defined()});
    const BelowAutograd below;
    static const auto op = find_op("cross_entropy_backward", fused_backward);
    const auto [dlogits, dweights] = op.call(as_optional(grads[0]), as_optional(grads[1]), saved[0], saved[1],
                                             as_optional(saved[2]), saved[3], {wanted[0], wanted[2]});
    return {if_wanted(wanted[0], dlogits), at::Tensor(), if_wanted(wanted[2], dweights)};
  }
};

std::tuple<at::Tensor, at::Tensor> pair(const at::Tensor& logits, const at::Tensor& targets, const Optional& weights) {
  const auto made = Pair::apply(dense_once(logits), targets, weights);
  return {made[0], made[1]};
}

std::tuple<at::Tensor, at::Tensor> alone(const at::Tensor& logits, const at::Tensor& targets, const Optional& weights) {
  static const auto op = find_op("cross_entropy_forward", fused_forward);
  const auto [nll, z, losses] = op.call(logits, targets, weights);
  return {nll, z};
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  define_pair(library, "cross_entropy(Tensor logits, Tensor targets, Tensor? weights) -> (Tensor nll, Tensor z)", pair,
              alone);
  define_part(library,
              "cross_entropy_forward(Tensor logits, Tensor targets, Tensor? weights) -> (Tensor nll, Tensor z, "
              "Tensor losses)",
              plain_forward, fused_forward, meta_forward);
  define_part(library,
              "cross_entropy_backward(Tensor? d_nll, Tensor? d_z, Tensor logits, Tensor targets, Tensor? weights, "
              "Tensor losses, bool[2] wanted) -> (Tensor dlogits, Tensor dweights)",
              plain_backward, fused_backward, meta_backward);
}

}  // namespace cross_entropy_op

CrossEntropy cross_entropy(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& weights) {
  const PartScope scope("part::loss");
  static const auto op = find_op("cross_entropy", cross_entropy_op::pair);
  const auto [nll, z] = op.call(logits, targets, as_optional(weights));
  return {nll, z};
}

}  // namespace siamese::ops

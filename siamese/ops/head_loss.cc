#include "siamese/ops/head_loss.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <tuple>

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/ops/arguments.h"
#include "siamese/ops/gradient.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/operand.h"
#include "siamese/ops/product.h"
#include "siamese/ops/reduce.h"
#include "siamese/ops/wide.h"

namespace siamese::ops {

namespace plain {

HeadLoss head_loss(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                   const at::Tensor& weights, const HeadLossScales& scales) {
  const CrossEntropy terms = plain::cross_entropy(at::matmul(hidden, weight.t()), targets, weights);
  const at::Tensor objective = terms.nll * scales.nll;
  return {scales.z == 0 ? objective : objective + terms.z * scales.z, terms.nll.detach(), terms.z.detach()};
}

}  // namespace plain

// A chunk's logits fill 32 MiB, or more where that would be too few rows. What a chunk costs beside its products is
// dW [vocab, width], read and written once: 8 bytes for every 6 operations (three products) of each row. On a machine
// that computes b operations in the time it moves a byte, that is a share of 8 b / (6 rows). b is 7 to 9 in float32
// (200 GFLOP/s beside 22 to 28 GB/s on two cores), twice that in bfloat16: under 5 % from 256 rows on, in bfloat16 from
// 512. These logits, 1 KiB for each entry of the vocabulary, are 256 / width of the size of dW itself.
namespace head_loss_detail {

constexpr int64_t kChunkBytes = int64_t{1} << 25;
constexpr int64_t kLeastRowBytes = 1024;

}  // namespace head_loss_detail

int64_t head_loss_chunk(int64_t rows, int64_t vocab, int64_t element_bytes) {
  using namespace head_loss_detail;
  const int64_t least = kLeastRowBytes / element_bytes;
  const int64_t most = std::max(least, kChunkBytes / (vocab * element_bytes));
  const int64_t chunks = std::clamp<int64_t>((rows + most - 1) / most, 1, std::max<int64_t>(1, rows / least));
  return (rows + chunks - 1) / chunks;
}

// `unit_...`: gradients of the objective where its own gradient is 1.
namespace head_loss_op {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Optional = std::optional<at::Tensor>;
using Wanted = std::array<bool, 3>;  // hidden, weight, weights
using Losses = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Made = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

void check(const char* op, const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
           const Optional& weights) {
  const Arguments arguments(op, "hidden", hidden);
  arguments.rank("hidden", hidden, 2).rank("weight", weight, 2);
  arguments.parameter("weight", weight, {weight.sym_size(0), hidden.sym_size(1)})
      .require(weight.sym_size(0) > 0, "weight", "at least one row", shape_text(weight.sym_sizes()));
  arguments.index_shape("targets", targets, {hidden.sym_size(0)})
      .parameter("weights", or_undefined(weights), {hidden.sym_size(0)});
}

at::Tensor weighted_sum(const at::Tensor& rows, const at::Tensor& weights) {
  return fixed_sum(weights.defined() ? rows * weights : rows);
}

// Returns the losses of each row: [2, rows]. Overwrites dhidden, adds to dweight; either may be undefined.
at::Tensor run_chunks(const at::Tensor& given, const at::Tensor& given_weight, const at::Tensor& targets,
                      const at::Tensor& weights, const LossScales& scales, const at::Tensor& dhidden,
                      const at::Tensor& dweight) {
  const at::Tensor hidden = given.contiguous();
  const at::Tensor weight = weight_operand(given_weight, given).contiguous();
  const int64_t rows = hidden.size(0);
  const bool with_gradient = dhidden.defined() || dweight.defined();
  at::Tensor losses = at::empty({2, rows}, at::kFloat);
  const int64_t chunk = head_loss_chunk(rows, weight.size(0), hidden.element_size());
  for (int64_t first = 0; first < rows; first += chunk) {
    const int64_t count = std::min(chunk, rows - first);
    const at::Tensor part = hidden.narrow(0, first, count);
    const at::Tensor logits = times_transposed(part, weight);
    cross_entropy_rows(logits, targets.narrow(0, first, count),
                       weights.defined() ? weights.narrow(0, first, count) : weights, losses.narrow(1, first, count),
                       with_gradient ? &scales : nullptr);
    if (dhidden.defined()) dhidden.narrow(0, first, count).copy_(times(logits, weight));
    if (dweight.defined()) add_weight_gradient(dweight, logits, part);
  }
  return losses;
}

// objective, nll, z
Losses add_up(const at::Tensor& nll_rows, const at::Tensor& z_rows, const at::Tensor& weights,
              const LossScales& scales) {
  const at::Tensor nll = weighted_sum(nll_rows, weights);
  const at::Tensor z = weighted_sum(z_rows, weights);
  const at::Tensor objective = nll * scales.nll;
  return {scales.z == 0 ? objective : objective + z * scales.z, nll, z};
}

at::Tensor unit_of_weights(const at::Tensor& nll_rows, const at::Tensor& z_rows, const LossScales& scales) {
  const OneThread one_thread;
  return nll_rows * scales.nll + z_rows * scales.z;
}

// (nll_scale + 2 z_scale n) softmax(logits) - nll_scale onehot(target), each row times its weight.
at::Tensor plain_dlogits(const at::Tensor& logits, const at::Tensor& normalizer, const at::Tensor& column,
                         const at::Tensor& weights, const LossScales& scales) {
  at::Tensor of_softmax = normalizer * (2 * scales.z) + scales.nll;
  at::Tensor of_target = at::full_like(normalizer, scales.nll);
  if (weights.defined()) {
    of_softmax = of_softmax * weights;
    of_target = of_target * weights;
  }
  return (at::softmax(logits, -1) * of_softmax.unsqueeze(-1)).scatter_add(-1, column, -of_target.unsqueeze(-1));
}

// Written out: autograd's way would make the logits twice. The products share their work among threads themselves.
Made plain_forward(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                   const Optional& given_weights, double nll_scale, double z_scale, Wanted wanted) {
  check("head_loss", hidden, weight, targets, given_weights);
  const at::Tensor weights = or_undefined(given_weights);
  const LossScales scales{nll_scale, z_scale};
  const at::Tensor logits = wide(times_transposed(hidden, weight_operand(weight, hidden)));
  Made made;
  at::Tensor dlogits;
  {
    const OneThread one_thread;
    const at::Tensor normalizer = log_sum_exp(logits);
    const at::Tensor column = targets.unsqueeze(-1);
    const at::Tensor nll_rows = normalizer - logits.gather(-1, column).squeeze(-1);
    const at::Tensor z_rows = normalizer.square();
    const auto [objective, nll, z] = add_up(nll_rows, z_rows, weights, scales);
    const bool want_weights = wanted[2] && weights.defined();
    made = {objective,
            nll,
            z,
            no_gradient(hidden),
            no_gradient(weight),
            want_weights ? unit_of_weights(nll_rows, z_rows, scales).to(weights.scalar_type()) : no_gradient(hidden)};
    if (!wanted[0] && !wanted[1]) return made;
    dlogits = plain_dlogits(logits, normalizer, column, weights, scales).to(hidden.scalar_type());
  }
  if (wanted[0]) std::get<3>(made) = times(dlogits, weight_operand(weight, hidden));
  if (wanted[1]) std::get<4>(made) = transposed_times(dlogits, hidden).to(weight.scalar_type());
  return made;
}

bool fused(const at::Tensor& hidden, const at::Tensor& weight) {
  return use_fused_bfloat16("head_loss", {hidden, weight}) && hidden.numel() > 0;
}

Made fused_forward(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                   const Optional& given_weights, double nll_scale, double z_scale, Wanted wanted) {
  check("head_loss", hidden, weight, targets, given_weights);
  check_indices("head_loss", "targets", targets, weight.size(0));
  if (!fused(hidden, weight)) {
    return plain_forward(hidden, weight, targets, given_weights, nll_scale, z_scale, wanted);
  }
  const at::Tensor weights = or_undefined(given_weights);
  const LossScales scales{nll_scale, z_scale};
  const at::Tensor dhidden = wanted[0] ? empty_dense(hidden) : at::Tensor();
  const at::Tensor dweight = wanted[1] ? at::zeros(weight.sizes(), at::kFloat) : at::Tensor();
  const at::Tensor losses = run_chunks(hidden, weight, targets, weights, scales, dhidden, dweight);
  const auto [objective, nll, z] = add_up(losses[0], losses[1], weights, scales);
  return {objective,
          nll,
          z,
          wanted[0] ? dhidden : no_gradient(hidden),
          wanted[1] ? dweight.to(weight.scalar_type()) : no_gradient(weight),
          wanted[2] && weights.defined() ? unit_of_weights(losses[0], losses[1], scales).to(weights.scalar_type())
                                         : no_gradient(hidden)};
}

Made meta_forward(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                  const Optional& weights, double, double, Wanted wanted) {
  check("head_loss", hidden, weight, targets, weights);
  const auto options = hidden.options().dtype(wide_type(hidden));
  return {at::empty({}, options),
          at::empty({}, options),
          at::empty({}, options),
          wanted[0] ? empty_dense(hidden) : no_gradient(hidden),
          wanted[1] ? empty_dense(weight) : no_gradient(weight),
          wanted[2] && weights.has_value() ? empty_dense(*weights) : no_gradient(hidden)};
}

void check_backward(const at::Tensor& d_objective, const at::Tensor& hidden, const at::Tensor& weight,
                    const Optional& weights, const std::array<at::Tensor, 3>& units, Wanted wanted) {
  const Arguments arguments("head_loss_backward", "hidden", hidden);
  arguments.parameter("weight", weight, weight.sym_sizes());
  arguments.wide_shape("d_objective", d_objective, {});
  if (wanted[0]) arguments.shape("unit_hidden", units[0], hidden.sym_sizes());
  if (wanted[1]) Arguments("head_loss_backward", "weight", weight).shape("unit_weight", units[1], weight.sym_sizes());
  if (!weights.has_value()) return;
  arguments.parameter("weights", *weights, weights->sym_sizes());
  if (wanted[2])
    Arguments("head_loss_backward", "weights", *weights).shape("unit_weights", units[2], weights->sym_sizes());
}

// One product for each on any device. Of hidden, weight and weights it needs nothing but that autograd sees on whom
// these gradients depend, so that a second derivative raises.
Gradients any_backward(const at::Tensor& d_objective, const at::Tensor& hidden, const at::Tensor& weight,
                       const Optional& weights, const at::Tensor& unit_hidden, const at::Tensor& unit_weight,
                       const at::Tensor& unit_weights, Wanted wanted) {
  check_backward(d_objective, hidden, weight, weights, {unit_hidden, unit_weight, unit_weights}, wanted);
  const auto scaled = [&](bool want, const at::Tensor& unit) {
    return want ? (unit * d_objective).to(unit.scalar_type()).contiguous() : no_gradient(hidden);
  };
  return {scaled(wanted[0], unit_hidden), scaled(wanted[1], unit_weight),
          scaled(wanted[2] && weights.has_value(), unit_weights)};
}

Gradients meta_backward(const at::Tensor& d_objective, const at::Tensor& hidden, const at::Tensor& weight,
                        const Optional& weights, const at::Tensor& unit_hidden, const at::Tensor& unit_weight,
                        const at::Tensor& unit_weights, Wanted wanted) {
  check_backward(d_objective, hidden, weight, weights, {unit_hidden, unit_weight, unit_weights}, wanted);
  const auto empty = [&](bool want, const at::Tensor& unit) { return want ? empty_dense(unit) : no_gradient(hidden); };
  return {empty(wanted[0], unit_hidden), empty(wanted[1], unit_weight),
          empty(wanted[2] && weights.has_value(), unit_weights)};
}

// Returns objective, nll, z.
class Pair : public torch::autograd::Function<Pair> {
 public:
  static tensor_list forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& weight,
                             const at::Tensor& targets, const Optional& weights, double nll_scale, double z_scale,
                             Wanted wanted) {
    const at::AutoDispatchBelowAutograd below;
    const bool in_place = wanted[1] && adds_in_place(weight) && fused(hidden, weight);
    static const auto op = find_op("head_loss_forward", fused_forward);
    const auto [objective, nll, z, unit_hidden, unit_weight, unit_weights] =
        in_place ? forward_in_place(hidden, weight, targets, weights, {nll_scale, z_scale}, wanted)
                 : op.call(hidden, weight, targets, weights, nll_scale, z_scale, wanted);
    context->save_for_backward({hidden, weight, or_undefined(weights), unit_hidden, unit_weight, unit_weights});
    context->saved_data["in_place"] = in_place;
    context->mark_non_differentiable({nll, z});
    context->set_materialize_grads(false);
    return {objective, nll, z};
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    if (!grads[0].defined()) return tensor_list(7);
    const auto saved = context->get_saved_variables();
    const auto wanted = wanted_gradients(context, {true, true, true, saved[2].defined()});
    if (context->saved_data["in_place"].toBool()) {
      expect_one(grads[0]);
      return {if_wanted(wanted[0], saved[3]), {}, {}, if_wanted(wanted[3], saved[5]), {}, {}, {}};
    }
    const BelowAutograd below;
    static const auto op = find_op("head_loss_backward", any_backward);
    const auto [dhidden, dweight, dweights] = op.call(grads[0], saved[0], saved[1], as_optional(saved[2]), saved[3],
                                                      saved[4], saved[5], {wanted[0], wanted[1], wanted[3]});
    return {
        if_wanted(wanted[0], dhidden), if_wanted(wanted[1], dweight), {}, if_wanted(wanted[3], dweights), {}, {}, {}};
  }

 private:
  static Made forward_in_place(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                               const Optional& given_weights, const LossScales& scales, Wanted wanted) {
    check("head_loss", hidden, weight, targets, given_weights);
    check_indices("head_loss", "targets", targets, weight.size(0));
    const at::Tensor weights = or_undefined(given_weights);
    const at::Tensor dhidden = wanted[0] ? empty_dense(hidden) : at::Tensor();
    const at::Tensor losses = run_chunks(hidden, weight, targets, weights, scales, dhidden, weight.grad());
    const auto [objective, nll, z] = add_up(losses[0], losses[1], weights, scales);
    const bool want_weights = wanted[2] && weights.defined();
    return {objective, nll,          z,
            dhidden,   at::Tensor(), want_weights ? unit_of_weights(losses[0], losses[1], scales) : at::Tensor()};
  }

  // What is in .grad already was made for a loss with gradient 1 (ops/gradient.h).
  static void expect_one(const at::Tensor& outer) {
    const double value = outer.item<double>();
    if (value == 1) return;
    std::ostringstream text;
    text << "siamese::head_loss: gradient of the objective: expected 1 inside GradientsInPlace, got " << value;
    throw UsageError(text.str());
  }
};

Losses pair(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets, const Optional& weights,
            double nll_scale, double z_scale) {
  // Asked here: inside a node's forward nothing is recorded.
  const auto wants = [](const at::Tensor& tensor) {
    return c10::GradMode::is_enabled() && tensor.defined() && tensor.requires_grad();
  };
  const auto made = Pair::apply(hidden, weight, targets, weights, nll_scale, z_scale,
                                Wanted{wants(hidden), wants(weight), wants(or_undefined(weights))});
  return {made[0], made[1], made[2]};
}

Losses alone(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets, const Optional& weights,
             double nll_scale, double z_scale) {
  static const auto op = find_op("head_loss_forward", fused_forward);
  const auto made = op.call(hidden, weight, targets, weights, nll_scale, z_scale, {false, false, false});
  return {std::get<0>(made), std::get<1>(made), std::get<2>(made)};
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  define_pair(library,
              "head_loss(Tensor hidden, Tensor weight, Tensor targets, Tensor? weights, float nll_scale, "
              "float z_scale) -> (Tensor objective, Tensor nll, Tensor z)",
              pair, alone);
  define_part(library,
              "head_loss_forward(Tensor hidden, Tensor weight, Tensor targets, Tensor? weights, float nll_scale, "
              "float z_scale, bool[3] wanted) -> (Tensor objective, Tensor nll, Tensor z, Tensor unit_hidden, "
              "Tensor unit_weight, Tensor unit_weights)",
              plain_forward, fused_forward, meta_forward);
  define_part(library,
              "head_loss_backward(Tensor d_objective, Tensor hidden, Tensor weight, Tensor? weights, "
              "Tensor unit_hidden, Tensor unit_weight, Tensor unit_weights, bool[3] wanted) -> "
              "(Tensor dhidden, Tensor dweight, Tensor dweights)",
              any_backward, any_backward, meta_backward);
}

}  // namespace head_loss_op

HeadLoss head_loss(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                   const at::Tensor& weights, const HeadLossScales& scales) {
  static const auto op = find_op("head_loss", head_loss_op::pair);
  const auto [objective, nll, z] = op.call(hidden, weight, targets, as_optional(weights), scales.nll, scales.z);
  return {objective, nll, z};
}

}  // namespace siamese::ops

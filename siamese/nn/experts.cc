#include "siamese/nn/experts.h"

#include <ATen/ATen.h>

#include "siamese/nn/expect.h"
#include "siamese/ops/expert_feed_forward.h"
#include "siamese/ops/operand.h"
#include "siamese/ops/route.h"
#include "siamese/ops/row_linear.h"

namespace siamese::nn {

Experts::Experts(const Scope& scope, const ExpertsShape& shape, const Initializer& initializer, int64_t block,
                 const InitFactors& factors)
    : shape_(shape) {
  expect_that(shape.per_token >= 1 && shape.per_token <= shape.experts, "experts per token",
              "a number from 1 to the experts (" + std::to_string(shape.experts) + ")", shape.per_token);
  const int64_t in_width = shape.kind == FeedForwardKind::swiglu ? 2 * shape.hidden : shape.hidden;
  router_ = scope.child("router").add("weight", ParameterKind::linear, {shape.experts, shape.width},
                                      initializer.input_projection(shape.width, shape.experts));
  const Scope experts = scope.child("experts");
  in_ = experts.add("in", ParameterKind::linear, {shape.experts, in_width, shape.width},
                    initializer.input_projection(shape.width, in_width), input_matrices(shape.kind, shape.hidden));
  scale_rows(in_, 0, shape.experts, factors.input);
  out_ =
      experts.add("out", ParameterKind::linear, {shape.experts, shape.width, shape.hidden},
                  initializer.output_projection(shape.hidden, shape.width, block, factors.depth_factor), {shape.width});
  scale_rows(out_, 0, shape.experts, factors.output);
  if (shape.shared_width > 0) {
    const FeedForwardShape shared{shape.kind, shape.width, shape.shared_width, /*bias=*/false};
    shared_.emplace(scope.child("shared"), shared, initializer, block, factors);
  }
}

ExpertsResult Experts::operator()(const at::Tensor& x) const {
  const at::Tensor flat = x.reshape({-1, shape_.width});
  // Not ops::linear: what a row chooses must not depend on the number of threads.
  const ops::Routing routing =
      ops::route(ops::row_linear(ops::from_operand(flat), router_.value()), shape_.per_token, shape_.renormalise);
  at::Tensor value =
      ops::expert_feed_forward(shape_.kind, flat, routing.chosen, routing.weights, in_.value(), out_.value())
          .view(x.sizes());
  if (shared_.has_value()) value = value + (*shared_)(x);
  return {value, routing.balance, routing.z, routing.counts};
}

}  // namespace siamese::nn

#include "siamese/nn/feed_forward.h"

#include "siamese/ops/feed_forward.h"

namespace siamese::nn {

std::vector<int64_t> input_matrices(FeedForwardKind kind, int64_t hidden) {
  if (kind == FeedForwardKind::swiglu) return {hidden, hidden};
  return {hidden};
}

FeedForward::FeedForward(const Scope& scope, const FeedForwardShape& shape, const Initializer& initializer,
                         int64_t block, const InitFactors& factors)
    : kind_(shape.kind) {
  const int64_t in_width = shape.kind == FeedForwardKind::swiglu ? 2 * shape.hidden : shape.hidden;
  in_ = Linear(scope.child("in"), shape.width, in_width, shape.bias,
               initializer.input_projection(shape.width, in_width), input_matrices(shape.kind, shape.hidden));
  scale_rows(in_.weight(), 0, in_width, factors.input);
  out_ = Linear(scope.child("out"), shape.hidden, shape.width, shape.bias,
                initializer.output_projection(shape.hidden, shape.width, block, factors.depth_factor));
  scale_rows(out_.weight(), 0, shape.width, factors.output);
}

at::Tensor FeedForward::operator()(const at::Tensor& x) const {
  return ops::feed_forward(kind_, x,
                           {in_.weight().value(), in_.bias().value(), out_.weight().value(), out_.bias().value()});
}

}  // namespace siamese::nn

// A mixture of experts in the place of the feed-forward branch (Shazeer et al., arXiv 1701.06538; dropless):
//   y_t = sum over the k chosen e of w_{t,e} FFN_e(x_t)  (+ FFN_shared(x_t)),  logits = W_router x_t
// How rows choose, their weights and both losses: ops/route.h. FFN_e: nn/feed_forward.h without biases, all experts
// in two weights, experts.in [E, 2 hidden or hidden, width] and experts.out [E, width, hidden].
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "siamese/nn/feed_forward.h"

namespace siamese::nn {

struct ExpertsShape {
  FeedForwardKind kind = FeedForwardKind::swiglu;
  int64_t width = 0;
  int64_t hidden = 0;        // of each expert
  int64_t experts = 0;       // E
  int64_t per_token = 0;     // k
  int64_t shared_width = 0;  // hidden width of the expert that every row goes to; 0: none
  bool renormalise = false;  // whether a row's weights sum to 1
};

struct ExpertsResult {
  at::Tensor value;    // shape of x
  at::Tensor balance;  // scalar: the balance loss
  at::Tensor z;        // scalar: the router's z-loss
  at::Tensor counts;   // int64 [E]: rows that went to each expert
};

class Experts {
 public:
  Experts(const Scope& scope, const ExpertsShape& shape, const Initializer& initializer, int64_t block,
          const InitFactors& factors);

  ExpertsResult operator()(const at::Tensor& x) const;

 private:
  ExpertsShape shape_;
  Slot router_;
  Slot in_;
  Slot out_;
  std::optional<FeedForward> shared_;
};

}  // namespace siamese::nn

#include "tests/ops/op_cases.h"

namespace siamese::ops {

std::vector<OpCase> op_cases() {
  std::vector<OpCase> all;
  for (const auto& list : {activation_cases(),     attention_cases(),  cached_attention_cases(),
                           depth_attend_cases(),   embedding_cases(),  expert_feed_forward_cases(),
                           feed_forward_cases(),   junction_cases(),   linear_cases(),
                           loss_cases(),           modulate_cases(),   norm_cases(),
                           pointwise_norm_cases(), reduce_cases(),     rope_cases(),
                           route_cases(),          row_linear_cases(), sinkhorn_cases(),
                           stream_attend_cases(),  stream_mix_cases()}) {
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

}  // namespace siamese::ops

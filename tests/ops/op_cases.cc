#include "tests/ops/op_cases.h"

namespace siamese::ops {

std::vector<OpCase> op_cases() {
  std::vector<OpCase> all;
  for (const auto& list :
       {embedding_cases(), expert_feed_forward_cases(), loss_cases(), norm_cases(), reduce_cases(), route_cases()}) {
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

}  // namespace siamese::ops

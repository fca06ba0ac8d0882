#include "tests/ops/op_cases.h"

namespace siamese::ops {

std::vector<OpCase> op_cases() {
  std::vector<OpCase> all;
  for (const auto& list : {activation_cases(), attention_cases(), feed_forward_cases(), linear_cases(),
                           modulate_cases(), norm_cases(), rope_cases()})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace siamese::ops

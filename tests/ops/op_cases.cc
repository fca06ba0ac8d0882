#include "tests/ops/op_cases.h"

namespace siamese::ops {

std::vector<OpCase> op_cases() {
  std::vector<OpCase> all;
  for (const auto& list : {junction_cases(), norm_cases(), row_linear_cases(), sinkhorn_cases(), stream_mix_cases()})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace siamese::ops

#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"

#include "siamese/ops/sinkhorn.h"

namespace siamese::ops {

std::vector<OpCase> sinkhorn_cases() {
  using testing::randn;
  constexpr int64_t kRounds = 5;
  std::vector<OpCase> cases;
  const std::vector<std::pair<const char*, at::Tensor>> logits = {
      {"four streams", randn({3, 7, 4, 4}, 1)}, {"one matrix", randn({3, 3}, 2)}, {"no kernel", randn({2, 17, 17}, 3)}};
  for (const auto& [what, input] : logits) {
    cases.push_back({"sinkhorn",
                     what,
                     {input},
                     [](const Tensors& t) { return Tensors{sinkhorn(t[0], kRounds)}; },
                     [](const Tensors& t) { return Tensors{plain::sinkhorn(t[0], kRounds)}; }});
  }
  return cases;
}

}  // namespace siamese::ops

#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"

#include "siamese/ops/modulate.h"

namespace siamese::ops {

std::vector<OpCase> modulate_cases() {
  using testing::randn;
  std::vector<OpCase> cases;
  for (const auto& [batch, tokens, cols] :
       std::vector<std::array<int64_t, 3>>{{3, 5, 33}, {2, 1, 300}, {0, 5, 3}, {3, 0, 7}, {3, 5, 0}}) {
    const at::Tensor x = randn({batch, tokens, cols}, 1), shift = randn({batch, cols}, 2);
    const at::Tensor scale = randn({batch, cols}, 3);
    const std::string what = std::to_string(batch) + "x" + std::to_string(tokens) + "x" + std::to_string(cols);
    cases.push_back({"modulate",
                     what,
                     {x, shift, scale},
                     [](const Tensors& t) { return Tensors{modulate(t[0], t[1], t[2])}; },
                     [](const Tensors& t) { return Tensors{plain::modulate(t[0], t[1], t[2])}; }});
    cases.push_back({"gate",
                     what,
                     {x, scale},
                     [](const Tensors& t) { return Tensors{gate(t[0], t[1])}; },
                     [](const Tensors& t) { return Tensors{plain::gate(t[0], t[1])}; }});
  }
  return cases;
}

}  // namespace siamese::ops

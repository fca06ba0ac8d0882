#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"

#include "siamese/ops/embedding.h"

namespace siamese::ops {

std::vector<OpCase> embedding_cases() {
  using testing::randn;
  const Call call = [](const Tensors& t) { return Tensors{ops::embedding(t[0], t[1])}; };
  const Call plain = [](const Tensors& t) { return Tensors{plain::embedding(t[0], t[1])}; };
  const at::Tensor indices = at::arange(20, at::kLong) * 7 % 9;  // row 9 never
  std::vector<OpCase> cases = {
      {"embedding", "of two dimensions", {randn({10, 33}, 1), indices.view({4, 5})}, call, plain},
      {"embedding", "one column", {randn({10, 1}, 1), indices}, call, plain},
      {"embedding", "no indices", {randn({3, 4}, 1), at::empty({2, 0}, at::kLong)}, call, plain},
      {.op = "add_to_each",
       .what = "rows of tokens",
       .inputs = {randn({3, 5, 7}, 1), randn({5, 7}, 2)},
       .call = [](const Tensors& t) { return Tensors{add_to_each(t[0], t[1])}; },
       .plain = [](const Tensors& t) { return Tensors{plain::add_to_each(t[0], t[1])}; }},
  };
  for (auto& test : cases) test.linear = true;
  return cases;
}

}  // namespace siamese::ops

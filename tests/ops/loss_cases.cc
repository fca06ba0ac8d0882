#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"

#include "siamese/ops/cross_entropy.h"
#include "siamese/ops/head_loss.h"

namespace siamese::ops {

std::vector<OpCase> loss_cases() {
  using testing::randn;
  constexpr HeadLossScales kScales{0.3, 0.01};
  const auto targets = [](int64_t rows, int64_t vocab) { return at::arange(rows, at::kLong) * 7919 % vocab; };
  const auto list = [](const HeadLoss& loss) { return Tensors{loss.objective, loss.nll, loss.z}; };
  const Call head = [=](const Tensors& t) { return list(head_loss(t[0], t[1], t[2], {}, kScales)); };
  const Call plain_head = [=](const Tensors& t) { return list(plain::head_loss(t[0], t[1], t[2], {}, kScales)); };
  const auto terms = [](const CrossEntropy& loss) { return Tensors{loss.nll, loss.z}; };
  const Call entropy = [=](const Tensors& t) {
    return terms(cross_entropy(t[0], t[1], t.size() > 2 ? t[2] : at::Tensor()));
  };
  const Call plain_entropy = [=](const Tensors& t) {
    return terms(plain::cross_entropy(t[0], t[1], t.size() > 2 ? t[2] : at::Tensor()));
  };
  return {
      {"cross_entropy", "weighted", {randn({6, 33}, 1) * 3, targets(6, 33), randn({6}, 2)}, entropy, plain_entropy},
      {"cross_entropy", "of every row", {randn({5, 257}, 1), targets(5, 257)}, entropy, plain_entropy},
      {"cross_entropy", "no rows", {randn({0, 3}, 1), targets(0, 3)}, entropy, plain_entropy},
      {"head_loss",
       "weighted",
       {randn({9, 31}, 1), randn({33, 31}, 2), targets(9, 33), (at::arange(9) % 3).to(at::kDouble)},
       [=](const Tensors& t) { return list(head_loss(t[0], t[1], t[2], t[3], kScales)); },
       [=](const Tensors& t) { return list(plain::head_loss(t[0], t[1], t[2], t[3], kScales)); }},
      {"head_loss", "of every row", {randn({5, 7}, 1), randn({257, 7}, 2), targets(5, 257)}, head, plain_head},
      {"head_loss", "one of each", {randn({1, 1}, 1), randn({1, 1}, 2), targets(1, 1)}, head, plain_head},
      {"head_loss", "no rows", {randn({0, 3}, 1), randn({5, 3}, 2), targets(0, 5)}, head, plain_head},
  };
}

}  // namespace siamese::ops

#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"

#include "siamese/ops/route.h"

namespace siamese::ops {

std::vector<OpCase> route_cases() {
  using testing::randn;
  const auto list = [](const Routing& r) { return Tensors{r.chosen, r.weights, r.balance, r.z, r.counts}; };
  const auto top = [=](int64_t k, bool renormalise, const at::Tensor& logits) {
    const std::string what = "top " + std::to_string(k) + (renormalise ? " renormalised" : "");
    return OpCase{"route",
                  what,
                  {logits},
                  [=](const Tensors& t) { return list(route(t[0], k, renormalise)); },
                  [=](const Tensors& t) { return list(plain::route(t[0], k, renormalise)); }};
  };
  return {top(2, true, randn({13, 5}, 1)), top(1, false, randn({7, 33}, 2)), top(1, false, randn({1, 1}, 3)),
          top(2, true, randn({0, 3}, 4))};
}

}  // namespace siamese::ops

#include "siamese/kernels/route.h"

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/reference/route.h"

namespace siamese::kernels {
namespace route_test {

constexpr int64_t kRouteRows = 9;

struct Routed {
  explicit Routed(const RouteShape& shape)
      : logits(random_floats(kRouteRows * shape.experts, "logits")),
        p(logits.size()),
        normalizer(size_t(kRouteRows)),
        weights(size_t(kRouteRows * shape.per_row)),
        sums(size_t(shape.experts), 1.0F),
        chosen(size_t(kRouteRows * shape.per_row), -1) {
    for (const auto& [begin, end] : {std::pair{0, 4}, std::pair{4, 9}}) {
      route_forward(shape, logits.data(), p.data(), normalizer.data(), chosen.data(), weights.data(), sums.data(),
                    begin, end);
    }
  }
  std::vector<float> logits, p, normalizer, weights, sums;
  std::vector<int64_t> chosen;
};

std::vector<RouteShape> shapes() {
  std::vector<RouteShape> list;
  for (const bool renormalise : {false, true}) {
    for (const auto& [experts, k] :
         {std::pair{1, 1}, std::pair{2, 1}, std::pair{8, 2}, std::pair{7, 7}, std::pair{33, 5}}) {
      list.push_back({experts, k, renormalise});
    }
  }
  return list;
}

TEST(Route, EqualsTheReference) {
  for (const auto& shape : shapes()) {
    const Routed got(shape);
    const auto logits = widen(got.logits);
    std::vector<double> sums(size_t(shape.experts), 1);
    for (int64_t row = 0; row < kRouteRows; ++row) {
      const auto wanted =
          reference::route_row(logits.data() + row * shape.experts, shape.experts, shape.per_row, shape.renormalise);
      EXPECT_NEAR(got.normalizer[size_t(row)], wanted.normalizer, 4 * kUlp * (1 + std::abs(wanted.normalizer)));
      for (int64_t e = 0; e < shape.experts; ++e) {
        // exp rounds its argument's difference, which is at most ten, then itself.
        EXPECT_NEAR(got.p[size_t(row * shape.experts + e)], wanted.p[size_t(e)], 16 * kUlp * wanted.p[size_t(e)]);
        sums[size_t(e)] += wanted.p[size_t(e)];
      }
      for (int64_t r = 0; r < shape.per_row; ++r) {
        EXPECT_EQ(got.chosen[size_t(row * shape.per_row + r)], wanted.chosen[size_t(r)]);
        EXPECT_NEAR(got.weights[size_t(row * shape.per_row + r)], wanted.weights[size_t(r)], 32 * kUlp);
      }
    }
    for (size_t e = 0; e < sums.size(); ++e) EXPECT_NEAR(got.sums[e], sums[e], 32 * kUlp * sums[e]);
  }
}

// Backward against differences of the reference: in double, to their own error of about h^2.
TEST(Route, BackwardIsTheSlopeOfTheReference) {
  for (const auto& shape : shapes()) {
    const Routed got(shape);
    const auto dweights = random_floats(kRouteRows * shape.per_row, "dweights");
    const auto dmean = random_floats(shape.experts, "dmean");
    constexpr double kDz = 0.7;
    std::vector<float> dlogits(got.logits.size(), kUntouched);
    route_backward(shape, got.p.data(), got.normalizer.data(), got.chosen.data(), dweights.data(), dmean.data(), kDz,
                   dlogits.data(), 0, kRouteRows);
    const auto wide_dmean = widen(dmean);
    const auto wide_dweights = widen(dweights);
    auto logits = widen(got.logits);
    for (int64_t row = 0; row < kRouteRows; ++row) {
      for (int64_t e = 0; e < shape.experts; ++e) {
        double& at = logits[size_t(row * shape.experts + e)];
        const double here = at;
        const auto objective = [&](double value) {
          at = value;
          const auto routed = reference::route_row(logits.data() + row * shape.experts, shape.experts, shape.per_row,
                                                   shape.renormalise);
          return reference::routed_objective(routed, wide_dweights.data() + row * shape.per_row, wide_dmean.data(),
                                             kDz);
        };
        constexpr double kStep = 1e-5;
        const double slope = (objective(here + kStep) - objective(here - kStep)) / (2 * kStep);
        at = here;
        EXPECT_NEAR(dlogits[size_t(row * shape.experts + e)], slope, 5e-6) << shape.experts << " " << shape.per_row;
      }
    }
  }
}

TEST(Route, NullGradientsAreZero) {
  for (const auto& shape : shapes()) {
    const Routed got(shape);
    const auto dweights = random_floats(kRouteRows * shape.per_row, "dweights");
    const auto dmean = random_floats(shape.experts, "dmean");
    const std::vector<float> no_dweights(dweights.size(), 0.0F), no_dmean(dmean.size(), 0.0F);
    for (const bool weights : {false, true}) {
      for (const bool mean : {false, true}) {
        std::vector<float> null(got.logits.size(), kUntouched), zero(got.logits.size(), kUntouched);
        const auto backward = [&](const float* dw, const float* dm, std::vector<float>& dlogits) {
          route_backward(shape, got.p.data(), got.normalizer.data(), got.chosen.data(), dw, dm, 0.7, dlogits.data(), 0,
                         kRouteRows);
        };
        backward(weights ? dweights.data() : nullptr, mean ? dmean.data() : nullptr, null);
        backward((weights ? dweights : no_dweights).data(), (mean ? dmean : no_dmean).data(), zero);
        for (size_t i = 0; i < zero.size(); ++i) EXPECT_EQ(null[i], zero[i]) << weights << mean << " " << i;
      }
    }
  }
}

}  // namespace route_test
}  // namespace siamese::kernels

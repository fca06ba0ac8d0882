#include "siamese/ops/norm.h"

#include "tests/support/tensors.h"

#include <ATen/Parallel.h>

#include "siamese/kernels/simd.h"
#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace {

using testing::gradients;
using testing::leaf;
using testing::randn;

struct Case {
  const char* name;
  at::Tensor (*fused)(const at::Tensor&, const at::Tensor&, const at::Tensor&);
  at::Tensor (*plain)(const at::Tensor&, const at::Tensor&, const at::Tensor&);
};

constexpr double kEps = 1e-5;

const Case kCases[] = {
    {"rms", [](const at::Tensor& x, const at::Tensor& g, const at::Tensor&) { return rms_norm(x, g, kEps); },
     [](const at::Tensor& x, const at::Tensor& g, const at::Tensor&) { return plain::rms_norm(x, g, kEps); }},
    {"rms without gain",
     [](const at::Tensor& x, const at::Tensor&, const at::Tensor&) { return rms_norm(x, {}, kEps); },
     [](const at::Tensor& x, const at::Tensor&, const at::Tensor&) { return plain::rms_norm(x, {}, kEps); }},
    {"layer", [](const at::Tensor& x, const at::Tensor& g, const at::Tensor& b) { return layer_norm(x, g, b, kEps); },
     [](const at::Tensor& x, const at::Tensor& g, const at::Tensor& b) { return plain::layer_norm(x, g, b, kEps); }},
    {"layer without bias",
     [](const at::Tensor& x, const at::Tensor& g, const at::Tensor&) { return layer_norm(x, g, {}, kEps); },
     [](const at::Tensor& x, const at::Tensor& g, const at::Tensor&) { return plain::layer_norm(x, g, {}, kEps); }},
    {"layer without gain",
     [](const at::Tensor& x, const at::Tensor&, const at::Tensor&) { return layer_norm(x, {}, {}, kEps); },
     [](const at::Tensor& x, const at::Tensor&, const at::Tensor&) { return plain::layer_norm(x, {}, {}, kEps); }},
};

// Float against the plain expression in double: a row statistic of n terms and a handful of roundings.
constexpr double kTolerance = 3e-6;

TEST(Norm, FusedEqualsPlainForwardAndGradientAtEverySimdLevel) {
  const ModeGuard fused(Mode::fused);
  for (const int64_t target : kernels::simd_targets()) {
    kernels::force_simd_target(target);
    for (const auto& test : kCases) {
      for (const int64_t cols : {1, 31, 32, 33, 257}) {
        // Width 1 makes LayerNorm's output exactly 0 and its gradient 0, and that of RMSNorm almost: compared all the
        // same, with roundings of what came from above.
        for (const int64_t rows : {1, 3, 130}) {
          const at::Tensor x = randn({rows, cols}, 1) * 2 + 0.5;
          const at::Tensor gain = randn({cols}, 2);
          const at::Tensor bias = randn({cols}, 3);
          std::vector<at::Tensor> exact = {leaf(x), leaf(gain), leaf(bias)};
          std::vector<at::Tensor> single;
          for (const auto& t : exact) single.push_back(leaf(t.to(at::kFloat)));
          const at::Tensor y = test.fused(single[0], single[1], single[2]);
          const at::Tensor expected = test.plain(exact[0], exact[1], exact[2]);
          const std::string what = std::string(test.name) + " " + kernels::simd_name(target) + " cols " +
                                   std::to_string(cols) + " rows " + std::to_string(rows);
          testing::expect_relative(y, expected, kTolerance, what);
          const auto got = gradients(y, single);
          const auto wanted = gradients(expected, exact);
          const double terms = cols == 1 ? testing::largest(randn(y.sizes(), 4242)) : 0;
          for (size_t i = 0; i < got.size(); ++i) {
            ASSERT_EQ(got[i].defined(), wanted[i].defined()) << what;
            if (!got[i].defined()) continue;
            testing::expect_relative(got[i], wanted[i], kTolerance, what + " gradient " + std::to_string(i), terms);
          }
        }
      }
    }
  }
  kernels::force_simd_target(0);
}

TEST(Norm, StridedInputsAndLeadingDimensions) {
  const at::Tensor base = randn({4, 5, 3, 40}, 5, at::kFloat);
  const at::Tensor strided = base.narrow(3, 4, 33).transpose(0, 1);
  const at::Tensor gain = randn({33}, 6, at::kFloat);
  const at::Tensor y = rms_norm(strided, gain, kEps);
  EXPECT_EQ(y.sizes(), strided.sizes());
  testing::expect_relative(y, plain::rms_norm(strided.to(at::kDouble), gain.to(at::kDouble), kEps), kTolerance,
                           "strided");
}

TEST(Norm, SameBitsAtAnyThreadCount) {
  const int before = at::get_num_threads();
  std::vector<std::vector<at::Tensor>> results;
  for (const int threads : {1, 2, 5}) {
    at::set_num_threads(threads);
    const at::Tensor x = leaf(randn({777, 65}, 7, at::kFloat));
    const at::Tensor gain = leaf(randn({65}, 8, at::kFloat));
    const at::Tensor bias = leaf(randn({65}, 9, at::kFloat));
    const at::Tensor y = rms_norm(layer_norm(x, gain, bias, kEps), gain, kEps);
    auto all = gradients(y, {x, gain, bias});
    all.push_back(y);
    results.push_back(all);
  }
  at::set_num_threads(before);
  for (size_t run = 1; run < results.size(); ++run) {
    for (size_t i = 0; i < results[0].size(); ++i) testing::expect_same_bits(results[run][i], results[0][i], "threads");
  }
}

TEST(Norm, PlainGradientsEqualFiniteDifferences) {
  const at::Tensor gain = randn({7}, 11);
  const at::Tensor bias = randn({7}, 12);
  const at::Tensor x = leaf(randn({2, 7}, 10));
  for (const auto& test : kCases) {
    const at::Tensor y = test.plain(x, gain, bias);
    const at::Tensor weights = randn(y.sizes(), 4242);
    const at::Tensor gradient = gradients(y, {x})[0];
    for (int64_t i = 0; i < x.numel(); ++i) {
      const double h = 1e-5;
      at::Tensor step = at::zeros_like(x).detach();
      step.view({-1})[i] = h;
      const double up = (test.plain(x.detach() + step, gain, bias) * weights).sum().item<double>();
      const double down = (test.plain(x.detach() - step, gain, bias) * weights).sum().item<double>();
      EXPECT_NEAR(gradient.reshape({-1})[i].item<double>(), (up - down) / (2 * h), 1e-7) << test.name;
    }
  }
}

// The square of 300 is no number of float16, and a sum in bfloat16 loses its small terms.
TEST(Norm, HalfTypesAreNormalisedInFloatAndRoundedOnce) {
  for (const auto type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor x = (randn({3, 257}, 7) * 4 + 300).to(type);
    const at::Tensor none;
    const double ulp = type == at::kHalf ? 0x1p-10 : 0x1p-7;
    const at::Tensor exact = x.to(at::kDouble);
    const auto close = [&](const at::Tensor& y, const at::Tensor& expected, const char* what) {
      EXPECT_EQ(y.scalar_type(), type);
      EXPECT_LE(((y.to(at::kDouble) - expected).abs() / (expected.abs() + 1e-2)).max().item<double>(), ulp) << what;
    };
    close(rms_norm(x, none, kEps), plain::rms_norm(exact, none, kEps), "rms");
    close(layer_norm(x, none, none, kEps), plain::layer_norm(exact, none, none, kEps), "layer");
  }
}

}  // namespace
}  // namespace siamese::ops

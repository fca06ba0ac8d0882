#include "siamese/kernels/rope.h"

#include <cmath>

#include "tests/kernels/kernel_testing.h"

namespace siamese::kernels {
namespace rope_test {

SIAMESE_AT_EVERY_SIMD_LEVEL(Rope);

TEST_P(Rope, RotatesPairsAndBack) {
  constexpr int64_t kRows = 6;
  for (const int64_t half : {1, 15, 16, 17, 129}) {
    const RopeShape shape{.tokens = 3, .heads = 2, .half = half};
    const auto x = random_floats(kRows * 2 * 2 * half, "x");
    std::vector<float> cos, sin;
    for (int64_t i = 0; i < shape.tokens * half; ++i) {
      cos.push_back(static_cast<float>(std::cos(0.1 * static_cast<double>(i))));
      sin.push_back(static_cast<float>(std::sin(0.1 * static_cast<double>(i))));
    }
    std::vector<float> y(x.size()), back(x.size()), in_place = x;
    rope_forward(shape, x.data(), cos.data(), sin.data(), y.data(), 0, 2);
    rope_forward(shape, x.data(), cos.data(), sin.data(), y.data(), 2, kRows);
    rope_forward(shape, in_place.data(), cos.data(), sin.data(), in_place.data(), 0, kRows);
    EXPECT_EQ(in_place, y);
    rope_backward(shape, y.data(), cos.data(), sin.data(), back.data(), 0, kRows);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t head = 0; head < 2; ++head) {
        for (int64_t i = 0; i < half; ++i) {
          const auto at = static_cast<size_t>((row * 2 + head) * 2 * half + i);
          const auto pair = at + static_cast<size_t>(half);
          const auto angle = static_cast<size_t>(row % 3 * half + i);
          const double a = x[at], b = x[pair], c = cos[angle], s = sin[angle];
          EXPECT_NEAR(y[at], a * c - b * s, 1e-6) << half;
          EXPECT_NEAR(y[pair], b * c + a * s, 1e-6) << half;
          EXPECT_NEAR(back[at], a, 2e-6) << half;
          EXPECT_NEAR(back[pair], b, 2e-6) << half;
        }
      }
    }
  }
}

}  // namespace rope_test
}  // namespace siamese::kernels

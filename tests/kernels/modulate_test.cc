#include "siamese/kernels/modulate.h"

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/reference/modulate.h"

namespace siamese::kernels {
namespace modulate_test {

SIAMESE_AT_EVERY_SIMD_LEVEL(Modulate);

constexpr int64_t kSamples = 3;

// Scale and shift lie in rows of one wider array, as the parts of a conditioning vector do.
struct ModulateCase {
  ModulateCase(int64_t token_count, int64_t col_count, bool is_gate)
      : shape{kSamples, token_count, col_count},
        one(is_gate ? 0.0F : 1.0F),
        stride(3 * col_count + 1),
        x(random_floats(kSamples * token_count * col_count, "x", 0.3)),
        dy(random_floats(kSamples * token_count * col_count, "dy")),
        wide(random_floats(kSamples * stride, "wide")),
        y(x.size(), kUntouched),
        dx(x.size(), kUntouched),
        dscale(static_cast<size_t>(kSamples * col_count), kUntouched),
        dshift(dscale) {}

  Modulation by() const {
    const float* const shift = one == 0 ? nullptr : wide.data();
    return {shape.tokens, shape.cols, one, wide.data() + shape.cols, stride, shift, stride};
  }
  void forward(int64_t begin, int64_t end) { modulate_forward(by(), x.data(), y.data(), begin, end); }
  void backward(int64_t sample, int64_t begin, int64_t end) {
    modulate_backward(by(), dy.data(), x.data(), dx.data(), dscale.data(), one == 0 ? nullptr : dshift.data(), sample,
                      begin, end);
  }
  // [samples, cols] from column `first` of the wide array.
  std::vector<double> part(int64_t first) const {
    std::vector<double> values;
    for (int64_t b = 0; b < kSamples; ++b) {
      for (int64_t c = 0; c < shape.cols; ++c) values.push_back(wide[static_cast<size_t>(b * stride + first + c)]);
    }
    return values;
  }

  reference::ModulateShape shape;
  float one;
  int64_t stride;
  std::vector<float> x, dy, wide, y, dx, dscale, dshift;
};

void expect_equals_reference(const ModulateCase& c) {
  const std::vector<double> x = widen(c.x), dy = widen(c.dy), scale = c.part(c.shape.cols), shift = c.part(0);
  std::vector<double> y(x.size()), dx(x.size()), dscale(scale.size()), dshift(scale.size());
  reference::modulate_forward(c.shape, c.one, x.data(), scale.data(), c.one == 0 ? nullptr : shift.data(), y.data());
  reference::modulate_backward(c.shape, c.one, dy.data(), x.data(), scale.data(), dx.data(), dscale.data(),
                               dshift.data());
  // y: one + scale and the product are rounded, then the sum. Sums: a rounding per token, and that of the product.
  std::vector<double> y_bound(x.size()), dx_bound(x.size()), dscale_bound(scale.size()), dshift_bound(scale.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const auto col = static_cast<int64_t>(i) % c.shape.cols;
    const auto at = static_cast<size_t>(static_cast<int64_t>(i) / (c.shape.tokens * c.shape.cols) * c.shape.cols + col);
    y_bound[i] = kUlp * (2 * std::abs(x[i] * (c.one + scale[at])) + std::abs(y[i]));
    dx_bound[i] = 2 * kUlp * std::abs(dx[i]);
    dscale_bound[at] += static_cast<double>(c.shape.tokens + 1) * kUlp * std::abs(dy[i] * x[i]);
    dshift_bound[at] += static_cast<double>(c.shape.tokens) * kUlp * std::abs(dy[i]);
  }
  const std::string shape = shape_text(c.shape.tokens, c.shape.cols);
  expect_within(c.y, y, y_bound, "y " + shape);
  expect_within(c.dx, dx, dx_bound, "dx " + shape);
  expect_within(c.dscale, dscale, dscale_bound, "dscale " + shape);
  if (c.one == 1) expect_within(c.dshift, dshift, dshift_bound, "dshift " + shape);
}

TEST_P(Modulate, EqualsTheReference) {
  for (const int64_t cols : {1, 31, 32, 33, 257}) {
    for (const int64_t tokens : {1, 31, 33, 257}) {
      for (const bool is_gate : {false, true}) {
        ModulateCase c(tokens, cols, is_gate);
        c.forward(0, kSamples * tokens);
        for (int64_t sample = 0; sample < kSamples; ++sample) c.backward(sample, 0, cols);
        expect_equals_reference(c);
      }
    }
  }
}

TEST_P(Modulate, AnyRangeGivesTheSameBits) {
  for (const bool is_gate : {false, true}) {
    ModulateCase whole(5, 67, is_gate), split(5, 67, is_gate);
    whole.forward(0, 15);
    for (int64_t row = 0; row < 15; ++row) split.forward(row, row + 1);
    for (int64_t sample = 0; sample < kSamples; ++sample) {
      whole.backward(sample, 0, 67);
      split.backward(sample, 13, 67);
      split.backward(sample, 0, 13);
    }
    EXPECT_TRUE(same_bits(whole.y, split.y));
    EXPECT_TRUE(same_bits(whole.dx, split.dx));
    EXPECT_TRUE(same_bits(whole.dscale, split.dscale));
    EXPECT_TRUE(same_bits(whole.dshift, split.dshift));
  }
}

TEST_P(Modulate, LeavesTheRestAlone) {
  ModulateCase c(4, 33, false);
  c.forward(5, 7);
  c.backward(1, 3, 20);
  for (int64_t i = 0; i < static_cast<int64_t>(c.x.size()); ++i) {
    const int64_t row = i / 33;
    const int64_t col = i % 33;
    const bool in_task = row / 4 == 1 && col >= 3 && col < 20;
    EXPECT_EQ(c.y[static_cast<size_t>(i)] != kUntouched, row >= 5 && row < 7) << i;
    EXPECT_EQ(c.dx[static_cast<size_t>(i)] != kUntouched, in_task) << i;
  }
  for (int64_t i = 0; i < kSamples * 33; ++i) {
    const bool in_task = i / 33 == 1 && i % 33 >= 3 && i % 33 < 20;
    EXPECT_EQ(c.dscale[static_cast<size_t>(i)] != kUntouched, in_task) << i;
    EXPECT_EQ(c.dshift[static_cast<size_t>(i)] != kUntouched, in_task) << i;
  }
}

TEST_P(Modulate, ToBfloat16IsTheSameRounded) {
  for (const int64_t cols : {1, 31, 33, 257}) {
    for (const bool is_gate : {false, true}) {
      ModulateCase of_floats(5, cols, is_gate), c(5, cols, is_gate);
      const Halves dy = rounded(c.dy);
      Halves y(c.y.size());
      of_floats.dy = floats_of(dy);
      of_floats.forward(0, 5 * kSamples);
      modulate_forward(c.by(), c.x.data(), y.data(), 0, 5 * kSamples);
      expect_rounded(y, of_floats.y, "y");
      for (int64_t sample = 0; sample < kSamples; ++sample) {
        of_floats.backward(sample, 0, cols);
        modulate_backward(c.by(), dy.data(), c.x.data(), c.dx.data(), c.dscale.data(),
                          is_gate ? nullptr : c.dshift.data(), sample, 0, cols);
      }
      EXPECT_TRUE(same_bits(c.dx, of_floats.dx)) << cols;
      EXPECT_TRUE(same_bits(c.dscale, of_floats.dscale)) << cols;
      EXPECT_TRUE(same_bits(c.dshift, of_floats.dshift)) << cols;
    }
  }
}

}  // namespace modulate_test
}  // namespace siamese::kernels

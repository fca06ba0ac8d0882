#include "siamese/kernels/rms_norm.h"

#include <limits>

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/reference/rms_norm.h"

namespace siamese::kernels {
namespace {

SIAMESE_AT_EVERY_SIMD_LEVEL(RmsNorm);

constexpr float kRmsNormEps = 1e-5f;

// One problem, its float result and its double result.
struct RmsNormCase {
  RmsNormCase(int64_t row_count, int64_t col_count, bool with_gain = true)
      : rows(row_count),
        cols(col_count),
        x(random_floats(rows * cols, "x", 0.3)),
        dy(random_floats(rows * cols, "dy")),
        gain_values(random_floats(cols, "gain", 1)),
        gain(with_gain ? gain_values.data() : nullptr),
        y(x.size(), kUntouched),
        dx(x.size(), kUntouched),
        rstd(static_cast<size_t>(rows), kUntouched),
        dgain(random_floats(cols, "dgain")) {}
  RmsNormCase(const RmsNormCase&) = delete;

  void forward(int64_t begin, int64_t end) {
    rms_norm_forward(x.data(), gain, kRmsNormEps, y.data(), rstd.data(), begin, end, cols);
  }
  void backward(int64_t begin, int64_t end) {
    rms_norm_backward(dy.data(), x.data(), gain, rstd.data(), dx.data(), dgain.data(), begin, end, cols);
  }

  int64_t rows, cols;
  std::vector<float> x, dy, gain_values;
  const float* gain;
  std::vector<float> y, dx, rstd, dgain;
};

void expect_equals_reference(RmsNormCase& c) {
  const std::vector<double> x = widen(c.x), dy = widen(c.dy), gain = widen(c.gain_values);
  const double* wide_gain = c.gain == nullptr ? nullptr : gain.data();
  std::vector<double> y(x.size()), dx(x.size()), rstd(c.rstd.size()), dgain = widen(c.dgain);
  const std::vector<double> dgain_before = dgain;
  reference::rms_norm_forward(x.data(), wide_gain, kRmsNormEps, y.data(), rstd.data(), c.rows, c.cols);
  reference::rms_norm_backward(dy.data(), x.data(), wide_gain, rstd.data(), dx.data(), dgain.data(), c.rows, c.cols);
  c.forward(0, c.rows);
  c.backward(0, c.rows);

  // rstd is rounded once (its sum is in double) and y twice more. dx = rstd (g - n * projection): the roundings on g
  // are 4 (product, difference, rstd, scaling), on n * projection 7 (n: 2, projection: 2 + those of g inside, and 2
  // outside). dgain: 3 roundings on a term n * dy, one per row on the running sum.
  std::vector<double> y_bound(x.size()), dx_bound(x.size()), rstd_bound(rstd.size()), dgain_bound(dgain.size());
  for (int64_t col = 0; col < c.cols; ++col) {
    double magnitude = std::abs(dgain_before[col]);
    for (int64_t row = 0; row < c.rows; ++row) {
      magnitude += std::abs(dy[row * c.cols + col] * x[row * c.cols + col] * rstd[row]);
    }
    dgain_bound[col] = static_cast<double>(c.rows + 3) * kUlp * magnitude;
  }
  for (int64_t row = 0; row < c.rows; ++row) {
    rstd_bound[row] = kUlp * rstd[row];
    double projection = 0;
    for (int64_t col = 0; col < c.cols; ++col) {
      const int64_t i = row * c.cols + col;
      projection += std::abs(dy[i] * (wide_gain ? gain[col] : 1) * x[i] * rstd[row]) / static_cast<double>(c.cols);
    }
    for (int64_t col = 0; col < c.cols; ++col) {
      const int64_t i = row * c.cols + col;
      y_bound[i] = 3 * kUlp * std::abs(y[i]);
      const double g = std::abs(dy[i] * (wide_gain ? gain[col] : 1));
      dx_bound[i] = kUlp * rstd[row] * (4 * g + 7 * std::abs(x[i] * rstd[row]) * projection);
    }
  }
  const std::string shape = shape_text(c.rows, c.cols);
  expect_within(c.rstd, rstd, rstd_bound, "rstd " + shape);
  expect_within(c.y, y, y_bound, "y " + shape);
  expect_within(c.dx, dx, dx_bound, "dx " + shape);
  expect_within(c.dgain, dgain, dgain_bound, "dgain " + shape);
}

TEST_P(RmsNorm, EqualsTheReference) {
  for (int64_t cols : kWidths) {
    for (int64_t rows : {1, 2, 5, 16}) {
      for (bool with_gain : {true, false}) {
        RmsNormCase c(rows, cols, with_gain);
        expect_equals_reference(c);
      }
    }
  }
}

TEST_P(RmsNorm, NoGainIsAGainOfOne) {
  for (int64_t cols : kWidths) {
    RmsNormCase without(3, cols, false), ones(3, cols);
    ones.gain_values.assign(ones.gain_values.size(), 1.0f);
    for (RmsNormCase* c : {&without, &ones}) {
      c->forward(0, 3);
      c->backward(0, 3);
    }
    EXPECT_TRUE(same_bits(without.y, ones.y));
    EXPECT_TRUE(same_bits(without.dx, ones.dx));
    EXPECT_TRUE(same_bits(without.dgain, ones.dgain));
  }
}

TEST_P(RmsNorm, RowByRowGivesTheSameBits) {
  for (int64_t cols : kWidths) {
    RmsNormCase whole(7, cols), split(7, cols);
    whole.forward(0, 7);
    whole.backward(0, 7);
    for (int64_t row = 0; row < 7; ++row) split.forward(row, row + 1);
    for (int64_t row = 0; row < 7; ++row) split.backward(row, row + 1);
    EXPECT_TRUE(same_bits(whole.y, split.y)) << cols;
    EXPECT_TRUE(same_bits(whole.rstd, split.rstd)) << cols;
    EXPECT_TRUE(same_bits(whole.dx, split.dx)) << cols;
    EXPECT_TRUE(same_bits(whole.dgain, split.dgain)) << cols;
  }
}

TEST_P(RmsNorm, LeavesOtherRowsAlone) {
  for (int64_t cols : kWidths) {
    RmsNormCase c(3, cols);
    c.forward(1, 2);
    c.backward(1, 2);
    for (const std::vector<float>* written : {&c.y, &c.dx}) {
      for (int64_t i = 0; i < 3 * cols; ++i) {
        const bool inside = i >= cols && i < 2 * cols;
        EXPECT_EQ((*written)[i] != kUntouched, inside) << cols << " at " << i;
      }
    }
    EXPECT_EQ(c.rstd[0], kUntouched);
    EXPECT_NE(c.rstd[1], kUntouched);
    EXPECT_EQ(c.rstd[2], kUntouched);
  }
}

TEST_P(RmsNorm, NullDgainIsNotWanted) {
  RmsNormCase with(4, 33), without(4, 33);
  for (RmsNormCase* c : {&with, &without}) c->forward(0, 4);
  with.backward(0, 4);
  rms_norm_backward(without.dy.data(), without.x.data(), without.gain, without.rstd.data(), without.dx.data(), nullptr,
                    0, 4, 33);
  EXPECT_TRUE(same_bits(with.dx, without.dx));
}

TEST_P(RmsNorm, NullDxIsNotWanted) {
  for (const int64_t cols : {1, 31, 64, 257}) {
    RmsNormCase with(4, cols), without(4, cols);
    for (RmsNormCase* c : {&with, &without}) c->forward(0, 4);
    with.backward(0, 4);
    rms_norm_backward(without.dy.data(), without.x.data(), without.gain, without.rstd.data(), nullptr,
                      without.dgain.data(), 0, 4, cols);
    EXPECT_TRUE(same_bits(with.dgain, without.dgain)) << cols;
  }
}

TEST_P(RmsNorm, ZeroRowsAreTamedByEps) {
  RmsNormCase c(2, 33);
  std::fill(c.x.begin(), c.x.end(), 0.0f);
  expect_equals_reference(c);
  for (float value : c.y) EXPECT_EQ(value, 0);
  EXPECT_FLOAT_EQ(c.rstd[0], 1 / std::sqrt(kRmsNormEps));
}

// x^2 overflows a float beyond 1.8e19, its sum over a row earlier; the statistics do not.
TEST_P(RmsNorm, LargeAndSmallRowsStayExact) {
  for (double scale : {1e18, 1e30, 1e36, 1e-12}) {
    RmsNormCase c(3, 768);
    c.x = random_floats(3 * 768, "x", 0, scale);
    expect_equals_reference(c);
  }
}

TEST_P(RmsNorm, NanStaysInItsRow) {
  for (int64_t cols : {1, 17, 100}) {
    RmsNormCase clean(3, cols), broken(3, cols);
    broken.x[2 * cols - 1] = std::numeric_limits<float>::quiet_NaN();
    for (RmsNormCase* c : {&clean, &broken}) {
      c->forward(0, 3);
      c->backward(0, 3);
    }
    for (int64_t i = 0; i < 3 * cols; ++i) {
      if (i / cols == 1) {
        EXPECT_TRUE(std::isnan(broken.y[i]) && std::isnan(broken.dx[i])) << i;
      } else {
        EXPECT_TRUE(same_bits(&broken.y[i], &clean.y[i], 1) && same_bits(&broken.dx[i], &clean.dx[i], 1)) << i;
      }
    }
  }
}

}  // namespace
}  // namespace siamese::kernels

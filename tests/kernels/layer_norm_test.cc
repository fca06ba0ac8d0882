#include "siamese/kernels/layer_norm.h"

#include <limits>

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/reference/layer_norm.h"

namespace siamese::kernels {
namespace {

SIAMESE_AT_EVERY_SIMD_LEVEL(LayerNorm);

constexpr float kLayerNormEps = 1e-5f;

// One problem, its float result and its double result.
struct LayerNormCase {
  LayerNormCase(int64_t row_count, int64_t col_count, bool with_gain = true, bool with_bias = true)
      : rows(row_count),
        cols(col_count),
        x(random_floats(rows * cols, "x", 0.3)),
        dy(random_floats(rows * cols, "dy")),
        gain_values(random_floats(cols, "gain", 1)),
        bias_values(random_floats(cols, "bias")),
        gain(with_gain ? gain_values.data() : nullptr),
        bias(with_bias ? bias_values.data() : nullptr),
        y(x.size(), kUntouched),
        dx(x.size(), kUntouched),
        mean(static_cast<size_t>(rows), kUntouched),
        rstd(static_cast<size_t>(rows), kUntouched),
        dgain(random_floats(cols, "dgain")),
        dbias(random_floats(cols, "dbias")) {}
  LayerNormCase(const LayerNormCase&) = delete;

  void forward(int64_t begin, int64_t end) {
    layer_norm_forward(x.data(), gain, bias, kLayerNormEps, y.data(), mean.data(), rstd.data(), begin, end, cols);
  }
  void backward(int64_t begin, int64_t end) {
    layer_norm_backward(dy.data(), x.data(), gain, mean.data(), rstd.data(), dx.data(), dgain.data(), dbias.data(),
                        begin, end, cols);
  }

  int64_t rows, cols;
  std::vector<float> x, dy, gain_values, bias_values;
  const float* gain;
  const float* bias;
  std::vector<float> y, dx, mean, rstd, dgain, dbias;
};

void expect_equals_reference(LayerNormCase& c) {
  const std::vector<double> x = widen(c.x), dy = widen(c.dy), gain = widen(c.gain_values), bias = widen(c.bias_values);
  const double* wide_gain = c.gain == nullptr ? nullptr : gain.data();
  const double* wide_bias = c.bias == nullptr ? nullptr : bias.data();
  std::vector<double> y(x.size()), dx(x.size()), mean(c.mean.size()), rstd(c.rstd.size());
  std::vector<double> dgain = widen(c.dgain), dbias = widen(c.dbias);
  const std::vector<double> dgain_before = dgain, dbias_before = dbias;
  reference::layer_norm_forward(x.data(), wide_gain, wide_bias, kLayerNormEps, y.data(), mean.data(), rstd.data(),
                                c.rows, c.cols);
  reference::layer_norm_backward(dy.data(), x.data(), wide_gain, mean.data(), rstd.data(), dx.data(), dgain.data(),
                                 dbias.data(), c.rows, c.cols);
  c.forward(0, c.rows);
  c.backward(0, c.rows);

  // Statistics are rounded once (their sums are in double). The rounding of the mean shifts n = (x - mean) rstd by one
  // rounding of `offset` = |mean| rstd; difference, rstd and product are three of |n|: n is off by 3 |n| + offset, y by
  // that times gain, one for the product with gain and one of |y| for the sum. In dx = rstd (g - mean(g) - n mean(g n))
  // each term gets at most 8, with |n| + offset for n. dgain, dbias: 4 on a term, one per row on the running sum.
  std::vector<double> y_bound(x.size()), dx_bound(x.size()), mean_bound(mean.size()), rstd_bound(rstd.size());
  std::vector<double> dgain_bound(dgain.size()), dbias_bound(dbias.size());
  const auto magnitude_of_n = [&](int64_t row, int64_t i) {
    return (std::abs(x[i] - mean[row]) + std::abs(mean[row])) * rstd[row];
  };
  for (int64_t col = 0; col < c.cols; ++col) {
    double gain_magnitude = std::abs(dgain_before[col]);
    double bias_magnitude = std::abs(dbias_before[col]);
    for (int64_t row = 0; row < c.rows; ++row) {
      const int64_t i = row * c.cols + col;
      gain_magnitude += std::abs(dy[i]) * magnitude_of_n(row, i);
      bias_magnitude += std::abs(dy[i]);
    }
    dgain_bound[col] = static_cast<double>(c.rows + 4) * kUlp * gain_magnitude;
    dbias_bound[col] = static_cast<double>(c.rows) * kUlp * bias_magnitude;
  }
  for (int64_t row = 0; row < c.rows; ++row) {
    // A mean that cancels keeps the last bits of its double sum, a variance of nothing (one column) is all eps.
    double magnitude = 0, mean_g = 0, projection = 0;
    for (int64_t col = 0; col < c.cols; ++col) {
      const int64_t i = row * c.cols + col;
      const double g = std::abs(dy[i] * (wide_gain ? gain[col] : 1)) / static_cast<double>(c.cols);
      magnitude += std::abs(x[i]) / static_cast<double>(c.cols);
      mean_g += g;
      projection += g * magnitude_of_n(row, i);
    }
    mean_bound[row] = kUlp * std::abs(mean[row]) + static_cast<double>(c.cols) * 0x1p-52 * magnitude;
    rstd_bound[row] = kUlp * rstd[row];
    for (int64_t col = 0; col < c.cols; ++col) {
      const int64_t i = row * c.cols + col;
      const double scale = wide_gain ? std::abs(gain[col]) : 1;
      const double n = std::abs(x[i] - mean[row]) * rstd[row];
      const double offset = mean_bound[row] / kUlp * rstd[row];
      y_bound[i] = kUlp * (scale * (4 * n + offset) + std::abs(y[i]));
      dx_bound[i] = 8 * kUlp * rstd[row] * (std::abs(dy[i]) * scale + mean_g + (n + offset) * projection);
    }
  }
  const std::string shape = shape_text(c.rows, c.cols);
  expect_within(c.mean, mean, mean_bound, "mean " + shape);
  expect_within(c.rstd, rstd, rstd_bound, "rstd " + shape);
  expect_within(c.y, y, y_bound, "y " + shape);
  expect_within(c.dx, dx, dx_bound, "dx " + shape);
  expect_within(c.dgain, dgain, dgain_bound, "dgain " + shape);
  expect_within(c.dbias, dbias, dbias_bound, "dbias " + shape);
}

TEST_P(LayerNorm, EqualsTheReference) {
  for (int64_t cols : kWidths) {
    for (int64_t rows : {1, 2, 5, 16}) {
      for (bool with_gain : {true, false}) {
        for (bool with_bias : {true, false}) {
          LayerNormCase c(rows, cols, with_gain, with_bias);
          expect_equals_reference(c);
        }
      }
    }
  }
}

TEST_P(LayerNorm, NoGainIsOneAndNoBiasIsZero) {
  for (int64_t cols : kWidths) {
    LayerNormCase without(3, cols, false, false), neutral(3, cols);
    neutral.gain_values.assign(neutral.gain_values.size(), 1.0f);
    neutral.bias_values.assign(neutral.bias_values.size(), 0.0f);
    for (LayerNormCase* c : {&without, &neutral}) {
      c->forward(0, 3);
      c->backward(0, 3);
    }
    EXPECT_TRUE(same_bits(without.y, neutral.y));
    EXPECT_TRUE(same_bits(without.dx, neutral.dx));
    EXPECT_TRUE(same_bits(without.dgain, neutral.dgain));
    EXPECT_TRUE(same_bits(without.dbias, neutral.dbias));
  }
}

TEST_P(LayerNorm, RowByRowGivesTheSameBits) {
  for (int64_t cols : kWidths) {
    LayerNormCase whole(7, cols), split(7, cols);
    whole.forward(0, 7);
    whole.backward(0, 7);
    for (int64_t row = 0; row < 7; ++row) split.forward(row, row + 1);
    for (int64_t row = 0; row < 7; ++row) split.backward(row, row + 1);
    EXPECT_TRUE(same_bits(whole.y, split.y)) << cols;
    EXPECT_TRUE(same_bits(whole.mean, split.mean)) << cols;
    EXPECT_TRUE(same_bits(whole.rstd, split.rstd)) << cols;
    EXPECT_TRUE(same_bits(whole.dx, split.dx)) << cols;
    EXPECT_TRUE(same_bits(whole.dgain, split.dgain)) << cols;
    EXPECT_TRUE(same_bits(whole.dbias, split.dbias)) << cols;
  }
}

TEST_P(LayerNorm, LeavesOtherRowsAlone) {
  for (int64_t cols : kWidths) {
    LayerNormCase c(3, cols);
    c.forward(1, 2);
    c.backward(1, 2);
    for (const std::vector<float>* written : {&c.y, &c.dx}) {
      for (int64_t i = 0; i < 3 * cols; ++i) {
        const bool inside = i >= cols && i < 2 * cols;
        EXPECT_EQ((*written)[i] != kUntouched, inside) << cols << " at " << i;
      }
    }
    for (const std::vector<float>* written : {&c.mean, &c.rstd}) {
      EXPECT_EQ((*written)[0], kUntouched);
      EXPECT_NE((*written)[1], kUntouched);
      EXPECT_EQ((*written)[2], kUntouched);
    }
  }
}

TEST_P(LayerNorm, NullGradientsAreNotWanted) {
  LayerNormCase with(4, 33), without(4, 33);
  for (LayerNormCase* c : {&with, &without}) c->forward(0, 4);
  with.backward(0, 4);
  const std::vector<float> dgain_before = without.dgain;
  layer_norm_backward(without.dy.data(), without.x.data(), without.gain, without.mean.data(), without.rstd.data(),
                      without.dx.data(), nullptr, without.dbias.data(), 0, 4, 33);
  EXPECT_TRUE(same_bits(with.dbias, without.dbias));
  layer_norm_backward(without.dy.data(), without.x.data(), without.gain, without.mean.data(), without.rstd.data(),
                      without.dx.data(), without.dgain.data(), nullptr, 0, 4, 33);
  EXPECT_TRUE(same_bits(with.dgain, without.dgain));
  EXPECT_TRUE(same_bits(with.dx, without.dx));
  EXPECT_FALSE(same_bits(dgain_before, without.dgain));
}

TEST_P(LayerNorm, NullDxIsNotWanted) {
  for (const int64_t cols : {1, 31, 64, 257}) {
    LayerNormCase with(4, cols), without(4, cols);
    for (LayerNormCase* c : {&with, &without}) c->forward(0, 4);
    with.backward(0, 4);
    layer_norm_backward(without.dy.data(), without.x.data(), without.gain, without.mean.data(), without.rstd.data(),
                        nullptr, without.dgain.data(), without.dbias.data(), 0, 4, cols);
    EXPECT_TRUE(same_bits(with.dgain, without.dgain)) << cols;
    EXPECT_TRUE(same_bits(with.dbias, without.dbias)) << cols;
  }
}

// A constant row has no deviation: exactly the bias comes out.
TEST_P(LayerNorm, ConstantRowsGiveTheBias) {
  for (float constant : {0.0f, 3.7f, -1e18f}) {
    LayerNormCase c(2, 100);
    std::fill(c.x.begin(), c.x.end(), constant);
    c.forward(0, 2);
    for (int64_t i = 0; i < 200; ++i) EXPECT_EQ(c.y[i], c.bias[i % 100]);
    EXPECT_EQ(c.mean[1], constant);
    EXPECT_FLOAT_EQ(c.rstd[1], 1 / std::sqrt(kLayerNormEps));
  }
}

// In float, E[x^2] - E[x]^2 would leave nothing of a deviation of 1 beside a mean of 1e4, and x^2 would overflow at
// 1e30.
TEST_P(LayerNorm, OffsetAndLargeRowsStayExact) {
  LayerNormCase offset(3, 768);
  offset.x = random_floats(3 * 768, "x", 1e4);
  expect_equals_reference(offset);
  for (double scale : {1e18, 1e30, 1e36, 1e-12}) {
    LayerNormCase c(3, 768);
    c.x = random_floats(3 * 768, "x", 0.5 * scale, scale);
    expect_equals_reference(c);
  }
}

TEST_P(LayerNorm, NanStaysInItsRow) {
  for (int64_t cols : {1, 17, 100}) {
    LayerNormCase clean(3, cols), broken(3, cols);
    broken.x[2 * cols - 1] = std::numeric_limits<float>::quiet_NaN();
    for (LayerNormCase* c : {&clean, &broken}) {
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

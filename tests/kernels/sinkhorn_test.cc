#include "siamese/kernels/sinkhorn.h"

#include <limits>

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/reference/sinkhorn.h"

namespace siamese::kernels {
namespace {

SIAMESE_AT_EVERY_SIMD_LEVEL(Sinkhorns);

struct SinkhornCase {
  SinkhornCase(int64_t row_count, int64_t size, int64_t rounds, double scale = 1)
      : rows(row_count),
        n(size),
        iterations(rounds),
        logits(random_floats(rows * n * n, "logits", 0, scale)),
        d_out(random_floats(rows * n * n, "d_out")),
        out(logits.size(), kUntouched),
        d_logits(logits.size(), kUntouched),
        scratch(static_cast<size_t>(sinkhorn_scratch(n, iterations))) {}

  void run(int64_t begin, int64_t end) {
    sinkhorn_forward(logits.data(), n, iterations, out.data(), begin, end);
    sinkhorn_backward(d_out.data(), logits.data(), n, iterations, d_logits.data(), scratch.data(), begin, end);
  }

  int64_t rows, n, iterations;
  std::vector<float> logits, d_out, out, d_logits, scratch;
};

void expect_equals_reference(SinkhornCase& c) {
  c.run(0, c.rows);
  std::vector<double> out, d_logits;
  for (int64_t row = 0; row < c.rows; ++row) {
    const auto at = [&](const std::vector<float>& values) {
      return reference::Matrix(values.begin() + row * c.n * c.n, values.begin() + (row + 1) * c.n * c.n);
    };
    const auto steps = reference::sinkhorn_forward(at(c.logits), c.n, c.iterations);
    const auto gradient = reference::sinkhorn_backward(steps, at(c.d_out), c.n);
    out.insert(out.end(), steps.back().begin(), steps.back().end());
    d_logits.insert(d_logits.end(), gradient.begin(), gradient.end());
  }
  // Each of the 2 * iterations steps rounds a logarithm of size |largest| a few times, and moves the results, all at
  // most 1, by as much; the gradient of n numbers near 1 likewise.
  double largest = 1;
  for (const float value : c.logits) largest = std::max(largest, 2 * std::abs(static_cast<double>(value)));
  const double bound = 4 * kUlp * largest * static_cast<double>(2 * c.iterations + 2);
  const std::string what = std::to_string(c.n) + " x " + std::to_string(c.n) + ", " + std::to_string(c.rows) +
                           " rows, " + std::to_string(c.iterations) + " rounds";
  expect_within(c.out, out, std::vector<double>(out.size(), bound), "P " + what);
  expect_within(c.d_logits, d_logits, std::vector<double>(out.size(), bound * static_cast<double>(c.n)),
                "gradient " + what);
}

TEST_P(Sinkhorns, EqualsTheReference) {
  for (const int64_t n : {1, 2, 3, 4, 7, 16}) {
    for (const int64_t rows : {1, 15, 16, 17, 33}) {
      for (const int64_t iterations : {1, 2, 20}) {
        SinkhornCase c(rows, n, iterations);
        expect_equals_reference(c);
      }
    }
  }
}

TEST_P(Sinkhorns, LargeLogitsStayFiniteAndRight) {
  SinkhornCase c(17, 4, 20, 60);
  expect_equals_reference(c);
}

TEST_P(Sinkhorns, RowByRowGivesTheSameBits) {
  for (const int64_t n : {1, 3, 4}) {
    SinkhornCase whole(37, n, 5), split(37, n, 5);
    whole.run(0, 37);
    for (int64_t row = 36; row >= 0; --row) split.run(row, row + 1);
    EXPECT_TRUE(same_bits(whole.out, split.out)) << n;
    EXPECT_TRUE(same_bits(whole.d_logits, split.d_logits)) << n;
  }
}

TEST_P(Sinkhorns, LeavesOtherRowsAlone) {
  SinkhornCase c(5, 3, 2);
  c.run(2, 4);
  for (size_t i = 0; i < c.out.size(); ++i) {
    const bool inside = i >= 18 && i < 36;
    EXPECT_EQ(c.out[i] != kUntouched, inside) << i;
    EXPECT_EQ(c.d_logits[i] != kUntouched, inside) << i;
  }
}

TEST_P(Sinkhorns, NanIsSeenAndStaysInItsRow) {
  SinkhornCase clean(20, 4, 20), broken(20, 4, 20);
  broken.logits[16 * 7 + 5] = std::numeric_limits<float>::quiet_NaN();
  clean.run(0, 20);
  broken.run(0, 20);
  EXPECT_TRUE(std::isnan(broken.out[16 * 7 + 5]));
  for (int64_t row = 0; row < 20; ++row) {
    if (row == 7) continue;
    EXPECT_TRUE(same_bits(&broken.out[16 * row], &clean.out[16 * row], 16)) << row;
    EXPECT_TRUE(same_bits(&broken.d_logits[16 * row], &clean.d_logits[16 * row], 16)) << row;
  }
}

}  // namespace
}  // namespace siamese::kernels

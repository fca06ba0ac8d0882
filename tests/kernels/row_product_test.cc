#include "siamese/kernels/row_product.h"

#include <bit>
#include <limits>

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/reference/row_product.h"

namespace siamese::kernels {
namespace row_product_test {

SIAMESE_AT_EVERY_SIMD_LEVEL(RowProduct);

// Weights as floats and as bfloat16; the floats are those that a bfloat16 can hold, so that both have one reference.
struct RowProductCase {
  RowProductCase(int64_t row_count, int64_t in_count, int64_t out_count, int64_t gap = 0)
      : rows(row_count),
        in(in_count),
        out(out_count),
        stride(in_count + gap),
        x(random_floats(rows * in, "x", 0.1)),
        w(random_floats(out * stride, "w", 0.2)) {
    for (float& value : w) {
      const auto bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
      halves.push_back({bits});
      value = std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    }
  }

  template <class Weight>
  std::vector<float> product(const std::vector<Weight>& weights, const std::vector<int64_t>& cuts) const {
    std::vector<float> y(static_cast<size_t>(rows * out), kUntouched);
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      row_product(x.data(), weights.data(), stride, y.data(), rows, in, out, cuts[i], cuts[i + 1]);
    }
    return y;
  }

  int64_t rows, in, out, stride;
  std::vector<float> x, w;
  std::vector<Bfloat16> halves;
};

// A sum of `in` products, each with one rounding as it is added: at most in + 1 of the sum of magnitudes.
void expect_reference(const RowProductCase& c) {
  std::vector<double> x = widen(c.x), w = widen(c.w);
  std::vector<double> expected(static_cast<size_t>(c.rows * c.out)), bound(expected.size());
  reference::row_product(x.data(), w.data(), c.stride, expected.data(), c.rows, c.in, c.out);
  for (auto* values : {&x, &w}) {
    for (double& value : *values) value = std::abs(value);
  }
  reference::row_product(x.data(), w.data(), c.stride, bound.data(), c.rows, c.in, c.out);
  for (double& value : bound) value *= static_cast<double>(c.in + 1) * kUlp;
  const std::string what = std::to_string(c.rows) + "x" + shape_text(c.out, c.in);
  const std::vector<float> y = c.product(c.w, {0, c.out});
  expect_within(y, expected, bound, what);
  EXPECT_TRUE(same_bits(c.product(c.halves, {0, c.out}), y)) << "bfloat16 " << what;
}

TEST_P(RowProduct, EqualsTheReference) {
  for (const int64_t rows : {1, 2, 3, 4, 5, 7, 8, 13}) {
    for (const int64_t in : kWidths) {
      for (const int64_t out : {1, 7, 8, 9, 33}) expect_reference(RowProductCase(rows, in, out));
    }
  }
}

TEST_P(RowProduct, RowsOfWeightsMayLieApart) {
  for (const int64_t in : {1, 31, 33}) expect_reference(RowProductCase(3, in, 20, 5));
}

TEST_P(RowProduct, BitsDependOnTheRowsAlone) {
  for (const int64_t in : {31, 64, 257}) {
    const RowProductCase all(8, in, 45);
    const std::vector<float> whole = all.product(all.w, {0, 45});
    EXPECT_TRUE(same_bits(all.product(all.w, {0, 1, 3, 8, 24, 24, 41, 45}), whole)) << in;
    for (const int64_t rows : {1, 2, 3, 5, 7}) {
      RowProductCase some(rows, in, 45);
      std::copy_n(all.x.begin(), rows * in, some.x.begin());
      some.w = all.w;
      EXPECT_TRUE(same_bits(some.product(some.w, {0, 45}).data(), whole.data(), rows * 45))
          << rows << " rows of " << in;
    }
  }
}

TEST_P(RowProduct, OnlyTheRangeIsTouched) {
  const RowProductCase c(3, 33, 40);
  const std::vector<float> y = c.product(c.w, {11, 30});
  for (int64_t i = 0; i < 3 * 40; ++i) EXPECT_EQ(y[i] != kUntouched, i % 40 >= 11 && i % 40 < 30) << i;
}

TEST_P(RowProduct, NothingToAddIsZero) {
  const RowProductCase c(2, 0, 9);
  EXPECT_TRUE(same_bits(c.product(c.w, {0, 9}), std::vector<float>(18, 0.0F)));
}

TEST_P(RowProduct, NanStaysWithItsRows) {
  RowProductCase c(2, 33, 9);
  const std::vector<float> clean = c.product(c.w, {0, 9});
  c.w[4 * 33 + 32] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> y = c.product(c.w, {0, 9});
  for (int64_t i = 0; i < 18; ++i) EXPECT_TRUE(i % 9 == 4 ? std::isnan(y[i]) : y[i] == clean[i]) << i;
}

}  // namespace row_product_test
}  // namespace siamese::kernels

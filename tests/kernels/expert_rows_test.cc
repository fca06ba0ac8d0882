#include "siamese/kernels/expert_rows.h"

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/reference/expert_rows.h"

namespace siamese::kernels {
namespace expert_rows_test {

SIAMESE_AT_EVERY_SIMD_LEVEL(ExpertRows);

constexpr int64_t kExpertRowsRows = 5;
constexpr int64_t kChoices = 3;
constexpr int64_t kPacked = kExpertRowsRows * kChoices;

// A permutation of the packed rows, and the rows they come from.
std::vector<int64_t> places() {
  std::vector<int64_t> list;
  for (int64_t i = 0; i < kPacked; ++i) list.push_back(i * 7 % kPacked);
  return list;
}

std::vector<int64_t> sources() {
  std::vector<int64_t> list(kPacked);
  const auto place = places();
  for (int64_t i = 0; i < kPacked; ++i) list[size_t(place[size_t(i)])] = i / kChoices;
  return list;
}

std::vector<double> magnitudes(const std::vector<float>& values) {
  std::vector<double> list = widen(values);
  for (double& value : list) value = std::abs(value);
  return list;
}

TEST_P(ExpertRows, GatherEqualsTheReference) {
  const auto source = sources();
  for (const int64_t cols : kWidths) {
    const auto x = random_floats(kExpertRowsRows * cols, "x");
    const auto factors = random_floats(kPacked, "factors");
    for (const bool weighed : {false, true}) {
      std::vector<float> packed(size_t(kPacked * cols), kUntouched);
      gather_rows(x.data(), source.data(), weighed ? factors.data() : nullptr, packed.data(), 0, 6, cols);
      gather_rows(x.data(), source.data(), weighed ? factors.data() : nullptr, packed.data(), 6, kPacked, cols);
      std::vector<double> expected(packed.size()), bound(packed.size());
      reference::gather_rows(widen(x).data(), source.data(), weighed ? widen(factors).data() : nullptr, expected.data(),
                             kPacked, cols);
      for (size_t i = 0; i < bound.size(); ++i) bound[i] = weighed ? std::abs(expected[i]) * kUlp : 0;
      expect_within(packed, expected, bound, "gathered, width " + std::to_string(cols));
    }
  }
}

TEST_P(ExpertRows, CombineEqualsTheReference) {
  const auto place = places();
  for (const int64_t cols : kWidths) {
    const auto packed = random_floats(kPacked * cols, "packed");
    const auto weights = random_floats(kPacked, "weights");
    std::vector<float> y(size_t(kExpertRowsRows * cols), kUntouched);
    combine_rows(packed.data(), place.data(), weights.data(), y.data(), 0, 2, kChoices, cols);
    combine_rows(packed.data(), place.data(), weights.data(), y.data(), 2, kExpertRowsRows, kChoices, cols);
    std::vector<double> expected(y.size()), bound(y.size());
    reference::combine_rows(widen(packed).data(), place.data(), widen(weights).data(), expected.data(), kExpertRowsRows,
                            kChoices, cols);
    reference::combine_rows(magnitudes(packed).data(), place.data(), magnitudes(weights).data(), bound.data(),
                            kExpertRowsRows, kChoices, cols);
    for (double& value : bound) value *= kUlp * (2 * kChoices - 1);
    expect_within(y, expected, bound, "combined, width " + std::to_string(cols));
  }
}

TEST_P(ExpertRows, WeighEqualsTheReference) {
  for (const int64_t cols : kWidths) {
    const auto a = random_floats(kExpertRowsRows * cols, "a");
    const auto b = random_floats(kExpertRowsRows * cols, "b");
    const auto factors = random_floats(kExpertRowsRows, "factors");
    auto weighed = b;
    std::vector<float> products(size_t(kExpertRowsRows), kUntouched);
    weigh_rows(a.data(), weighed.data(), factors.data(), products.data(), 0, 3, cols);
    weigh_rows(a.data(), weighed.data(), factors.data(), products.data(), 3, kExpertRowsRows, cols);
    auto expected_b = widen(b);
    std::vector<double> expected(products.size()), bound(products.size()), bound_b;
    reference::weigh_rows(widen(a).data(), expected_b.data(), widen(factors).data(), expected.data(), kExpertRowsRows,
                          cols);
    for (const double value : expected_b) bound_b.push_back(std::abs(value) * kUlp);
    for (size_t i = 0; i < bound.size(); ++i) bound[i] = std::abs(expected[i]) * kUlp + 1e-12;
    expect_within(weighed, expected_b, bound_b, "weighed, width " + std::to_string(cols));
    expect_within(products, expected, bound, "products, width " + std::to_string(cols));
  }
}

}  // namespace expert_rows_test
}  // namespace siamese::kernels

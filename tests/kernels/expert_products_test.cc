#include "siamese/kernels/expert_products.h"

#include <limits>

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/bfloat16.h"

namespace siamese::kernels {
namespace expert_products_test {

SIAMESE_AT_EVERY_SIMD_LEVEL(ExpertProducts);

struct ExpertProductsSizes {
  int64_t rows, in, out;
  std::string text() const { return std::to_string(rows) + "x" + shape_text(in, out); }
};

// Panels of every width, tiles of every height, odd and even sums, more than one block of each.
const std::vector<ExpertProductsSizes> kSizes = {
    {1, 1, 1},    {2, 7, 33},   {7, 33, 5},    {8, 32, 48},    {9, 31, 49},   {17, 64, 96},  {24, 257, 13},
    {25, 20, 97}, {33, 256, 9}, {40, 513, 50}, {57, 100, 270}, {257, 65, 31}, {300, 40, 259}};

template <class T>
T element(float value) {
  if constexpr (std::is_same_v<T, float>)
    return value;
  else
    return to_bfloat16(value);
}

template <class T>
std::vector<T> random(int64_t size, const std::string& name) {
  std::vector<T> made;
  for (const float value : random_floats(size, name, 0.1)) made.push_back(element<T>(value));
  return made;
}

template <class T>
std::vector<float> floats(const std::vector<T>& values) {
  std::vector<float> made;
  for (const T value : values) made.push_back(to_float(value));
  return made;
}

// One of the two products: the result of `rows` rows, computed range by range with no more scratch than was asked for.
template <class T>
std::vector<T> product(bool transposed, const std::vector<T>& a, const std::vector<T>& w, ExpertProductsSizes sizes,
                       const std::vector<int64_t>& cuts) {
  const auto& [rows, in, out] = sizes;
  std::vector<T> made(static_cast<size_t>(rows * (transposed ? out : in)), element<T>(kUntouched));
  const int64_t size = transposed ? expert_times_transposed_scratch(rows, in) : expert_times_scratch(rows, out);
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    std::vector<float> scratch(static_cast<size_t>(size) + 64, kUntouched);
    std::fill(scratch.begin(), scratch.begin() + size, std::numeric_limits<float>::quiet_NaN());
    if (transposed) {
      expert_times_transposed(a.data(), w.data(), made.data(), rows, in, out, cuts[i], cuts[i + 1], scratch.data());
    } else {
      expert_times(a.data(), w.data(), made.data(), rows, out, in, cuts[i], cuts[i + 1], scratch.data());
    }
    for (int64_t j = size; j < size + 64; ++j) EXPECT_EQ(scratch[static_cast<size_t>(j)], kUntouched);
  }
  return made;
}

// Against sums in double: at most terms + 2 roundings of the sum of magnitudes, and one more to bfloat16.
template <class T>
void expect_sums(bool transposed, ExpertProductsSizes sizes) {
  const auto& [rows, in, out] = sizes;
  const int64_t terms = transposed ? in : out, outputs = transposed ? out : in;
  const auto a = random<T>(rows * terms, "a"), w = random<T>(out * in, "w");
  const std::vector<double> wide_a = widen(floats(a)), wide_w = widen(floats(w));
  std::vector<double> expected, bound;
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t n = 0; n < outputs; ++n) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < terms; ++k) {
        const double term = wide_a[static_cast<size_t>(m * terms + k)] *
                            wide_w[static_cast<size_t>(transposed ? n * in + k : k * in + n)];
        sum += term;
        size += std::abs(term);
      }
      expected.push_back(sum);
      bound.push_back(size * static_cast<double>(terms + 2) * kUlp +
                      (std::is_same_v<T, float> ? 0 : std::abs(sum) * 0x1p-8 * 1.01));
    }
  }
  const auto made = product<T>(transposed, a, w, sizes, {0, outputs});
  expect_within(floats(made), expected, bound, (transposed ? "x w^T " : "y w ") + sizes.text());
}

TEST_P(ExpertProducts, AreSumsInOneRounding) {
  for (const ExpertProductsSizes& sizes : kSizes) {
    for (const bool transposed : {true, false}) {
      expect_sums<float>(transposed, sizes);
      expect_sums<Bfloat16>(transposed, sizes);
      if (HasFatalFailure()) return;
    }
  }
}

// Neither the range of an element nor the rows beside it change its bits.
template <class T>
void expect_same_alone(bool transposed, ExpertProductsSizes sizes) {
  const auto& [rows, in, out] = sizes;
  const int64_t terms = transposed ? in : out, outputs = transposed ? out : in;
  const auto a = random<T>(rows * terms, "a"), w = random<T>(out * in, "w");
  const auto whole = floats(product<T>(transposed, a, w, sizes, {0, outputs}));
  const auto cut = floats(product<T>(transposed, a, w, sizes, {0, outputs / 3, outputs / 2, outputs}));
  EXPECT_TRUE(same_bits(whole, cut)) << sizes.text();
  for (const int64_t row : {int64_t{0}, rows / 2, rows - 1}) {
    const std::vector<T> one(a.begin() + row * terms, a.begin() + (row + 1) * terms);
    const auto alone = floats(product<T>(transposed, one, w, {1, in, out}, {0, outputs}));
    EXPECT_TRUE(same_bits(alone.data(), whole.data() + row * outputs, outputs)) << sizes.text() << " row " << row;
  }
}

TEST_P(ExpertProducts, AnElementDependsOnItsSumAlone) {
  for (const ExpertProductsSizes& sizes : kSizes) {
    for (const bool transposed : {true, false}) {
      expect_same_alone<float>(transposed, sizes);
      expect_same_alone<Bfloat16>(transposed, sizes);
    }
  }
}

}  // namespace expert_products_test
}  // namespace siamese::kernels

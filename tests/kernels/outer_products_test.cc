#include "siamese/kernels/outer_products.h"

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/reference/outer_products.h"

namespace siamese::kernels {
namespace {

SIAMESE_AT_EVERY_SIMD_LEVEL(OuterProducts);

struct OuterProductsSizes {
  int64_t rows, out, in;
};

struct Operands {
  explicit Operands(OuterProductsSizes sizes)
      : dy(random_floats(sizes.rows * sizes.out, "dy")),
        x(random_floats(sizes.rows * sizes.in, "x", 0.1)),
        dw(random_floats(sizes.out * sizes.in, "dw", 0, 3)) {}
  std::vector<float> dy, x, dw;
};

// More than one block of rows, of columns, and more than one slab of outputs, none of them whole.
constexpr OuterProductsSizes kManyBlocks = {601, 211, 1003};

// Adds to `dw`, range by range, with no more scratch than was asked for.
void add_in_ranges(const Operands& operands, OuterProductsSizes sizes, const std::vector<int64_t>& cuts,
                   std::vector<float>& dw) {
  const int64_t size = outer_products_scratch(sizes.rows, sizes.out, sizes.in);
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    std::vector<float> scratch(static_cast<size_t>(size) + 64, kUntouched);
    add_outer_products(operands.dy.data(), operands.x.data(), dw.data(), sizes.rows, sizes.out, sizes.in, cuts[i],
                       cuts[i + 1], scratch.data());
    for (int64_t j = size; j < size + 64; ++j) ASSERT_EQ(scratch[j], kUntouched) << "past the scratch";
  }
}

std::string text_of(OuterProductsSizes sizes) {
  return std::to_string(sizes.rows) + "x" + shape_text(sizes.out, sizes.in);
}

// A product and the additions after it: at most rows + 2 roundings of the sum of magnitudes.
void expect_reference(OuterProductsSizes sizes) {
  const Operands operands(sizes);
  std::vector<float> dw = operands.dw;
  add_in_ranges(operands, sizes, {0, sizes.out}, dw);

  std::vector<double> expected = widen(operands.dw), bound = widen(operands.dw);
  std::vector<double> dy = widen(operands.dy), x = widen(operands.x);
  reference::add_outer_products(dy.data(), x.data(), expected.data(), sizes.rows, sizes.out, sizes.in);
  for (auto* values : {&dy, &x, &bound}) {
    for (double& value : *values) value = std::abs(value);
  }
  reference::add_outer_products(dy.data(), x.data(), bound.data(), sizes.rows, sizes.out, sizes.in);
  for (double& value : bound) value *= static_cast<double>(sizes.rows + 2) * kUlp;
  expect_within(dw, expected, bound, "dw of " + text_of(sizes));
}

TEST_P(OuterProducts, EqualTheReference) {
  for (int64_t rows : {1, 31, 32, 33, 257}) {
    for (int64_t out : {1, 31, 32, 33, 257}) {
      for (int64_t in : {1, 31, 32, 33, 257}) expect_reference({rows, out, in});
    }
  }
}

TEST_P(OuterProducts, EqualTheReferenceInManyBlocks) { expect_reference(kManyBlocks); }

// Small whole numbers: no rounding, so no term may be missing, and none counted twice.
TEST_P(OuterProducts, WholeNumbersAreExact) {
  const OuterProductsSizes sizes = {513, 100, 45};
  Operands operands(sizes);
  for (size_t i = 0; i < operands.dy.size(); ++i) operands.dy[i] = static_cast<float>(i * 7 % 11) - 4;
  for (size_t i = 0; i < operands.x.size(); ++i) operands.x[i] = static_cast<float>(i * 5 % 13) - 7;
  for (size_t i = 0; i < operands.dw.size(); ++i) operands.dw[i] = static_cast<float>(i % 1000);
  std::vector<double> expected = widen(operands.dw);
  reference::add_outer_products(widen(operands.dy).data(), widen(operands.x).data(), expected.data(), sizes.rows,
                                sizes.out, sizes.in);
  add_in_ranges(operands, sizes, {0, sizes.out}, operands.dw);
  EXPECT_EQ(widen(operands.dw), expected);
}

TEST_P(OuterProducts, BitsDoNotDependOnTheCutOfTheRange) {
  for (const OuterProductsSizes sizes : {OuterProductsSizes{257, 257, 33}, kManyBlocks}) {
    const Operands operands(sizes);
    std::vector<float> whole = operands.dw;
    add_in_ranges(operands, sizes, {0, sizes.out}, whole);
    const std::vector<std::vector<int64_t>> ways = {
        {0, sizes.out / 2, sizes.out}, {0, 1, 3, 7, 12, 25, 95, 96, 97, 194, sizes.out}, {0, 0, 101, 101, sizes.out}};
    for (const std::vector<int64_t>& cuts : ways) {
      std::vector<float> dw = operands.dw;
      add_in_ranges(operands, sizes, cuts, dw);
      EXPECT_TRUE(same_bits(dw, whole)) << text_of(sizes) << " in " << cuts.size() - 1;
    }
  }
}

// The first output and the first columns alone are what they are among many.
TEST_P(OuterProducts, BitsDoNotDependOnTheOtherSizes) {
  const OuterProductsSizes many = kManyBlocks;
  const OuterProductsSizes few = {many.rows, 1, 5};
  const Operands operands(many);
  Operands part(few);
  for (int64_t m = 0; m < many.rows; ++m) {
    part.dy[m] = operands.dy[m * many.out];
    for (int64_t k = 0; k < few.in; ++k) part.x[m * few.in + k] = operands.x[m * many.in + k];
  }
  std::vector<float> dw = operands.dw;
  std::vector<float> part_dw(operands.dw.begin(), operands.dw.begin() + few.in);
  add_in_ranges(operands, many, {0, many.out}, dw);
  add_in_ranges(part, few, {0, few.out}, part_dw);
  EXPECT_TRUE(same_bits(dw.data(), part_dw.data(), few.in));
}

TEST_P(OuterProducts, OnlyTheRangeIsTouched) {
  const OuterProductsSizes sizes = {40, 61, 33};
  const Operands operands(sizes);
  std::vector<float> dw(operands.dw.size() + 32, kUntouched);
  add_in_ranges(operands, sizes, {14, 43}, dw);
  for (int64_t i = 0; i < static_cast<int64_t>(dw.size()); ++i) {
    const bool inside = i >= 14 * sizes.in && i < 43 * sizes.in;
    EXPECT_EQ(dw[i] != kUntouched, inside) << i;
  }
}

TEST_P(OuterProducts, NoRowsAddNothing) {
  const OuterProductsSizes sizes = {0, 3, 5};
  const Operands operands(sizes);
  std::vector<float> dw = operands.dw;
  add_in_ranges(operands, sizes, {0, 3}, dw);
  EXPECT_TRUE(same_bits(dw, operands.dw));
}

}  // namespace
}  // namespace siamese::kernels

#include "siamese/ops/product.h"

#include "tests/support/threads.h"

#include "siamese/ops/one_thread.h"

namespace siamese::ops {
namespace product_test {

using testing::randn;

// However a matrix lies in memory, and however its product is cut.
TEST(Product, IsTheProduct) {
  for (const auto& [rows, k, cols] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {5, 3, 7}, {1, 300, 2000}, {2000, 300, 1}, {130, 70, 517}, {517, 70, 130}, {300, 260, 300}}) {
    at::Tensor a = randn({rows, k}, 1);
    at::Tensor b = randn({k, cols}, 2);
    const at::Tensor wanted = (a.unsqueeze(2) * b.unsqueeze(0)).sum(1);
    for (const int layout : {0, 1, 2, 3}) {
      a = layout % 2 == 0 ? a.contiguous() : a.t().contiguous().t();
      b = layout < 2 ? b.contiguous() : b.t().contiguous().t();
      for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
        const double tolerance = dtype == at::kDouble ? 1e-13 : 1e-5;
        const at::Tensor left = a.to(dtype), right = b.to(dtype);
        testing::expect_relative(times(left, right), wanted, tolerance, "a b");
        testing::expect_relative(times_transposed(left, right.t()), wanted, tolerance, "a (b^T)^T");
        const at::Tensor bias = randn({cols}, 3);
        const auto with_bias = [&](const at::Tensor& given) {
          testing::expect_relative(times_transposed(left, right.t(), given.to(dtype)), wanted + given, tolerance,
                                   "with a bias");
        };
        with_bias(bias);
        with_bias(at::stack({bias, bias}, 1).select(1, 0));  // strided
        const at::Tensor turned = transposed_times(left.t(), right);
        testing::expect_relative(turned, wanted, tolerance, "(a^T)^T b");
        EXPECT_TRUE(turned.is_contiguous());
      }
    }
  }
}

// Generation in bfloat16: exact products, summed in float, rounded once.
TEST(Product, OfFewRowsOfBfloat16) {
  for (const int64_t rows : {1, 3, 8}) {
    const at::Tensor x = randn({rows, 300}, 1).to(at::kBFloat16), w = randn({77, 300}, 2).to(at::kBFloat16);
    const at::Tensor wanted = at::matmul(x.to(at::kDouble), w.to(at::kDouble).t());
    const at::Tensor y = times_transposed(x, w);
    ASSERT_EQ(y.scalar_type(), at::kBFloat16);
    const at::Tensor error = (y.to(at::kDouble) - wanted).abs();
    EXPECT_TRUE(at::all(error <= wanted.abs() * 0x1p-8 + 1e-4).item<bool>()) << rows;
  }
}

// A row does not notice what is computed beside it, up to as many as have a kernel of their own.
TEST(Product, ARowAmongFewHasTheBitsItHasAlone) {
  const at::Tensor x = randn({8, 130}, 1, at::kFloat), w = randn({517, 130}, 2, at::kFloat);
  const at::Tensor all = times_transposed(x, w);
  for (int64_t row = 0; row < 8; ++row) {
    testing::expect_same_bits(times_transposed(x.narrow(0, row, 1), w), all.narrow(0, row, 1), "alone");
  }
}

// On every CPU, whichever library it prefers: tiles, parts where there would be few, and sizes that are no multiples.
TEST(Product, InTilesIsTheProductAtAnyThreadCount) {
  for (const auto& [rows, k, cols] : std::vector<std::array<int64_t, 3>>{
           {1100, 70, 800}, {513, 33, 1537}, {512, 33001, 800}, {300, 300, 300}, {17, 40, 3000}}) {
    const at::Tensor a = randn({rows, k}, 1), b = randn({k, cols}, 2);
    const at::Tensor left = a.to(at::kFloat), right = b.t().contiguous().t().to(at::kFloat);
    const at::Tensor bias = randn({cols}, 3, at::kFloat);
    testing::expect_relative(multiply_in_tiles(left, right), at::mm(a, b), 1e-5, "tiles");
    testing::expect_relative(multiply_in_tiles(left, right, bias), at::mm(a, b) + bias, 1e-5, "tiles with a bias");
    testing::expect_same_at_any_thread_count("tiles", [&] {
      return std::vector<at::Tensor>{multiply_in_tiles(left, right), multiply_in_tiles(left, right, bias)};
    });
  }
  EXPECT_EQ(multiply_in_tiles(at::ones({0, 3}), at::ones({3, 2})).sizes(), (std::vector<int64_t>{0, 2}));
}

TEST(Product, OfNothingIsZero) {
  EXPECT_EQ(times(at::ones({0, 3}), at::ones({3, 2})).sizes(), (std::vector<int64_t>{0, 2}));
  EXPECT_TRUE(at::equal(times(at::ones({2, 0}), at::ones({0, 3})), at::zeros({2, 3})));
}

// Long sums and few elements are where oneDNN cuts the sum itself.
TEST(Product, LongSumsAtAnyThreadCount) {
  const testing::ThreadsGuard guard;
  for (const auto& [rows, k, cols] :
       std::vector<std::array<int64_t, 3>>{{32, 24000, 64}, {1, 8192, 2100}, {64, 300, 1000}}) {
    const at::Tensor x = randn({rows, k}, 1, at::kFloat);
    const at::Tensor w = randn({cols, k}, 2, at::kFloat);
    const at::Tensor straight = w.t().contiguous();
    const at::Tensor bias = randn({cols}, 3, at::kFloat);
    at::Tensor transposed, plain, with_bias;
    for (const int threads : {1, 2, 7}) {
      at::set_num_threads(threads);
      const at::Tensor a = times_transposed(x, w);
      const at::Tensor b = times(x, straight);
      const at::Tensor c = times_transposed(x, w, bias);
      if (threads == 1) {
        transposed = a;
        plain = b;
        with_bias = c;
      }
      testing::expect_same_bits(a, transposed, "x w^T at " + std::to_string(threads));
      testing::expect_same_bits(b, plain, "x w at " + std::to_string(threads));
      testing::expect_same_bits(c, with_bias, "x w^T + bias at " + std::to_string(threads));
    }
  }
}

TEST(OneThread, HoldsInItsScopeAndInEveryTask) {
  const testing::ThreadsGuard guard;
  at::set_num_threads(3);
  {
    const OneThread outer;
    EXPECT_EQ(at::get_num_threads(), 1);
    { const OneThread inner; }
    EXPECT_EQ(at::get_num_threads(), 1);
  }
  EXPECT_EQ(at::get_num_threads(), 3);
  for (const int64_t tasks : {0, 1, 2, 50}) {
    std::vector<int> seen(static_cast<size_t>(tasks), 0);
    for_each_task(tasks, [&](int64_t task) { seen[static_cast<size_t>(task)] += at::get_num_threads(); });
    EXPECT_EQ(seen, std::vector<int>(static_cast<size_t>(tasks), 1));
  }
  EXPECT_THROW(for_each_task(2, [](int64_t) { throw std::runtime_error("in a task"); }), std::runtime_error);
  EXPECT_EQ(at::get_num_threads(), 3);
}

}  // namespace product_test
}  // namespace siamese::ops

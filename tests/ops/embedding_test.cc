#include "siamese/ops/embedding.h"

#include "tests/support/tensors.h"

#include "siamese/ops/gradient.h"
#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace embedding_test {

using testing::leaf;
using testing::randn;

TEST(Embedding, FusedEqualsPlainForwardAndGradient) {
  const ModeGuard fused(Mode::fused);
  const at::Tensor indices = at::arange(40, at::kLong).view({4, 10}) * 7 % 9;  // every row several times, row 9 never
  for (const int64_t width : {1, 31, 257}) {
    const at::Tensor exact = leaf(randn({10, width}, 1));
    const at::Tensor single = leaf(exact.detach().to(at::kFloat));
    const at::Tensor wanted = plain::embedding(exact, indices);
    const at::Tensor got = ops::embedding(single, indices);
    testing::expect_relative(got, wanted, 1e-7, "rows");
    const at::Tensor gradient = testing::gradients(got, {single})[0];
    testing::expect_relative(gradient, testing::gradients(wanted, {exact})[0], 1e-6, "gradient");
    single.mutable_grad() = at::ones({10, width});
    const GradientsInPlace in_place;
    (ops::embedding(single, indices) * randn({4, 10, width}, 4242, at::kFloat)).sum().backward();
    testing::expect_relative(single.grad(), gradient + 1, 1e-6, "in place");
  }
}

// A sum of 1000 ones, in which a half type would come to a stop.
TEST(Embedding, TheGradientOfHalfTypesIsSummedInFloat) {
  for (const auto type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor table = leaf(at::ones({2, 3}, type));
    const at::Tensor y = ops::embedding(table, at::zeros({3000}, at::kLong));
    const at::Tensor gradient = torch::autograd::grad({y}, {table}, {at::ones_like(y)})[0];
    testing::expect_relative(gradient[0], at::full({3}, 3000.0), 1.0 / 256, "sum");
  }
}

}  // namespace embedding_test
}  // namespace siamese::ops

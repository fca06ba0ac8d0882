#include "siamese/nn/parameters.h"

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

#include <ATen/Parallel.h>

namespace siamese::nn {
namespace {

TEST(Parameters, NamesKindsAndCount) {
  Parameters parameters(1);
  const Scope block = Scope(parameters).child("blocks").child("3");
  const Slot weight = block.add("weight", ParameterKind::linear, {2, 5}, Init::ones());
  EXPECT_EQ(parameters.list()[0].name, "blocks.3.weight");
  EXPECT_EQ(parameters.list()[0].kind, ParameterKind::linear);
  EXPECT_EQ(parameters.count(), 10);
  EXPECT_TRUE(weight.value().requires_grad());
  EXPECT_EQ(parameters.find("blocks.3"), nullptr);
}

TEST(Parameters, AValueIsAFunctionOfSeedNameAndIndexOnly) {
  const int before = at::get_num_threads();
  const auto make = [](uint64_t seed, bool other_first, int threads) {
    at::set_num_threads(threads);
    Parameters parameters(seed);
    const Scope root(parameters);
    if (other_first) root.add("other", ParameterKind::linear, {100}, Init::normal(1, 3));
    return root.add("w", ParameterKind::linear, {300, 70}, Init::normal(1, 3)).value().detach();
  };
  const at::Tensor first = make(5, false, 1);
  testing::expect_same_bits(make(5, true, 3), first, "order of creation and threads do not matter");
  EXPECT_FALSE(at::equal(make(6, false, 1), first));
  EXPECT_LE(first.abs().max().item<double>(), 3.0);
  EXPECT_NEAR(first.mean().item<double>(), 0.0, 0.03);
  at::set_num_threads(before);
}

TEST(Parameters, MetaDeviceCountsWithoutMemory) {
  Parameters parameters(1, at::kFloat, at::kMeta);
  Scope(parameters).add("huge", ParameterKind::embedding, {1 << 20, 1 << 20}, Init::normal(1, 3));
  EXPECT_EQ(parameters.count(), int64_t{1} << 40);
}

TEST(Parameters, OneBufferHoldsAllGradients) {
  Parameters parameters(1);
  const Scope root(parameters);
  const at::Tensor a = root.add("a", ParameterKind::linear, {3, 5}, Init::ones()).value();
  const at::Tensor b = root.add("b", ParameterKind::norm, {7}, Init::ones()).value();
  const GradientBuffer buffer(parameters);
  const float* const where = b.grad().const_data_ptr<float>();
  EXPECT_EQ(where - a.grad().const_data_ptr<float>(), 16);  // a cache line on
  (a.sum() + 2 * b.sum()).backward();
  (a.sum() + 2 * b.sum()).backward();
  EXPECT_EQ(b.grad().const_data_ptr<float>(), where);
  testing::expect_same_bits(a.grad(), at::full({3, 5}, 2.0F), "a");
  testing::expect_same_bits(b.grad(), at::full({7}, 4.0F), "b");
  buffer.zero();
  testing::expect_same_bits(b.grad(), at::zeros({7}), "zeroed");
}

TEST(Parameters, ABufferOfGradientsIsOfOneTypeAndDevice) {
  Parameters parameters(1);
  const Scope root(parameters);
  root.add("a", ParameterKind::linear, {3}, Init::ones());
  root.add("b.c", ParameterKind::norm, {2}, Init::ones());
  for (const at::TensorOptions& other : {at::TensorOptions(at::kDouble), at::TensorOptions(at::kMeta)}) {
    parameters.set("b.c", at::ones({2}, other).set_requires_grad(true));
    testing::expect_error<UsageError>([&] { GradientBuffer{parameters}; }, {"parameter b.c", "expected Float on cpu"});
    EXPECT_FALSE(parameters.find("a")->value.grad().defined());
  }
}

// Whoever clears gradients in PyTorch's way takes the views away; the buffer's next zero() puts them back.
TEST(Parameters, GradientsDoNotAddUpOverStepsAfterZeroGrad) {
  Parameters parameters(1);
  Scope(parameters).add("a", ParameterKind::linear, {3}, Init::ones());
  const at::Tensor a = parameters.list()[0].value;
  const GradientBuffer buffer(parameters);
  const float* const where = a.grad().const_data_ptr<float>();
  parameters.zero_grad();
  for (int step = 0; step < 3; ++step) {
    buffer.zero();
    (2 * a.sum()).backward();
    testing::expect_same_bits(a.grad(), at::full({3}, 2.0F), "step " + std::to_string(step));
    EXPECT_EQ(a.grad().const_data_ptr<float>(), where);
  }
}

}  // namespace
}  // namespace siamese::nn

// The stand-in device itself: that it computes, and that it finds what it is there to find.
#include "tests/support/protected_device.h"
#include "tests/support/tensors.h"

namespace siamese::testing {
namespace {

TEST(ProtectedDevice, ComputesWhatTheCpuComputes) {
  const at::Tensor a = randn({3, 5}, 1, at::kFloat), b = randn({5, 4}, 2, at::kFloat);
  const at::Tensor there = a.to(protected_device());
  EXPECT_EQ(there.device().str(), "protected:0");
  expect_same_bits(at::mm(there, b.to(protected_device())).cpu(), at::mm(a, b), "product");
  expect_same_bits(there.t().contiguous().cpu(), a.t(), "strided");
  at::Tensor changed = there.clone();
  changed.narrow(1, 1, 2).mul_(3).add_(1);
  at::Tensor expected = a.clone();
  expected.narrow(1, 1, 2).mul_(3).add_(1);
  expect_same_bits(changed.cpu(), expected, "in place, through a view");
  EXPECT_EQ(there.sum().item<float>(), a.sum().item<float>());
}

TEST(ProtectedDevice, BackwardGivesTheSameGradients) {
  const at::Tensor x = randn({3, 8}, 1, at::kFloat);
  const auto gradient = [&](const at::Device& device) {
    const at::Tensor leaf = x.clone().to(device).set_requires_grad(true);
    at::softmax(leaf * 2, -1).square().sum().backward();
    return leaf.grad().cpu();
  };
  expect_same_bits(gradient(protected_device()), gradient(at::kCPU), "gradient");
}

// Else nothing else here would prove anything.
TEST(ProtectedDeviceDeathTest, AHostAccessEndsTheProcess) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const at::Tensor x = at::ones({4}, at::TensorOptions().device(protected_device()));
  // By the signal, or by AddressSanitizer, which catches it and exits.
  EXPECT_DEATH({ *static_cast<volatile float*>(x.mutable_data_ptr()) = 1; }, "");
  EXPECT_DEATH({ std::printf("%f", static_cast<double>(*x.const_data_ptr<float>())); }, "");
}

TEST(ProtectedDevice, HostTensorsAreRefused) {
  const at::Tensor x = at::ones({4}, at::TensorOptions().device(protected_device()));
  EXPECT_THROW(x + at::ones({4}), c10::Error);
  EXPECT_THROW(at::cat({x, at::ones({4})}), c10::Error);
  EXPECT_THROW(x.index_select(0, at::zeros({1}, at::kLong)), c10::Error);
  EXPECT_NO_THROW(x + 1);
}

TEST(ProtectedDevice, CountsWhatTheHostReads) {
  const at::Tensor x = at::ones({4}, at::TensorOptions().device(protected_device()));
  const int64_t before = host_reads();
  const at::Tensor y = (x * 2).sum();
  EXPECT_EQ(host_reads(), before);
  EXPECT_EQ(y.item<float>(), 8);
  EXPECT_EQ(x.cpu().numel(), 4);
  EXPECT_EQ(host_reads(), before + 2);
}

}  // namespace
}  // namespace siamese::testing

#include "siamese/measure/part_times.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include "siamese/ops/activation.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/scope.h"

namespace siamese::measure {
namespace {

TEST(PartTimes, OperatorsSayWhatTheyAre) {
  EXPECT_EQ(part_of_operator("aten::addmm"), "matmul");
  EXPECT_EQ(part_of_operator("mkldnn::_linear_pointwise"), "matmul");
  EXPECT_EQ(part_of_operator("part::linear"), "matmul");
  EXPECT_EQ(part_of_operator("part::junction"), "junction");
  EXPECT_EQ(part_of_operator("aten::_scaled_dot_product_flash_attention_for_cpu_backward"), "attention");
  EXPECT_EQ(part_of_operator("aten::embedding_dense_backward"), "embedding");
  EXPECT_EQ(part_of_operator("aten::mul"), "");
}

TEST(PartTimes, AScopeCountsWhatRunsInItWithoutWhatNamesItself) {
  const at::Tensor a = at::ones({256, 256});
  PartTimes times;
  {
    const ops::PartScope outer("part::norm");
    at::Tensor b = a;
    for (int i = 0; i < 20; ++i) b = b.sin();
    for (int i = 0; i < 20; ++i) b = at::mm(a, b);
  }
  const auto& seconds = times.seconds();
  EXPECT_GT(seconds.at("norm"), 0);
  EXPECT_GT(seconds.at("matmul"), 0);
  EXPECT_FALSE(seconds.contains("other"));
}

// Both the nodes of plain operators and our own function's node count to the scope that made them.
TEST(PartTimes, BackwardCountsToThePartOfItsForward) {
  for (const ops::Mode mode : {ops::Mode::plain, ops::Mode::fused}) {
    const ops::ModeGuard guard(mode);
    const at::Tensor x = at::ones({512, 512}).requires_grad_();
    const at::Tensor y = x.exp();  // before anybody watched: other
    PartTimes times;
    const at::Tensor z = ops::activation(ops::Activation::swiglu, y).sum();
    const double forward = times.seconds().at("activation");
    z.backward();
    EXPECT_GT(times.seconds().at("activation"), forward) << enum_text(mode);
    EXPECT_GT(times.seconds().at("other"), 0) << enum_text(mode);
  }
}

}  // namespace
}  // namespace siamese::measure

#include "siamese/models/rope_scaling.h"

#include "tests/support/errors.h"
#include <gtest/gtest.h>

namespace siamese::models {
namespace {

TEST(RopeScalingText, RoundTrips) {
  for (const char* const text :
       {"none", "llama3(factor=8, context=8192)", "llama3(factor=32, context=8192, low=2, high=5)",
        "yarn(factor=8, context=8192)",
        "yarn(factor=2.5, context=100, beta_fast=16, beta_slow=2, attention_factor=1.25, truncate=false)"}) {
    EXPECT_EQ(rope_scaling_text(rope_scaling_of(text)), text);
  }
  EXPECT_EQ(rope_scaling_text(rope_scaling_of("yarn")), "yarn(factor=8, context=8192)");
  EXPECT_EQ(rope_scaling_text(rope_scaling_of(" llama3( context=40 ,factor=2.0, low=1 )")),
            "llama3(factor=2, context=40)");
  EXPECT_EQ(rope_scaling_of("yarn(truncate=false)").truncate, false);
}

TEST(RopeScalingText, RefusesWhatCannotBe) {
  for (const char* const text :
       {"", "linear(factor=2)", "yarn(", "yarn(factor)", "yarn(factor=0.5)", "yarn(factor=x)", "llama3(beta_fast=3)",
        "yarn(low=2)", "none(factor=2)", "llama3(low=4, high=4)", "llama3(low=0)", "yarn(context=0)",
        "yarn(beta_fast=1)", "yarn(attention_factor=-1)", "yarn(factor=1e9)", "yarn(context=2.5)"}) {
    SCOPED_TRACE(text);
    siamese::testing::expect_error<UsageError>([&] { rope_scaling_of(text); }, {"model.rope_scaling", "expected"});
  }
}

}  // namespace
}  // namespace siamese::models

#include "siamese/nn/slot.h"

#include <thread>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

#include "siamese/nn/linear.h"
#include "siamese/nn/norm.h"
#include "siamese/nn/parameters.h"

namespace siamese::nn {
namespace {

using testing::expect_error;
using testing::randn;

TEST(Slot, APartSeesTheTensorThatStandsInItsPlaceNow) {
  const Parameters parameters(1, at::kDouble);
  const Linear linear(Scope(parameters).child("a"), 3, 2, /*bias=*/true, Init::normal(1, 0));
  const Norm norm(Scope(parameters).child("n"), 3, {.kind = NormKind::layer, .bias = true});
  const at::Tensor x = randn({4, 3}, 1);
  const at::Tensor weight = randn({2, 3}, 2), bias = randn({2}, 3), gain = randn({3}, 4), shift = randn({3}, 5);
  parameters.set("a.weight", weight);
  parameters.set("a.bias", bias);
  parameters.set("n.weight", gain);
  parameters.set("n.bias", shift);
  testing::expect_relative(linear(x), x.matmul(weight.t()) + bias, 1e-14, "linear");
  testing::expect_relative(norm(x), at::layer_norm(x, {3}, gain, shift), 1e-14, "norm");
  EXPECT_TRUE(linear.weight().value().is_same(weight));
  EXPECT_TRUE(parameters.find("a.weight")->value.is_same(weight));
}

TEST(Slot, OutlivesItsParametersAndAnUndefinedOneGivesAnUndefinedTensor) {
  Slot slot;
  EXPECT_FALSE(slot.defined());
  EXPECT_FALSE(slot.value().defined());
  slot = Scope(Parameters(1)).add("w", ParameterKind::linear, {2}, Init::ones());
  EXPECT_TRUE(at::equal(slot.value(), at::ones({2})));
}

TEST(Slot, SetNamesWhatDoesNotFit) {
  const Parameters parameters(1);
  const Scope root(parameters);
  root.child("a").add("weight", ParameterKind::linear, {2, 3}, Init::ones());
  const Slot table = root.add_buffer("table", at::ones({4}));
  expect_error<UsageError>([&] { parameters.set("a.weight", at::ones({3, 2})); }, {"a.weight", "[2, 3]", "[3, 2]"});
  expect_error<UsageError>([&] { parameters.set("a.weight", at::ones({2, 3}, at::kLong)); }, {"a.weight", "Long"});
  expect_error<UsageError>([&] { parameters.set("a.weight", {}); }, {"a.weight", "undefined"});
  expect_error<UsageError>([&] { parameters.set("a.wight", at::ones({2, 3})); }, {"a.wight", "a.weight"});
  const at::Tensor other = at::full({4}, 2.0F);
  parameters.set("table", other);
  EXPECT_TRUE(table.value().is_same(other));
}

TEST(Slot, AGuardActsOnOneParametersOnOneThreadAndNests) {
  const Parameters parameters(1), others(2);
  const Slot a = Scope(parameters).add("a", ParameterKind::norm, {2}, Init::ones());
  const Slot b = Scope(others).add("b", ParameterKind::norm, {2}, Init::ones());
  const auto value = [](const Slot& slot) { return slot.value()[0].item<double>(); };
  const ParameterGuard two(parameters, {at::full({2}, 2.0F)});
  EXPECT_EQ(value(a), 2);
  EXPECT_EQ(value(b), 1);
  {
    const ParameterGuard three(parameters, {at::full({2}, 3.0F)});
    const ParameterGuard four(others, {at::full({2}, 4.0F)});
    EXPECT_EQ(value(a), 3);
    EXPECT_EQ(value(b), 4);
    double elsewhere = 0;
    std::thread([&] { elsewhere = value(a); }).join();
    EXPECT_EQ(elsewhere, 1);
    EXPECT_THROW(ParameterGuard(parameters, {at::ones({3})}), UsageError);
    EXPECT_EQ(value(a), 3) << "a guard that threw leaves nothing behind";
  }
  EXPECT_EQ(value(a), 2);
  EXPECT_EQ(value(b), 1);
  EXPECT_EQ(parameters.values()[0][0].item<double>(), 2);
  EXPECT_EQ(parameters.list()[0].value[0].item<double>(), 1);
  expect_error<UsageError>([&] { const ParameterGuard none(parameters, {}); }, {"expected 1", "got 0", "a"});
}

TEST(Slot, TensorsFromOutsideAreTakenAsTheyAre) {
  const at::Tensor weight = randn({2, 3}, 1), table = randn({4}, 2);
  const Parameters parameters({{"a.weight", weight}, {"table", table}});
  const Scope root(parameters);
  const Linear linear(root.child("a"), 3, 2, /*bias=*/false, Init::normal(1, 0));
  const at::Tensor copy = weight.clone();
  scale_rows(linear.weight(), 0, 2, 7);
  set_initial(linear.weight(), [](at::Tensor value) { value.fill_(9); });
  EXPECT_TRUE(linear.weight().value().is_same(weight));
  testing::expect_same_bits(weight, copy, "the owner's values");
  expect_error<UsageError>([&] { parameters.expect_all_used(); }, {"table"});
  EXPECT_TRUE(root.add_buffer("table", at::zeros({4})).value().is_same(table));
  EXPECT_NO_THROW(parameters.expect_all_used());
  EXPECT_EQ(root.add_buffer("computed", at::ones({1})).value().scalar_type(), at::kDouble);
  expect_error<UsageError>([&] { root.child("b").add("bias", ParameterKind::bias, {5}, Init::ones()); },
                           {"b.bias", "[5]", "undefined"});
  const Parameters wrong({{"w", at::ones({2})}});
  expect_error<UsageError>([&] { Scope(wrong).add("w", ParameterKind::bias, {5}, Init::ones()); },
                           {"parameter w", "[5]", "[2]"});
}

TEST(Slot, ANameIsTakenOnce) {
  const Parameters parameters(1);
  const Scope root(parameters);
  root.add("w", ParameterKind::bias, {5}, Init::ones());
  expect_error<UsageError>([&] { root.add("w", ParameterKind::bias, {5}, Init::ones()); }, {"w", "exists already"});
  expect_error<UsageError>([&] { root.add_buffer("w", at::ones({5})); }, {"w", "exists already"});
}

}  // namespace
}  // namespace siamese::nn

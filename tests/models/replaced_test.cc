// A model whose weights belong to somebody else: built from tensors by name, replaced, or lent for one call.
#include "tests/models/small_families.h"
#include "tests/support/errors.h"

namespace siamese::models {
namespace {

std::map<std::string, at::Tensor> copies_of(const Model& model, at::ScalarType dtype) {
  std::map<std::string, at::Tensor> copies;
  for (const auto& parameter : model.parameters().list()) {
    copies[parameter.name] = parameter.value.detach().to(dtype).clone().set_requires_grad(true);
  }
  for (const auto& buffer : model.parameters().buffers()) copies[buffer.name] = buffer.value.to(dtype).clone();
  return copies;
}

template <class Check>
void for_schemes_with_own_values(const Check& check) {
  for (const Family family : all_families()) {
    for (const auto& scheme : {"peri", "siamese(x=hybrid)", "deepnorm", "hc", "mhc"}) {
      check(small_family(family, scheme), case_name(family, scheme));
    }
  }
}

TEST(Replaced, AModelOfTensorsFromOutsideIsTheModelTheyCameFrom) {
  for_schemes_with_own_values([](const ModelConfig& config, const std::string& name) {
    const auto model = make_small(config);
    perturb(*model);
    const Inputs inputs = family_inputs(config, 3, 2);
    const auto wanted = loss_and_gradients(*model, inputs, family_options(config, 3));
    const auto given = copies_of(*model, at::kFloat);
    const auto other = make_model(config, large_init(), nn::Parameters(given));
    const auto got = loss_and_gradients(*other, inputs, family_options(config, 3));
    EXPECT_EQ(got.first, wanted.first) << name;
    for (size_t i = 0; i < wanted.second.size(); ++i) {
      const nn::Parameter& parameter = other->parameters().list()[i];
      testing::expect_same_bits(got.second[i], wanted.second[i], name + " " + parameter.name);
      EXPECT_TRUE(parameter.value.is_same(given.at(parameter.name))) << name;
    }
  });
}

TEST(Replaced, MissingSuperfluousAndMisshapenTensorsAreNamed) {
  const ModelConfig config = small_family(Family::lm, "siamese");
  const auto given = copies_of(*make_small(config), at::kFloat);
  const auto build = [&](std::map<std::string, at::Tensor> tensors) {
    return make_model(config, large_init(), nn::Parameters(std::move(tensors)));
  };
  auto missing = given, superfluous = given, misshapen = given;
  missing.erase("blocks.1.ffn.in.weight");
  testing::expect_error<UsageError>([&] { build(missing); }, {"blocks.1.ffn.in.weight", "[80, 24]"});
  superfluous["blocks.9.ffn.in.weight"] = at::ones({2});
  testing::expect_error<UsageError>([&] { build(superfluous); }, {"blocks.9.ffn.in.weight"});
  misshapen["close.norm.weight"] = at::ones({2});
  testing::expect_error<UsageError>([&] { build(misshapen); }, {"close.norm.weight", "[24]", "[2]"});
}

// What module.to(double) does: every tensor is another one, of another type.
TEST(Replaced, AModelFollowsItsTensorsToAnotherType) {
  for_schemes_with_own_values([](const ModelConfig& config, const std::string& name) {
    const auto wanted_model = make_small(config, 1, at::kDouble);
    perturb(*wanted_model);
    const Inputs inputs = family_inputs(config, 3, 2);
    const auto wanted = loss_and_gradients(*wanted_model, inputs, family_options(config, 3));
    const auto model = make_small(config);
    for (const auto& [tensor_name, value] : copies_of(*wanted_model, at::kDouble)) {
      model->parameters().set(tensor_name, value);
    }
    EXPECT_EQ(model->parameters().options().dtype(), at::kDouble);
    for (const int64_t recompute : {0, 1}) {
      LossOptions options = family_options(config, 3);
      options.stack.recompute_every = recompute;
      const auto got = loss_and_gradients(*model, inputs, options);
      EXPECT_EQ(got.first, wanted.first) << name;
      for (size_t i = 0; i < wanted.second.size(); ++i) {
        testing::expect_same_bits(got.second[i], wanted.second[i], name + " " + model->parameters().list()[i].name);
      }
    }
  });
}

// What functional_call does: the tensors of one call, which need not be leaves; backward comes after the call.
TEST(Replaced, TensorsLentForOneCallGetTheGradients) {
  for_schemes_with_own_values([](const ModelConfig& config, const std::string& name) {
    const auto model = make_small(config);
    perturb(*model);
    const Inputs inputs = family_inputs(config, 3, 2);
    LossOptions options = family_options(config, 3);
    const auto wanted = loss_and_gradients(*model, inputs, options).second;
    model->parameters().zero_grad();
    std::vector<at::Tensor> leaves, lent;
    for (const auto& parameter : model->parameters().list()) {
      leaves.push_back(testing::leaf(2 * parameter.value));
      lent.push_back(0.5 * leaves.back());
    }
    {  // the model's own values must not matter
      const c10::NoGradGuard no_grad;
      for (const auto& parameter : model->parameters().list()) parameter.value.fill_(0.1);
    }
    for (const int64_t recompute : {0, 1}) {
      options.stack.recompute_every = recompute;
      at::Tensor objective;
      {
        const nn::ParameterGuard guard(model->parameters(), lent);
        objective = model->losses(inputs, options).objective;
      }
      const auto got = torch::autograd::grad({objective}, leaves, {}, /*retain_graph=*/true);
      for (size_t i = 0; i < wanted.size(); ++i) {
        const std::string what = name + " " + model->parameters().list()[i].name;
        testing::expect_same_bits(2 * got[i], wanted[i], what);
        EXPECT_FALSE(model->parameters().list()[i].value.grad().defined()) << what;
      }
    }
  });
}

}  // namespace
}  // namespace siamese::models

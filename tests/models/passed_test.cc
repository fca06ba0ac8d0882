// StackOptions::passed: when it says that backward is done with a block, no gradient of that block changes any more.
#include <map>

#include "tests/models/small_families.h"
#include "tests/support/schemes.h"

#include "siamese/ops/gradient.h"

namespace siamese::models {
namespace {

// The gradients of block `block` and those after it, as they are now.
std::map<std::string, at::Tensor> gradients_from(const Model& model, int64_t block) {
  std::map<std::string, at::Tensor> found;
  for (const auto& parameter : model.parameters().list()) {
    if (model.block_of(parameter) >= block) found[parameter.name] = parameter.value.grad().clone();
  }
  return found;
}

void expect_complete_when_told(const ModelConfig& config, int64_t recompute_every, std::vector<int64_t> expected) {
  const auto model = make_small(config);
  uint64_t seed = 7;  // what starts at zero (the last projection of a dit) would hide all gradients before it
  for (const auto& parameter : model->parameters().list()) {
    parameter.value.detach().add_(testing::randn(parameter.value.sizes(), ++seed, at::kFloat), 0.1);
  }
  const nn::GradientBuffer gradients(model->parameters());
  std::vector<int64_t> told;
  std::map<std::string, at::Tensor> then;
  LossOptions options = family_options(config, 3);
  options.stack.recompute_every = recompute_every;
  options.stack.passed = [&](int64_t block) {
    told.push_back(block);
    then.merge(gradients_from(*model, block));  // those that were told before stay
  };
  {
    const ops::GradientsInPlace in_place;
    model->losses(family_inputs(config, 3, 2), options).objective.backward();
  }
  EXPECT_EQ(told, expected);
  double size = 0;
  for (const auto& [name, gradient] : then) {
    EXPECT_TRUE(at::equal(gradient, model->parameters().find(name)->value.grad())) << name;
    size += gradient.abs().sum().item<double>();
  }
  EXPECT_GT(size, 0);
}

TEST(Passed, GradientsAreCompleteWhenToldInEveryFamilyAndScheme) {
  for (const Family family : all_families()) {
    for (const auto& scheme : schemes_of(family)) {
      SCOPED_TRACE(case_name(family, scheme));
      const ModelConfig config = small_family(family, scheme);
      ASSERT_EQ(config.blocks, 3);
      expect_complete_when_told(config, 0, {2, 1});
      expect_complete_when_told(config, 1, {2, 1});
      expect_complete_when_told(config, 2, {2});
    }
    for (const ModelConfig& config : value_mixings(family)) {
      expect_complete_when_told(config, 0, {2, 1});
      expect_complete_when_told(config, 1, {2, 1});
    }
  }
}

}  // namespace
}  // namespace siamese::models

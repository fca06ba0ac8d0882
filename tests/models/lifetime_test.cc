// A loss is the caller's: the model it came from may be gone before backward, and autograd::grad must see every
// gradient, with and without recomputation.
#include <cstring>
#include <new>

#include "tests/models/small_families.h"
#include "tests/support/errors.h"

namespace siamese::models {
namespace {

std::vector<at::Tensor> leaves_of(const Model& model) {
  std::vector<at::Tensor> leaves;
  for (const auto& parameter : model.parameters().list()) leaves.push_back(parameter.value);
  return leaves;
}

// Backward when the model is gone and its memory holds something else.
template <class Family>
std::vector<at::Tensor> gradients_without_model(const ModelConfig& config, const Inputs& inputs,
                                                const LossOptions& options) {
  constexpr std::align_val_t kAlignment{alignof(Family)};
  void* const memory = ::operator new(sizeof(Family), kAlignment);
  auto* const model = new (memory) Family(config, large_init(), nn::Parameters(1));
  perturb(*model);
  const std::vector<at::Tensor> leaves = leaves_of(*model);
  const at::Tensor objective = model->losses(inputs, options).objective;
  model->~Family();
  std::memset(memory, 0xEE, sizeof(Family));
  objective.backward();
  ::operator delete(memory, kAlignment);
  std::vector<at::Tensor> gradients;
  for (const auto& leaf : leaves) gradients.push_back(leaf.grad());
  return gradients;
}

std::vector<at::Tensor> gradients_without_model(const ModelConfig& config, const Inputs& inputs,
                                                const LossOptions& options) {
  if (config.family == Family::vit) return gradients_without_model<VisionTransformer>(config, inputs, options);
  if (config.family == Family::dit) return gradients_without_model<DiffusionTransformer>(config, inputs, options);
  return gradients_without_model<LanguageModel>(config, inputs, options);
}

template <class Check>
void for_some_schemes(const Check& check) {
  for (const Family family : all_families()) {
    for (const auto& scheme : {"pre", "post", "peri", "olmo2", "siamese", "span", "hc"}) {
      ModelConfig config = small_family(family, scheme);
      config.drop_path = family == Family::vit ? 0.3 : 0;
      check(config, case_name(family, scheme));
    }
  }
}

TEST(Lifetime, AModelMayBeGoneBeforeBackward) {
  for_some_schemes([](const ModelConfig& config, const std::string& name) {
    const Inputs inputs = family_inputs(config, 3, 2);
    LossOptions options = family_options(config, 3);
    const auto model = make_small(config);
    perturb(*model);
    const auto wanted = loss_and_gradients(*model, inputs, options).second;
    for (const int64_t recompute : {0, 1, 2}) {
      options.stack.recompute_every = recompute;
      const auto got = gradients_without_model(config, inputs, options);
      for (size_t i = 0; i < wanted.size(); ++i) {
        testing::expect_same_bits(got[i], wanted[i], name + " " + model->parameters().list()[i].name);
      }
    }
  });
}

TEST(Lifetime, AutogradGradReturnsEveryGradientAndLeavesGradAlone) {
  for_some_schemes([](const ModelConfig& config, const std::string& name) {
    const Inputs inputs = family_inputs(config, 3, 2);
    LossOptions options = family_options(config, 3);
    const auto model = make_small(config);
    perturb(*model);
    const auto wanted = loss_and_gradients(*model, inputs, options).second;
    model->parameters().zero_grad();
    options.stack.recompute_every = 1;
    const auto leaves = leaves_of(*model);
    const auto got = torch::autograd::grad({model->losses(inputs, options).objective}, leaves);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const std::string what = name + " " + model->parameters().list()[i].name;
      testing::expect_same_bits(got[i], wanted[i], what);
      EXPECT_FALSE(leaves[i].grad().defined()) << what;
    }
  });
}

TEST(Lifetime, SecondDerivativesThroughARecomputedSegmentAreAnError) {
  const ModelConfig config = small_family(Family::lm, "siamese");
  const auto model = make_small(config, 1, at::kDouble);
  LossOptions options = family_options(config, 3);
  options.stack.recompute_every = 1;
  const at::Tensor objective = model->losses(family_inputs(config, 3, 2), options).objective;
  testing::expect_error<UsageError>(
      [&] { torch::autograd::grad({objective}, leaves_of(*model), {}, /*retain_graph=*/true, /*create_graph=*/true); },
      {"recompute", "create_graph"});
}

}  // namespace
}  // namespace siamese::models

// Parts of models on a device that has no memory: whatever touches a host pointer, or mixes devices, fails here.
#include "tests/models/small_families.h"
#include "tests/support/schemes.h"

#include "siamese/nn/conditioning.h"
#include "siamese/nn/feed_forward.h"
#include "siamese/nn/patch_embed.h"
#include "siamese/nn/rotary.h"
#include "siamese/ops/mode.h"

namespace siamese::models {
namespace {

const at::TensorOptions kMetaFloat = at::TensorOptions().dtype(at::kFloat).device(at::kMeta);

TEST(Device, PartsFollowTheirTensorsToAnotherDevice) {
  const ops::ModeGuard mode(ops::Mode::plain);
  const nn::Parameters parameters(1);
  const nn::Scope root(parameters);
  const nn::PatchEmbed patches(root.child("patch"), 3, 2, 8, nn::Init::normal(1, 0), nn::Init::zeros());
  const nn::TimestepEmbedding timesteps(root.child("timestep"), 8);
  const nn::Initializer initializer({}, 8, 2);
  const nn::FeedForward ffn(root.child("ffn"), {.width = 8, .hidden = 12}, initializer, 0, {});
  const nn::Norm norm(root.child("norm"), 8, {});
  for (const auto& parameter : std::vector<nn::Parameter>(parameters.list())) {
    parameters.set(parameter.name, parameter.value.detach().to(at::kMeta));
  }
  EXPECT_TRUE(parameters.options().device().is_meta());
  const at::Tensor embedded = patches(at::empty({2, 3, 6, 6}, kMetaFloat));
  EXPECT_EQ(embedded.sizes(), (std::vector<int64_t>{2, 9, 8}));
  EXPECT_TRUE(ffn(norm(embedded)).is_meta());
  EXPECT_TRUE(timesteps(at::tensor({3, 999}, at::kLong)).is_meta()) << "timesteps come from the host";
}

// Forward, loss and backward with nothing but shapes: what a model too large for the machine can be asked. Samples come
// from the host, as the data do.
void expect_whole_on_meta(const ModelConfig& config, const LossOptions& options) {
  const auto model = make_model(config, large_init(), 1, at::kMeta);
  const Losses losses = model->losses(family_inputs(config, 2, 3), options);
  EXPECT_TRUE(losses.loss.is_meta());
  EXPECT_TRUE(losses.objective.is_meta() && losses.objective.dim() == 0);
  losses.objective.backward();
  for (const auto& parameter : model->parameters().list()) {
    const at::Tensor& gradient = parameter.value.grad();
    ASSERT_TRUE(gradient.defined() && gradient.is_meta()) << parameter.name;
    EXPECT_EQ(gradient.sizes(), parameter.value.sizes()) << parameter.name;
  }
}

TEST(Device, WholeModelsOfEverySchemeOnMeta) {
  for (const Family family : all_families()) {
    for (const std::string& scheme : schemes_of(family)) {
      SCOPED_TRACE(case_name(family, scheme));
      const ModelConfig config = small_family(family, scheme);
      ASSERT_NO_THROW(expect_whole_on_meta(config, family_options(config, 2)));
    }
    for (const ModelConfig& config : value_mixings(family)) {
      ASSERT_NO_THROW(expect_whole_on_meta(config, family_options(config, 2)));
    }
  }
}

TEST(Device, OptionsOfFamiliesOnMeta) {
  for (const Family family : all_families()) {
    SCOPED_TRACE(case_name(family, "siamese"));
    ModelConfig config = small_family(family, "siamese");
    if (!config.sees_images()) config.positions = Positions::learned;
    if (family == Family::vit) config.drop_path = 0.3;
    config.attention_norm = AttentionNormChoice::qkv;
    LossOptions options = family_options(config, 2);
    options.stack.recompute_every = 1;
    options.z_loss = family == Family::lm ? 0.01 : 0;
    ASSERT_NO_THROW(expect_whole_on_meta(config, options));
    const auto model = make_model(config, large_init(), 1, at::kMeta);
    Inputs inputs = family_inputs(config, 2, 3);
    if (inputs.tokens.defined()) inputs.tokens = inputs.tokens.narrow(1, 0, config.context);
    if (family == Family::dit) {
      inputs.timesteps = at::tensor({0, 999}, at::kLong);
      inputs.targets = at::zeros({2, 6, 6, 6});
    }
    const Pass pass = model->pass(inputs, {});
    EXPECT_TRUE(pass.output.is_meta() && pass.loss.is_meta());
    pass.loss.backward();
  }
}

TEST(Device, TablesAndConstantsComeToTheTensorsTheyServe) {
  const nn::Rotary rotary(6, 4, 100, at::kFloat);
  EXPECT_TRUE(rotary.at(1, 3, kMetaFloat).cos.is_meta());
  testing::expect_same_bits(rotary.at(1, 3, at::kDouble).sin,
                            nn::Rotary(6, 4, 100, at::kDouble).at(1, 3, at::kDouble).sin, "not the rounded table");
  const Diffusion diffusion;
  const at::Tensor images = at::empty({2, 3, 6, 6}, kMetaFloat);
  EXPECT_TRUE(diffusion.noised(images, at::tensor({3, 999}, at::kLong), images).is_meta());
  const at::Tensor output = at::empty({2, 6, 6, 6}, kMetaFloat);
  const at::Tensor with_first = at::tensor({0, 999}, at::kLong);  // step 0 has a likelihood of its own
  EXPECT_TRUE(diffusion.losses(output, images, images, with_first, images, true).vlb.is_meta());
}

TEST(Device, RandomInitialValuesAreThoseOfFloatInEveryType) {
  const nn::Parameters one(3), half(3, at::kBFloat16);
  const nn::Init init = nn::Init::normal(1, 3);
  const at::Tensor wanted = nn::Scope(one).add("w", nn::ParameterKind::linear, {5, 7}, init).value();
  const at::Tensor got = nn::Scope(half).add("w", nn::ParameterKind::linear, {5, 7}, init).value();
  testing::expect_same_bits(got.detach(), wanted.detach().to(at::kBFloat16), "bfloat16");
}

}  // namespace
}  // namespace siamese::models

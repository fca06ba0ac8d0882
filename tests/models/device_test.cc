// Parts of models on a device that has no memory: whatever touches a host pointer, or mixes devices, fails here.
// Attention and embedding are left out: LibTorch alone has no meta kernels for what they are made of.
#include "tests/models/small_families.h"

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

TEST(Device, TablesAndConstantsComeToTheTensorsTheyServe) {
  const nn::Rotary rotary(6, 4, 100, at::kFloat);
  EXPECT_TRUE(rotary.at(1, 3, kMetaFloat).cos.is_meta());
  testing::expect_same_bits(rotary.at(1, 3, at::kDouble).sin,
                            nn::Rotary(6, 4, 100, at::kDouble).at(1, 3, at::kDouble).sin, "not the rounded table");
  const Diffusion diffusion;
  const at::Tensor images = at::empty({2, 3, 6, 6}, kMetaFloat);
  EXPECT_TRUE(diffusion.noised(images, at::tensor({3, 999}, at::kLong), images).is_meta());
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

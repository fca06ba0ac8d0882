// A caller's mistake is an error of one line, and the process goes on.
#include "tests/models/small_families.h"
#include "tests/support/errors.h"

#include "siamese/models/weights.h"

namespace siamese::models {
namespace {

using testing::expect_error;

template <class Family>
std::unique_ptr<Family> make_family(const ModelConfig& config) {
  return std::make_unique<Family>(config, large_init(), nn::Parameters(1));
}

TEST(BadInput, TokensOfALanguageModel) {
  const ModelConfig config = small_config("siamese");
  const auto model = make_lm(config);
  const auto tokens = [](at::IntArrayRef shape, int64_t value) { return at::full(shape, value, at::kLong); };
  const auto losses = [&](const Inputs& inputs) { model->losses(inputs, {}); };
  expect_error([&] { losses({}); }, {"tokens", "no tensor"});
  expect_error([&] { losses({tokens({13}, 1), {}}); }, {"tokens", "[*, *]", "[13]"});
  expect_error([&] { losses({at::ones({2, 13}), {}}); }, {"tokens", "Long", "Float"});
  expect_error([&] { losses({tokens({2, 1}, 1), {}}); }, {"tokens", "2 or more", "got 1"});
  expect_error([&] { losses({tokens({2, 14}, 1), {}}); }, {"tokens", "at most 12", "got 13"});
  expect_error([&] { losses({tokens({2, 13}, 19), {}}); }, {"tokens", "0 to 18", "got 19"});
  expect_error([&] { losses({tokens({2, 13}, -1), {}}); }, {"tokens", "0 to 18", "got -1"});
  expect_error([&] { losses({tokens({2, 13}, 1), at::ones({2, 13})}); }, {"weights", "[2, 12]", "[2, 13]"});
  expect_error([&] { model->pass({tokens({2, 1}, 1), {}}, {}); }, {"tokens", "2 or more"});
  expect_error([&] { model->hidden(tokens({2, 13}, 1)); }, {"tokens", "at most 12", "got 13"});
}

TEST(BadInput, TheCacheOfALanguageModel) {
  const ModelConfig config = small_config("siamese");
  const auto model = make_lm(config);
  const c10::NoGradGuard no_grad;
  LmCache cache = model->make_cache(2, 5);
  const at::Tensor tokens = at::ones({2, 3}, at::kLong);
  model->hidden(tokens, {}, &cache);
  expect_error([&] { model->hidden(tokens, {}, &cache); }, {"tokens", "at most 5", "got 6"});
  expect_error([&] { model->hidden(at::ones({3, 1}, at::kLong), {}, &cache); }, {"cache", "3 sequences", "got 2"});
  LmCache none;
  none.capacity = 5;
  expect_error([&] { model->hidden(tokens, {}, &none); }, {"cache", "3 blocks", "got 0"});
  expect_error([&] { model->make_cache(2, 0); }, {"capacity", "got 0"});
  LmCache sliding = model->make_cache(2, 5, /*slides=*/true);
  model->hidden(tokens, {}, &sliding);
  expect_error([&] { model->hidden(tokens, {}, &sliding); }, {"tokens", "at most 5", "got 6"});  // token by token only
  ModelConfig learned = small_config("siamese");
  learned.positions = Positions::learned;
  expect_error([&] { make_lm(learned)->make_cache(2, 5, true); }, {"slides", "learned"});
  LmCache fresh = model->make_cache(2, 5);
  expect_error([&] { model->hidden(tokens, {.recompute_every = 1}, &fresh); }, {"recompute_every", "cache"});
}

TEST(BadInput, ImagesAndLabels) {
  const ModelConfig config = small_family(Family::vit, "siamese");
  const auto model = make_family<VisionTransformer>(config);
  const Inputs good = family_inputs(config, 3, 2);
  const auto with = [&](auto change) {
    Inputs inputs = good;
    change(inputs);
    return inputs;
  };
  const LossOptions options;
  expect_error([&] { model->losses({}, options); }, {"images", "no tensor"});
  expect_error([&] { model->features(at::ones({3, 3, 6, 8})); }, {"images", "[*, 3, 6, 6]", "[3, 3, 6, 8]"});
  const auto label = [&](int64_t value) {
    return with([&](Inputs& inputs) { inputs.labels = at::full({3}, value, at::kLong); });
  };
  expect_error([&] { model->losses(label(7), options); }, {"labels", "0 to 6", "got 7"});
  expect_error([&] { model->pass(label(-1), {}); }, {"labels", "0 to 6", "got -1"});
  expect_error([&] { model->losses(with([](Inputs& i) { i.labels = at::ones({2}, at::kLong); }), options); },
               {"labels", "[3]", "[2]"});
  expect_error(
      [&] {
        model->losses(with([](Inputs& i) { i.targets = at::ones({3, 6}); }), options);
      },
      {"targets", "[3, 7]", "[3, 6]"});
}

TEST(BadInput, Diffusion) {
  const ModelConfig config = small_family(Family::dit, "siamese");
  const auto model = make_family<DiffusionTransformer>(config);
  const Inputs good = family_inputs(config, 3, 2);
  const at::Tensor steps = at::full({3}, 1000, at::kLong);
  expect_error([&] { model->output(good.images, steps, good.labels); }, {"timesteps", "0 to 999", "got 1000"});
  expect_error([&] { model->output(good.images, steps - 1, good.labels + 8); }, {"labels", "0 to 7"});
  expect_error([&] { model->output(good.images.narrow(1, 0, 1), steps - 1, good.labels); }, {"images", "[3, 1, 6, 6]"});
  const Diffusion diffusion;
  const at::Tensor x = good.images;
  expect_error([&] { diffusion.noised(x, steps, x); }, {"timesteps", "0 to 999", "got 1000"});
  expect_error([&] { diffusion.noised(x, steps.narrow(0, 0, 2), x); }, {"timesteps", "[3]", "[2]"});
  expect_error([&] { diffusion.losses(x, x, x, steps - 1, x, /*learn_sigma=*/true); }, {"output", "[3, 6, 6, 6]"});
  expect_error([&] { diffusion.at(1000); }, {"step", "0 to 999", "got 1000"});
}

TEST(BadInput, TensorsThatCannotBeStored) {
  const at::Tensor strided = at::ones({2, 3}).t();
  expect_error([&] { as_view("w", strided); }, {"w", "contiguous", "strided"});
  expect_error([&] { as_view("w", at::ones({2}, at::kComplexFloat)); }, {"safetensors", "ComplexFloat"});
}

}  // namespace
}  // namespace siamese::models

// Every registered scheme in every family: shapes, a finite gradient to every parameter, save and load, overfitting.
#include <filesystem>

#include "tests/models/small_lm.h"

#include <ATen/Parallel.h>

#include "siamese/models/weights.h"
#include "siamese/ops/adamw.h"
#include "siamese/ops/gradient.h"

namespace siamese::models {
namespace {

using testing::all_schemes;

TEST(Matrix, ShapesAndAFiniteGradientToEveryParameter) {
  for (const auto& scheme : all_schemes()) {
    const ModelConfig config = small_config(scheme);
    const auto model = make_lm(config);
    perturb(*model);
    const Inputs inputs = random_inputs(config, 3, 2);
    EXPECT_EQ(model->hidden(inputs.tokens.narrow(1, 0, 5)).sizes(), (std::vector<int64_t>{3, 5, config.width}));
    const auto result = loss_and_gradients(*model, inputs, {.normalizer = 36});
    EXPECT_TRUE(std::isfinite(result.first)) << scheme;
    for (size_t i = 0; i < result.second.size(); ++i) {
      const std::string what = scheme + " " + model->parameters().list()[i].name;
      ASSERT_TRUE(result.second[i].defined()) << what;
      EXPECT_TRUE(result.second[i].isfinite().all().item<bool>()) << what;
      EXPECT_GT(result.second[i].abs().max().item<double>(), 0) << what;
    }
  }
}

// What the trainer does: gradients of two micro-batches add up in one buffer, with and without recomputation.
TEST(Matrix, GradientsAddedInPlaceAreThoseOfAutograd) {
  for (const auto& scheme : all_schemes()) {
    for (const bool tied : {false, true}) {
      ModelConfig config = small_config(scheme);
      config.tied = tied;
      const auto model = make_lm(config);
      perturb(*model);
      const Inputs inputs = random_inputs(config, 3, 2);
      LossOptions options{.normalizer = 36, .z_loss = 1e-3};
      std::vector<at::Tensor> wanted = loss_and_gradients(*model, inputs, options).second;
      for (auto& gradient : wanted) gradient = 2 * gradient;
      const nn::GradientBuffer buffer(model->parameters());
      std::vector<at::Tensor> first;
      for (const int64_t recompute : {0, 1}) {
        options.stack.recompute_every = recompute;
        buffer.zero();
        const ops::GradientsInPlace in_place;
        for (int micro_batch = 0; micro_batch < 2; ++micro_batch) model->losses(inputs, options).objective.backward();
        for (size_t i = 0; i < wanted.size(); ++i) {
          const auto& parameter = model->parameters().list()[i];
          const std::string what = scheme + (tied ? " tied " : " ") + parameter.name;
          testing::expect_close(parameter.value.grad(), wanted[i], 2e-6, what);
          if (recompute == 0) first.push_back(parameter.value.grad().clone());
          testing::expect_same_bits(parameter.value.grad(), first[i], what + " recomputed");
        }
      }
    }
  }
}

TEST(Matrix, SaveAndLoadKeepEveryBit) {
  const auto path = std::filesystem::temp_directory_path() / "siamese_matrix_test.safetensors";
  for (const auto& scheme : all_schemes()) {
    const auto model = make_lm(small_config(scheme), 1);
    const auto other = make_lm(small_config(scheme), 2);
    save_tensors(path, named_values(model->parameters()), {});
    load_tensors(path, named_values(other->parameters()));
    for (size_t i = 0; i < model->parameters().list().size(); ++i) {
      testing::expect_same_bits(other->parameters().list()[i].value, model->parameters().list()[i].value, scheme);
    }
  }
  std::filesystem::remove(path);
}

TEST(Matrix, OverfitsOneBatch) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);  // steps too small to share
  for (const auto& scheme : all_schemes()) {
    ModelConfig config = small_config(scheme);
    config.width = 48;
    config.blocks = 2;
    config.ffn_width = 96;
    const auto model = std::make_unique<LanguageModel>(config, nn::InitConfig{}, nn::Parameters(1));
    const Inputs inputs = random_inputs(config, 4, 3);
    std::vector<std::pair<at::Tensor, at::Tensor>> moments;
    for (const auto& parameter : model->parameters().list()) {
      moments.emplace_back(at::zeros_like(parameter.value.detach()), at::zeros_like(parameter.value.detach()));
    }
    double loss = 0;
    for (int64_t step = 1; step <= 300; ++step) {
      loss = loss_and_gradients(*model, inputs, {.normalizer = 48}).first;
      if (loss < 0.05) break;
      for (size_t i = 0; i < moments.size(); ++i) {
        const at::Tensor& value = model->parameters().list()[i].value;
        ops::adamw_step({.lr = 3e-3, .applied_steps = step},
                        {{value.grad(), value.detach(), moments[i].first, moments[i].second}});
      }
    }
    EXPECT_LT(loss, 0.05) << scheme;
  }
  at::set_num_threads(before);
}

}  // namespace
}  // namespace siamese::models

// Every registered scheme in every family: shapes, a finite gradient to every parameter, save and load, recomputation,
// thread counts, overfitting.
#include <filesystem>
#include <functional>

#include "tests/models/small_families.h"
#include "tests/support/errors.h"

#include <ATen/Parallel.h>

#include "siamese/models/weights.h"
#include "siamese/ops/adamw.h"
#include "siamese/ops/gradient.h"

namespace siamese::models {
namespace {

template <class Check>
void for_every_case(const Check& check) {
  for (const Family family : all_families()) {
    for (const auto& scheme : schemes_of(family)) check(small_family(family, scheme), case_name(family, scheme));
  }
}

// The families of text are causal; which schemes they cannot have is written here by hand.
TEST(Matrix, FamiliesOfTextRefuseSchemesThatLookAcrossTokens) {
  const std::vector<std::string> across = {"mv_split", "orthogonal(over=sample)", "mv_split(norm=pre)"};
  for (const Family family : all_families()) {
    for (const auto& scheme : testing::all_schemes()) {
      const bool refused = (family == Family::lm || family == Family::moe) &&
                           std::find(across.begin(), across.end(), scheme) != across.end();
      const std::vector<std::string> taken = schemes_of(family);
      EXPECT_EQ(std::find(taken.begin(), taken.end(), scheme) == taken.end(), refused) << case_name(family, scheme);
      const auto build = [&] { make_small(small_family(family, scheme)); };
      if (refused) {
        testing::expect_error<UsageError>(build, {scheme, "all tokens of a sample", "causal"});
      } else {
        EXPECT_NO_THROW(build()) << case_name(family, scheme);
      }
    }
  }
}

// What a user of the family gets of a batch of three.
void expect_shapes(const Model& model, const ModelConfig& config, const Inputs& inputs, const std::string& what) {
  using Sizes = std::vector<int64_t>;
  if (const auto* const vit = dynamic_cast<const VisionTransformer*>(&model)) {
    EXPECT_EQ(vit->features(inputs.images).sizes(), (Sizes{3, config.width})) << what;
    EXPECT_EQ(vit->logits(vit->features(inputs.images)).sizes(), (Sizes{3, config.classes})) << what;
  } else if (const auto* const dit = dynamic_cast<const DiffusionTransformer*>(&model)) {
    EXPECT_EQ(dit->output(inputs.images, at::tensor({0, 500, 999}, at::kLong), inputs.labels).sizes(),
              (Sizes{3, 2 * config.channels, config.image, config.image}))
        << what;
  } else {
    const auto& lm = dynamic_cast<const LanguageModel&>(model);
    EXPECT_EQ(lm.hidden(inputs.tokens.narrow(1, 0, 5)).sizes(), (Sizes{3, 5, config.width})) << what;
  }
}

TEST(Matrix, ShapesAndAFiniteGradientToEveryParameter) {
  for_every_case([](const ModelConfig& config, const std::string& name) {
    const auto model = make_small(config);
    perturb(*model);
    const Inputs inputs = family_inputs(config, 3, 2);
    expect_shapes(*model, config, inputs, name);
    LossOptions options = family_options(config, 3);
    options.training = false;  // a hidden label would leave its row without a gradient
    const auto result = loss_and_gradients(*model, inputs, options);
    EXPECT_TRUE(std::isfinite(result.first)) << name;
    for (size_t i = 0; i < result.second.size(); ++i) {
      const std::string what = name + " " + model->parameters().list()[i].name;
      ASSERT_TRUE(result.second[i].defined()) << what;
      EXPECT_TRUE(result.second[i].isfinite().all().item<bool>()) << what;
      EXPECT_GT(result.second[i].abs().max().item<double>(), 0) << what;
    }
  });
}

// What the trainer does: gradients of two micro-batches add up in one buffer, with and without recomputation.
TEST(Matrix, GradientsAddedInPlaceAreThoseOfAutograd) {
  for_every_case([](const ModelConfig& given, const std::string& name) {
    for (const bool tied : {false, true}) {
      if (tied && given.sees_images()) continue;
      ModelConfig config = given;
      config.tied = tied;
      config.drop_path = config.family == Family::vit ? 0.3 : 0;
      const auto model = make_small(config);
      perturb(*model);
      const Inputs inputs = family_inputs(config, 3, 2);
      LossOptions options = family_options(config, 3);
      options.z_loss = 1e-3;
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
          const std::string what = name + (tied ? " tied " : " ") + parameter.name;
          testing::expect_relative(parameter.value.grad(), wanted[i], 2e-6, what);
          if (recompute == 0) first.push_back(parameter.value.grad().clone());
          testing::expect_same_bits(parameter.value.grad(), first[i], what + " recomputed");
        }
      }
    }
  });
}

TEST(Matrix, SaveAndLoadKeepEveryBit) {
  const auto path = std::filesystem::temp_directory_path() / "siamese_matrix_test.safetensors";
  for_every_case([&](const ModelConfig& config, const std::string& name) {
    const auto model = make_small(config, 1);
    const auto other = make_small(config, 2);
    save_tensors(path, named_values(model->parameters()), {});
    load_tensors(path, named_values(other->parameters()));
    for (size_t i = 0; i < model->parameters().list().size(); ++i) {
      testing::expect_same_bits(other->parameters().list()[i].value, model->parameters().list()[i].value, name);
    }
  });
  std::filesystem::remove(path);
}

TEST(Matrix, ImageFamiliesAndExpertsGiveTheSameBitsAtUpToThreeThreads) {
  const int before = at::get_num_threads();
  for (const Family family : {Family::moe, Family::vit, Family::dit}) {
    for (const auto& scheme : {"pre", "siamese", "siamese(x=hybrid)", "hc"}) {
      ModelConfig config = small_family(family, scheme);
      config.width = 64;
      config.ffn_width = 96;
      const auto model = make_small(config);
      perturb(*model);
      const Inputs inputs = family_inputs(config, 64, 2);
      at::set_num_threads(1);
      const auto one = loss_and_gradients(*model, inputs, family_options(config, 64));
      for (const int threads : {2, 3}) {
        at::set_num_threads(threads);
        const auto more = loss_and_gradients(*model, inputs, family_options(config, 64));
        EXPECT_EQ(one.first, more.first) << case_name(family, scheme);
        for (size_t i = 0; i < one.second.size(); ++i) {
          testing::expect_same_bits(more.second[i], one.second[i],
                                    case_name(family, scheme) + " " + model->parameters().list()[i].name);
        }
      }
    }
  }
  at::set_num_threads(before);
}

// Shapes at the edge of what a config allows.
TEST(Matrix, OddShapesTrain) {
  using Change = std::function<void(ModelConfig&)>;
  const std::vector<std::pair<std::string, Change>> changes = {
      {"one block", [](ModelConfig& c) { c.blocks = 1; }},
      {"shared keys", [](ModelConfig& c) { c.kv_heads = 1; }},
      {"one class", [](ModelConfig& c) { c.classes = 1; }},
      {"one channel", [](ModelConfig& c) { c.channels = 1; }},
      {"one patch", [](ModelConfig& c) { c.patch = c.image; }},
      {"patches of one pixel", [](ModelConfig& c) { c.patch = 1; }},
      {"one expert", [](ModelConfig& c) { c.experts = c.experts_per_token = 1; }},
      {"every expert", [](ModelConfig& c) { c.experts_per_token = c.experts; }},
      {"weights of experts add up to 1", [](ModelConfig& c) { c.renormalise = true; }},
      {"no label is hidden", [](ModelConfig& c) { c.label_dropout = 0; }},
      {"fixed variance", [](ModelConfig& c) { c.learn_sigma = false; }},
      {"no biases", [](ModelConfig& c) { c.bias = false; }},
      {"rms", [](ModelConfig& c) { c.norm = nn::NormKind::rms; }},
      {"norms of q and k", [](ModelConfig& c) { c.attention_norm = AttentionNormChoice::qk_full; }},
  };
  for (const Family family : {Family::moe, Family::vit, Family::dit}) {
    for (const auto& [name, change] : changes) {
      for (const auto& scheme : {"pre", "siamese", "siamese(x=hybrid)"}) {
        ModelConfig config = small_family(family, scheme);
        change(config);
        resolve(config, {});
        const auto model = make_small(config);
        perturb(*model);
        const std::string what = case_name(family, scheme) + ", " + name;
        for (const int64_t batch : {1, 3}) {
          const auto result =
              loss_and_gradients(*model, family_inputs(config, batch, 2), family_options(config, batch));
          EXPECT_TRUE(std::isfinite(result.first)) << what;
          for (const auto& gradient : result.second) {
            EXPECT_TRUE(gradient.defined() && gradient.isfinite().all().item<bool>()) << what;
          }
        }
      }
    }
  }
}

// The term that can be driven to nothing: dit's vlb has a floor that depends on the timesteps.
double fitted_term(const Losses& losses) {
  for (const auto& [name, value] : losses.extra) {
    if (name == "mse") return value.item<double>();
  }
  return losses.loss.item<double>();
}

TEST(Matrix, OverfitsOneBatch) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);  // steps too small to share
  for_every_case([](ModelConfig config, const std::string& name) {
    config.width = 48;
    config.blocks = 2;
    config.ffn_width = 96;
    config.label_dropout = 0;
    nn::InitConfig init;
    if (config.family == Family::dit) init.rule = nn::InitRule::xavier;
    const auto model = make_model(config, init, 1);
    const Inputs inputs = family_inputs(config, 4, 3);
    std::vector<std::pair<at::Tensor, at::Tensor>> moments;
    for (const auto& parameter : model->parameters().list()) {
      moments.emplace_back(at::zeros_like(parameter.value.detach()), at::zeros_like(parameter.value.detach()));
    }
    double loss = 0;
    for (int64_t step = 1; step <= 300; ++step) {
      model->parameters().zero_grad();
      const Losses losses = model->losses(inputs, family_options(config, 4));
      loss = fitted_term(losses);
      if (loss < 0.05) break;
      losses.objective.backward();
      for (size_t i = 0; i < moments.size(); ++i) {
        const at::Tensor& value = model->parameters().list()[i].value;
        ops::adamw_step({.lr = 3e-3, .applied_steps = step},
                        {{value.grad(), value.detach(), moments[i].first, moments[i].second}});
      }
    }
    EXPECT_LT(loss, 0.05) << name;
  });
  at::set_num_threads(before);
}

}  // namespace
}  // namespace siamese::models

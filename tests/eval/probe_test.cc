#include "siamese/eval/probe.h"

#include <cmath>
#include <filesystem>
#include <map>

#include "tests/models/small_families.h"
#include "tests/support/tensors.h"
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/eval/tensor_statistics.h"

namespace siamese::eval {
namespace {
namespace probing {

using models::Family;
using Tensors = std::map<std::string, at::Tensor>;

models::Inputs inputs_for(const models::ModelConfig& config) {
  models::Inputs inputs;
  const std::vector<int64_t> image = {3, config.channels, config.image, config.image};
  if (!config.sees_images()) {
    inputs.tokens = (testing::randn({3, 9}, 11).abs() * 1000).to(at::kLong).remainder(config.vocab);
    return inputs;
  }
  inputs.images = testing::randn(image, 12);
  inputs.labels = at::tensor({0, 5, 2}, at::kLong);
  if (config.family == Family::dit) {
    inputs.timesteps = at::tensor({0, 999, 17}, at::kLong);
    inputs.labels = at::tensor({0, 7, 2}, at::kLong);  // 7: the row that stands for no class
    inputs.targets = testing::randn({3, 2 * config.channels, config.image, config.image}, 13);
  }
  return inputs;
}

// Weights as after some training: nothing 0 or 1, or the adaLN gates of a dit would hide its blocks.
std::unique_ptr<models::Model> worn_model(const models::ModelConfig& config) {
  auto model = models::make_small(config, 1, at::kDouble);
  const at::NoGradGuard no_grad;
  uint64_t seed = 100;
  for (const auto& parameter : model->parameters().list()) {
    parameter.value.add_(testing::randn(parameter.value.sizes(), seed++) * 0.1);
  }
  return model;
}

Tensors probed(const models::Model& model, const models::Inputs& inputs, const ProbeOptions& options = {}) {
  Tensors tensors;
  for (const auto& [name, value, optional] : probe(model, inputs, options)) tensors[name] = value;
  return tensors;
}

TEST(Probe, LossIsTheNamedTermOfTheOutput) {
  for (const Family family : models::all_families()) {
    const auto config = models::small_family(family, "siamese");
    const auto inputs = inputs_for(config);
    const Tensors got = probed(*worn_model(config), inputs);
    at::Tensor expected;
    if (family == Family::dit) {
      EXPECT_EQ(got.at("output").sizes(), inputs.targets.sizes());
      expected = (got.at("output") - inputs.targets).square().mean();
    } else {
      const bool text = family != Family::vit;
      const at::Tensor logits = text ? got.at("output").narrow(1, 0, 8).reshape({24, -1}) : got.at("output");
      const at::Tensor targets = text ? inputs.tokens.narrow(1, 1, 8).reshape({24}) : inputs.labels;
      EXPECT_EQ(got.at("output").size(-1), text ? config.vocab : config.classes);
      EXPECT_EQ(got.at("output").size(1), text ? 9 : config.classes);
      const at::Tensor own = logits.gather(1, targets.unsqueeze(1)).squeeze(1);
      expected = (logits.exp().sum(1).log() - own).mean();
    }
    testing::expect_relative(got.at("loss"), expected, 1e-13, std::string(enum_text(family)));
    EXPECT_EQ(got.contains("aux/balance_loss"), family == Family::moe);
    EXPECT_EQ(got.contains("aux/router_z_loss"), family == Family::moe);
    EXPECT_FALSE(got.contains("grad/embedding.weight"));
  }
}

// d loss along a random direction of all parameters, by central differences.
TEST(Probe, GradientsAreThoseOfTheLoss) {
  for (const Family family : models::all_families()) {
    for (const char* const scheme : {"siamese", "siamese(x=hybrid)", "pre"}) {
      const auto config = models::small_family(family, scheme);
      const auto model = worn_model(config);
      const auto inputs = inputs_for(config);
      const Tensors got = probed(*model, inputs, {.gradients = true});
      double expected = 0;
      std::vector<at::Tensor> directions;
      for (const auto& parameter : model->parameters().list()) {
        const auto& direction = directions.emplace_back(testing::randn(parameter.value.sizes(), directions.size()));
        expected += (got.at("grad/" + parameter.name) * direction).sum().item<double>();
      }
      const auto moved_loss = [&](double step) {
        const at::NoGradGuard no_grad;
        size_t i = 0;
        for (const auto& parameter : model->parameters().list()) parameter.value.add_(directions[i++] * step);
        return probed(*model, inputs).at("loss").item<double>();
      };
      const double h = 1e-6;
      const double forward = moved_loss(h);
      const double back = moved_loss(-2 * h);
      EXPECT_NEAR((forward - back) / (2 * h), expected, 1e-6 * (1 + std::abs(expected)))
          << models::case_name(family, scheme);
    }
  }
}

TEST(Probe, ActivationsObeyTheEquation) {
  const auto config = models::small_family(Family::vit, "siamese");
  const Tensors got = probed(*worn_model(config), inputs_for(config), {.activations = true});
  for (int64_t site = 0; site + 1 < 2 * config.blocks; ++site) {
    const auto at_site = [&](const std::string& what, int64_t i) {
      return got.at("site/" + std::to_string(i) + "/" + what);
    };
    const double c = std::sqrt(2.0 * static_cast<double>(site / 2 + 1));
    const at::Tensor out = at_site("branch_out", site);
    testing::expect_relative(at_site("stream/X", site + 1), at_site("stream_normed/X", site) + out / c, 1e-12, "X");
    testing::expect_relative(at_site("stream/Y", site + 1), at_site("stream/Y", site) + out, 1e-12, "Y");
    EXPECT_EQ(at_site("branch_in", site).sizes(), out.sizes());
    EXPECT_TRUE(got.contains("site/" + std::to_string(site) + "/stream_normed/Y"));
  }
}

TEST(Probe, NothingIsDrawn) {
  for (const Family family : {Family::vit, Family::dit}) {
    auto config = models::small_family(family, "siamese");
    const auto inputs = inputs_for(config);
    const Tensors plain = probed(*worn_model(config), inputs);
    (family == Family::vit ? config.drop_path : config.label_dropout) = 0.9;
    const auto dropping = worn_model(config);
    testing::expect_same_bits(probed(*dropping, inputs).at("output"), plain.at("output"), "dropping");
  }
}

std::string refusal(const models::ModelConfig& config, const std::vector<models::NamedTensor>& tensors) {
  const auto path =
      std::filesystem::temp_directory_path() / ("siamese_probe_inputs_" + std::to_string(getpid()) + ".safetensors");
  models::save_tensors(path, tensors, {});
  try {
    probe_inputs(io::TensorFiles::open(path), config);
  } catch (const DataError& error) {
    return error.what();
  }
  return "accepted";
}

void expect_refusal(const models::ModelConfig& config, const std::vector<models::NamedTensor>& tensors,
                    const std::string& words) {
  const std::string message = refusal(config, tensors);
  EXPECT_NE(message.find(words), std::string::npos) << message;
}

TEST(Probe, InputsAreChecked) {
  const auto lm = models::small_family(Family::lm, "pre");
  const at::Tensor tokens = at::zeros({2, 5}, at::kLong);
  EXPECT_EQ(refusal(lm, {{"tokens", tokens}}), "accepted");
  expect_refusal(lm, {{"tokens", tokens + lm.vocab}}, "tokens: expected numbers from 0 to");
  expect_refusal(lm, {{"tokens", tokens - 1}}, "got -1");
  expect_refusal(lm, {{"tokens", tokens.to(at::kFloat)}}, "tokens: expected int64, got Float");
  expect_refusal(lm, {{"tokens", tokens.narrow(1, 0, 1)}}, "at least two tokens");
  expect_refusal(lm, {{"tokens", tokens.narrow(1, 0, 0)}}, "not empty");
  expect_refusal(lm, {{"tokens", tokens}, {"more", tokens}}, "unknown more");
  auto learned = lm;
  learned.positions = models::Positions::learned;
  expect_refusal(learned, {{"tokens", at::zeros({1, lm.context + 1}, at::kLong)}}, "at most model.context");
  EXPECT_EQ(refusal(lm, {{"tokens", at::zeros({1, lm.context + 1}, at::kLong)}}), "accepted");
  const auto vit = models::small_family(Family::vit, "pre");
  const at::Tensor images = at::zeros({2, 3, 6, 6});
  expect_refusal(vit, {{"images", images}, {"labels", at::zeros({3}, at::kLong)}}, "as many rows as images has (2)");
  expect_refusal(vit, {{"images", images.narrow(2, 0, 5)}}, "images: expected [any, 3, 6, 6]");
  expect_refusal(vit, {{"images", images}}, "missing labels");
}

TEST(TensorStatistics, OfFiniteElements) {
  const at::Tensor values =
      at::cat({at::arange(3000000, at::kDouble) * 1e-3 + 1e6, at::tensor({std::nan(""), INFINITY}, at::kDouble)});
  const TensorStatistics got = tensor_statistics(values);
  EXPECT_EQ(got.not_finite, 2);
  EXPECT_NEAR(got.mean, 1e6 + 1499.9995, 1e-6);
  EXPECT_NEAR(got.std, 3000 / std::sqrt(12.0), 1e-6);  // of evenly spaced numbers, to 1 / n^2
  EXPECT_EQ(got.least, 1e6);
  EXPECT_NEAR(got.largest, 1e6 + 2999.999, 1e-9);
  EXPECT_EQ(tensor_statistics(at::empty({0})).std, 0);
  EXPECT_EQ(tensor_statistics(at::full({2}, INFINITY)).largest, 0);
}

}  // namespace probing
}  // namespace
}  // namespace siamese::eval

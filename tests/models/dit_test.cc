#include "siamese/models/dit.h"

#include "tests/models/backward_nodes.h"
#include "tests/models/small_families.h"
#include "tests/models/written_out.h"

#include "siamese/ops/operand.h"

namespace siamese::models {
namespace dit_test {

at::Tensor table(int64_t width, int64_t grid) {
  at::Tensor result = at::empty({grid * grid, width}, at::kDouble);
  for (int64_t token = 0; token < grid * grid; ++token) {
    for (int64_t c = 0; c < width; ++c) {
      const int64_t half = c / (width / 2), quarter = c % (width / 2) / (width / 4), i = c % (width / 4);
      const double place = static_cast<double>(half == 0 ? token % grid : token / grid);
      const double angle = place * std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(width / 4));
      result[token][c] = quarter == 0 ? std::sin(angle) : std::cos(angle);
    }
  }
  return result;
}

at::Tensor condition(const WrittenOut& w, const at::Tensor& timesteps, const at::Tensor& labels) {
  at::Tensor features = at::empty({timesteps.size(0), 256}, at::kDouble);
  for (int64_t row = 0; row < timesteps.size(0); ++row) {
    for (int64_t i = 0; i < 128; ++i) {
      const double angle = timesteps[row].item<double>() * std::exp(-std::log(10000.0) * static_cast<double>(i) / 128);
      features[row][i] = std::cos(angle);
      features[row][128 + i] = std::sin(angle);
    }
  }
  const at::Tensor t = w.linear("timestep.out", at::silu(w.linear("timestep.in", features)));
  return at::silu(t + w.p("labels.weight").index({labels}));
}

at::Tensor modulated(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale) {
  return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1);
}

// The whole model for `pre` (stock DiT) and `siamese` (schemes.md, DiT form).
at::Tensor written_out(const WrittenOut& w, const ModelConfig& config, bool siamese, const at::Tensor& x,
                       const at::Tensor& timesteps, const at::Tensor& labels) {
  const at::Tensor c = condition(w, timesteps, labels);
  at::Tensor u = w.patches(x, config.patch) + table(config.width, config.grid());
  at::Tensor y = u;
  for (int64_t block = 0; block < config.blocks; ++block) {
    const std::string name = "blocks." + std::to_string(block);
    const auto vectors = w.linear(name + ".modulation", c).chunk(6, 1);
    for (const int64_t kind : {0, 1}) {
      const std::string at_site = name + (kind == 0 ? ".attention_junction." : ".ffn_junction.");
      const auto at = static_cast<size_t>(3 * kind);
      at::Tensor before = u;
      if (siamese) {
        before = w.norm(at_site + "x_norm", u);
        u = before + w.norm(at_site + "y_norm", y);
      }
      const at::Tensor input = modulated(WrittenOut::standardised(u), vectors[at], vectors[at + 1]);
      const at::Tensor branch = kind == 0 ? w.attention(block, input) : w.feed_forward(block, input, "tanh");
      const at::Tensor added = vectors[at + 2].unsqueeze(1) * branch;
      u = before + (siamese ? added / std::sqrt(2.0 * static_cast<double>(block + 1)) : added);
      y = y + added;
    }
  }
  if (siamese) u = w.norm("close.x_norm", u) + w.norm("close.y_norm", y);
  const auto last = w.linear("final.modulation", c).chunk(2, 1);
  const at::Tensor patches = w.linear("final.out", modulated(WrittenOut::standardised(u), last[0], last[1]));
  const int64_t grid = config.grid(), p = config.patch, channels = 2 * config.channels;
  at::Tensor image = at::zeros({x.size(0), channels, config.image, config.image}, at::kDouble);
  for (int64_t token = 0; token < grid * grid; ++token) {
    for (int64_t pixel = 0; pixel < p * p; ++pixel) {
      for (int64_t channel = 0; channel < channels; ++channel) {
        image.select(1, channel)
            .select(1, token / grid * p + pixel / p)
            .select(1, token % grid * p + pixel % p)
            .copy_(patches.select(1, token).select(1, pixel * channels + channel));
      }
    }
  }
  return image;
}

TEST(Dit, PreIsStockDitAndSiameseThePublishedForm) {
  for (const bool siamese : {false, true}) {
    const ModelConfig config = small_family(Family::dit, siamese ? "siamese" : "pre");
    const auto model = make_small(config, 1, at::kDouble);
    perturb(*model);
    const auto& dit = dynamic_cast<const DiffusionTransformer&>(*model);
    const WrittenOut w(*model, config.heads);
    const at::Tensor x = testing::randn({3, 3, 6, 6}, 4);
    const at::Tensor timesteps = at::tensor({0, 431, 999}, at::kLong), labels = at::tensor({2, 7, 0}, at::kLong);
    expect_same_function(*model, dit.output(x, timesteps, labels),
                         written_out(w, config, siamese, x, timesteps, labels), config.residual);
  }
}

TEST(Dit, StartsAsTheZeroFunction) {
  for (const char* const scheme : {"pre", "siamese", "post", "hc"}) {
    const ModelConfig config = small_family(Family::dit, scheme);
    const auto model = make_small(config);
    const at::Tensor output = dynamic_cast<const DiffusionTransformer&>(*model).output(
        testing::randn({2, 3, 6, 6}, 4, at::kFloat), at::tensor({1, 2}, at::kLong), at::tensor({1, 2}, at::kLong));
    EXPECT_EQ(testing::largest(output), 0) << scheme;
  }
}

TEST(Dit, NoiseTimestepsAndHiddenLabelsBelongToThePositionOfASample) {
  ModelConfig config = small_family(Family::dit, "siamese");
  config.label_dropout = 0.5;
  const auto model = make_small(config);
  perturb(*model);
  const Inputs all = family_inputs(config, 8, 4);
  const LossOptions options{.normalizer = 8, .training = true, .seed = 3};
  double apart = 0;
  for (int64_t row = 0; row < 8; ++row) {
    Inputs one;
    one.images = all.images.narrow(0, row, 1);
    one.labels = all.labels.narrow(0, row, 1);
    one.first_position = all.first_position + static_cast<uint64_t>(row);
    apart += model->losses(one, options).loss.item<double>();
  }
  EXPECT_NEAR(model->losses(all, options).loss.item<double>(), apart, 1e-5);
  Inputs elsewhere = all;
  elsewhere.first_position = 7;
  EXPECT_NE(model->losses(elsewhere, options).loss.item<double>(), model->losses(all, options).loss.item<double>());
  LossOptions asked = options;
  asked.training = false;
  EXPECT_NE(model->losses(all, asked).loss.item<double>(), model->losses(all, options).loss.item<double>());
}

// As of a vit: multiplied before the pass, a gate would be a node of its own (ops::gate).
TEST(Dit, TheGateIsPartOfTheJunctionInBothPrecisions) {
  for (const std::string scheme : {"pre", "siamese"}) {
    const ModelConfig config = small_family(Family::dit, scheme);
    const auto model = make_small(config, 1);
    for (const auto precision : {ops::Precision::float32, ops::Precision::bfloat16}) {
      const ops::PrecisionGuard guard(precision);
      const auto nodes = nodes_below(model->losses(family_inputs(config, 3, 4), family_options(config, 3)).objective);
      const auto gates = [](const std::string& name) { return name.find("gate_op") != std::string::npos; };
      EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(), gates), 0) << scheme;
      EXPECT_GT(nodes.size(), 20U);
    }
  }
}

TEST(Dit, XlTwoHasThePublishedNumberOfParameters) {
  ModelConfig config = small_family(Family::dit, "pre");
  config.blocks = 28;
  config.width = 1152;
  config.heads = config.kv_heads = 16;
  config.ffn_width = 4 * config.width;
  config.image = 32;
  config.patch = 2;
  config.channels = 4;
  config.classes = 1000;
  resolve(config, {});
  // facebookresearch/DiT prints 675,129,632 with the fixed table of positions among them.
  EXPECT_EQ(make_model(config, {}, 1, at::kMeta)->parameters().count() + config.context * config.width, 675129632);
}

}  // namespace dit_test
}  // namespace siamese::models

#include "siamese/models/vit.h"

#include "tests/models/backward_nodes.h"
#include "tests/models/small_families.h"
#include "tests/models/written_out.h"

#include "siamese/ops/operand.h"

namespace siamese::models {
namespace vit_test {

// The drop-path gate of a site for each sample, from its definition.
at::Tensor kept(const ModelConfig& config, uint64_t seed, uint64_t first, int64_t batch, int64_t site) {
  const double chance = config.drop_path * static_cast<double>(site / 2) / static_cast<double>(config.blocks - 1);
  at::Tensor mask = at::ones({batch, 1, 1}, at::kDouble);
  for (int64_t i = 0; i < batch; ++i) {
    const double draw =
        random_uniform(seed ^ hash_text("drop_path"), first + static_cast<uint64_t>(i), static_cast<uint64_t>(site));
    mask[i][0][0] = draw < chance ? 0.0 : 1 / (1 - chance);
  }
  return mask;
}

// schemes.md, DeiT form: X = P(U); z = DropPath(G(I(X + Q(Y)))); U = X + z/c; Y = Y + z; FN(PF(U) + QF(Y)).
at::Tensor deit_siamese(const WrittenOut& w, const ModelConfig& config, const at::Tensor& images,
                        const std::vector<at::Tensor>& gates) {
  const at::Tensor first = w.p("class_token").expand({images.size(0), 1, config.width});
  at::Tensor u = at::cat({first, w.patches(images, config.patch)}, 1) + w.p("positions.weight");
  at::Tensor y = u;
  for (int64_t site = 0; site < 2 * config.blocks; ++site) {
    const int64_t block = site / 2;
    const std::string at_site =
        "blocks." + std::to_string(block) + (site % 2 == 0 ? ".attention_junction." : ".ffn_junction.");
    const at::Tensor x = w.norm(at_site + "x_norm", u);
    const at::Tensor input = w.norm(at_site + "input_norm", x + w.norm(at_site + "y_norm", y));
    at::Tensor z = site % 2 == 0 ? w.attention(block, input) : w.feed_forward(block, input, "none");
    if (!gates.empty()) z = gates[static_cast<size_t>(site)] * z;
    u = x + z / std::sqrt(2.0 * static_cast<double>(block + 1));
    y = y + z;
  }
  return w.norm("close.norm", w.norm("close.x_norm", u) + w.norm("close.y_norm", y)).select(1, 0);
}

at::Tensor stock_vit(const WrittenOut& w, const ModelConfig& config, const at::Tensor& images) {
  const at::Tensor first = w.p("class_token").expand({images.size(0), 1, config.width});
  at::Tensor h = at::cat({first, w.patches(images, config.patch)}, 1) + w.p("positions.weight");
  for (int64_t block = 0; block < config.blocks; ++block) {
    const std::string name = "blocks." + std::to_string(block);
    h = h + w.attention(block, w.norm(name + ".attention_junction.norm", h));
    h = h + w.feed_forward(block, w.norm(name + ".ffn_junction.norm", h), "none");
  }
  return w.norm("close.norm", h).select(1, 0);
}

struct Case {
  ModelConfig config;
  std::unique_ptr<Model> model;
  Inputs inputs;
  const VisionTransformer& vit() const { return dynamic_cast<const VisionTransformer&>(*model); }
};

Case make_case(const std::string& scheme, double drop_path = 0) {
  Case made{small_family(Family::vit, scheme), nullptr, {}};
  made.config.drop_path = drop_path;
  made.model = make_small(made.config, 1, at::kDouble);
  perturb(*made.model);
  made.inputs = family_inputs(made.config, 3, 4);
  made.inputs.images = made.inputs.images.to(at::kDouble);
  return made;
}

TEST(Vit, SiameseIsThePublishedDeitEquation) {
  const Case c = make_case("siamese");
  const WrittenOut w(*c.model, c.config.heads);
  const at::Tensor wanted = w.linear("head", deit_siamese(w, c.config, c.inputs.images, {}));
  expect_same_function(*c.model, c.vit().logits(c.vit().features(c.inputs.images)), wanted, "siamese");
}

TEST(Vit, PreIsTheStockModel) {
  const Case c = make_case("pre");
  const WrittenOut w(*c.model, c.config.heads);
  const at::Tensor wanted = w.linear("head", stock_vit(w, c.config, c.inputs.images));
  expect_same_function(*c.model, c.vit().logits(c.vit().features(c.inputs.images)), wanted, "pre");
}

TEST(Vit, DroppedPathsAddNothingToEitherStream) {
  const Case c = make_case("siamese", 0.7);
  const WrittenOut w(*c.model, c.config.heads);
  std::vector<at::Tensor> gates;
  double zeros = 0;
  for (int64_t site = 0; site < 2 * c.config.blocks; ++site) {
    gates.push_back(kept(c.config, 9, 100, 3, site));
    zeros += (gates.back() == 0).sum().item<double>();
  }
  ASSERT_GT(zeros, 0);
  const at::Tensor logits = w.linear("head", deit_siamese(w, c.config, c.inputs.images, gates));
  const at::Tensor wanted = -at::log_softmax(logits, -1).gather(1, c.inputs.labels.unsqueeze(1)).sum() / 3;
  for (const int64_t recompute : {0, 1}) {
    LossOptions options{.stack = {.recompute_every = recompute}, .normalizer = 3, .training = true, .seed = 9};
    testing::expect_relative(c.model->losses(c.inputs, options).objective, wanted, 1e-12, "dropped");
    options.training = false;
    EXPECT_GT(testing::largest_difference(c.model->losses(c.inputs, options).objective, wanted), 1e-3);
  }
}

// A gate in another type than the streams would be multiplied before the pass, by a node of its own.
TEST(Vit, DropPathIsPartOfTheJunctionInBothPrecisions) {
  ModelConfig config = small_family(Family::vit, "siamese");
  config.drop_path = 0.7;
  const auto model = make_small(config, 1);
  const Inputs inputs = family_inputs(config, 3, 4);
  for (const auto precision : {ops::Precision::float32, ops::Precision::bfloat16}) {
    const ops::PrecisionGuard guard(precision);
    const LossOptions options{.normalizer = 3, .training = true, .seed = 9};
    EXPECT_EQ(nodes_below(model->losses(inputs, options).objective).count("MulBackward0"), 0U);
  }
}

TEST(Vit, SoftTargetsAreAMeanOfLabels) {
  const Case c = make_case("pre");
  Inputs soft = c.inputs;
  soft.targets = at::zeros({3, c.config.classes}, at::kFloat);
  double wanted = 0;
  for (int64_t label = 0; label < c.config.classes; ++label) {
    const double share = (static_cast<double>(label) + 1) / 28;
    soft.targets.select(1, label).fill_(share);
    Inputs hard = c.inputs;
    hard.labels = at::full({3}, label, at::kLong);
    wanted += share * c.model->losses(hard, {}).loss.item<double>();
  }
  EXPECT_NEAR(c.model->losses(soft, {}).loss.item<double>(), wanted, 1e-5);
}

TEST(Vit, DeitTinyHasThePublishedNumberOfParameters) {
  ModelConfig config = small_family(Family::vit, "pre");
  config.width = 192;
  config.heads = config.kv_heads = 3;
  config.blocks = 12;
  config.ffn_width = 768;
  config.image = 224;
  config.patch = 16;
  config.classes = 1000;
  resolve(config, {});
  EXPECT_EQ(config.context, 197);
  EXPECT_EQ(make_model(config, {}, 1, at::kMeta)->parameters().count(), 5717416);  // timm's deit_tiny_patch16_224
}

}  // namespace vit_test
}  // namespace siamese::models

// Dropout in whole models: where it acts, in every family, and what it does not depend on.
#include "tests/models/small_families.h"
#include "tests/models/written_out.h"
#include "tests/support/threads.h"

#include "siamese/ops/operand.h"

namespace siamese::models {
namespace dropout_test {

constexpr uint64_t kSeed = 5;  // of family_options
constexpr DropoutConfig kChances = {.embedding = 0.2, .attention = 0.3, .branch = 0.25};

ModelConfig dropping_family(Family family, const std::string& scheme) {
  ModelConfig config = small_family(family, scheme);
  config.dropout = kChances;
  return config;
}

// 0 or 1 / (1 - chance) for each element, by the documented key.
at::Tensor factors(const std::string& place, double chance, const Inputs& inputs, at::IntArrayRef shape) {
  const nn::Dropout dropout{chance, kSeed ^ hash_text("dropout." + place), inputs.first_position};
  return dropout.dropped(shape, at::kCPU).logical_not().to(at::kDouble) / (1 - chance);
}

// h = D(embedding); h = h + D(A(N(h))); h = h + D(F(N(h))), with dropped weights in A.
at::Tensor written_out(const WrittenOut& w, const ModelConfig& config, const Inputs& inputs) {
  const at::Tensor& images = inputs.images;
  const int64_t batch = images.size(0), tokens = config.context, head = config.width / config.heads;
  const at::Tensor first = w.p("class_token").expand({batch, 1, config.width});
  at::Tensor h = at::cat({first, w.patches(images, config.patch)}, 1) + w.p("positions.weight");
  h = h * factors("embedding.0", kChances.embedding, inputs, h.sizes());
  for (int64_t block = 0; block < config.blocks; ++block) {
    const std::string name = "blocks." + std::to_string(block);
    const auto split = [&](const at::Tensor& t) {
      return t.reshape({batch, tokens, config.heads, head}).transpose(1, 2);
    };
    const auto parts = w.linear(name + ".attention.qkv", w.norm(name + ".attention_junction.norm", h)).chunk(3, -1);
    const at::Tensor scores =
        at::matmul(split(parts[0]), split(parts[1]).transpose(2, 3)) / std::sqrt(static_cast<double>(head));
    const at::Tensor weights = at::softmax(scores, -1) * factors("attention." + std::to_string(2 * block),
                                                                 kChances.attention, inputs, scores.sizes());
    const at::Tensor mixed = at::matmul(weights, split(parts[2])).transpose(1, 2).reshape(h.sizes());
    h = h + w.linear(name + ".attention.out", mixed) *
                factors("branch." + std::to_string(2 * block), kChances.branch, inputs, h.sizes());
    h = h + w.feed_forward(block, w.norm(name + ".ffn_junction.norm", h), "none") *
                factors("branch." + std::to_string(2 * block + 1), kChances.branch, inputs, h.sizes());
  }
  return w.norm("close.norm", h).select(1, 0);
}

TEST(DropoutInModels, EqualsTheEquationWithItsGradients) {
  const ModelConfig config = dropping_family(Family::vit, "pre");
  const auto model = make_small(config, 1, at::kDouble);
  perturb(*model);
  Inputs inputs = family_inputs(config, 3, 4);
  inputs.images = inputs.images.to(at::kDouble);
  const WrittenOut w(*model, config.heads);
  const at::Tensor logits = w.linear("head", written_out(w, config, inputs));
  const at::Tensor wanted = -at::log_softmax(logits, -1).gather(1, inputs.labels.unsqueeze(1)).sum() / 3;
  expect_same_function(*model, model->losses(inputs, family_options(config, 3)).objective, wanted, "vit");
}

void expect_equal(const std::pair<double, std::vector<at::Tensor>>& a,
                  const std::pair<double, std::vector<at::Tensor>>& b, const std::string& what) {
  EXPECT_EQ(a.first, b.first) << what;
  for (size_t i = 0; i < a.second.size(); ++i) testing::expect_same_bits(a.second[i], b.second[i], what);
}

TEST(DropoutInModels, TheSameBitsAtAnyNumberOfThreadsAndRecomputed) {
  for (const Family family : all_families()) {
    for (const std::string scheme : {"siamese", "post", "hc"}) {
      for (const auto precision : {ops::Precision::float32, ops::Precision::bfloat16}) {
        const ops::PrecisionGuard guard(precision);
        const ModelConfig config = dropping_family(family, scheme);
        const auto model = make_small(config);
        perturb(*model);
        const Inputs inputs = family_inputs(config, 3, 2);
        LossOptions options = family_options(config, 3);
        const std::string what = case_name(family, scheme);
        testing::expect_same_at_any_thread_count(what, [&] {
          auto [loss, gradients] = loss_and_gradients(*model, inputs, options);
          for (auto& gradient : gradients) gradient = gradient.clone();
          gradients.push_back(at::scalar_tensor(loss, at::kDouble));
          return gradients;
        });
        const auto kept = loss_and_gradients(*model, inputs, options);
        options.stack.recompute_every = 2;
        expect_equal(loss_and_gradients(*model, inputs, options), kept, what + " recomputed");
        options.stack.recompute_every = 0;
        options.seed += 1;
        EXPECT_NE(loss_and_gradients(*model, inputs, options).first, kept.first) << what << ": the seed decides";
      }
    }
  }
}

// A step of two micro-batches drops what a step of one drops.
TEST(DropoutInModels, MicroBatchesAddUp) {
  for (const Family family : {Family::lm, Family::vit, Family::dit}) {
    const ModelConfig config = dropping_family(family, "siamese");
    const auto model = make_small(config, 1, at::kDouble);
    perturb(*model);
    const Inputs whole = family_inputs(config, 4, 2);
    const LossOptions options = family_options(config, 4);
    double sum = 0;
    for (const int64_t first : {0, 3}) {
      const int64_t rows = first == 0 ? 3 : 1;
      Inputs part = whole;
      for (at::Tensor* const tensor : {&part.tokens, &part.images, &part.labels}) {
        if (tensor->defined()) *tensor = tensor->narrow(0, first, rows);
      }
      part.first_position += static_cast<uint64_t>(first);
      sum += model->losses(part, options).objective.item<double>();
    }
    EXPECT_NEAR(sum, model->losses(whole, options).objective.item<double>(), 1e-12) << case_name(family, "siamese");
  }
}

TEST(DropoutInModels, EvaluationHasNone) {
  for (const Family family : all_families()) {
    const auto dropping = make_small(dropping_family(family, "siamese"));
    const auto without = make_small(small_family(family, "siamese"));
    perturb(*dropping);  // a dit begins with branches that are closed
    perturb(*without);
    const Inputs inputs = family_inputs(small_family(family, "siamese"), 3, 2);
    LossOptions options = family_options(small_family(family, "siamese"), 3);
    const auto loss = [&](const Model& model) { return model.losses(inputs, options).objective.item<double>(); };
    EXPECT_NE(loss(*dropping), loss(*without)) << case_name(family, "siamese");
    options.training = false;
    EXPECT_EQ(loss(*dropping), loss(*without)) << case_name(family, "siamese");
  }
}

}  // namespace dropout_test
}  // namespace siamese::models

// engine.precision=bfloat16 in every family and scheme.
//
// The bound. Rounding a number to bfloat16 changes it by at most 2^-8 of itself, usually half of that. What that does
// to a gradient depends on the tensor: a sum over all tokens of terms that cancel (the scales of hc) loses more than a
// weight matrix. So it is measured, in double: every weight is changed at random by up to 2^-9 of itself, and the
// gradients change by some length. A product rounds three things, its two operands and its result, and so do the two
// products of its backward: the error of a tensor is at most kTimes the largest of kDraws such changes. In exact
// arithmetic some gradients are zero; what float32 leaves of them is allowed, 1e-6 of the longest gradient of the
// model.
#include <optional>
#include <set>
#include <string>

#include "tests/models/small_families.h"
#include "tests/support/threads.h"

#include "siamese/models/recompute.h"
#include "siamese/ops/gradient.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/operand.h"

namespace siamese::models {
namespace precision_test {

using ops::Precision;
using ops::PrecisionGuard;

constexpr double kTimes = 8;
constexpr int kDraws = 4;

double length(const at::Tensor& x) { return x.to(at::kDouble).norm().item<double>(); }

template <class Check>
void for_every_case(const Check& check) {
  for (const Family family : all_families()) {
    for (const auto& scheme : schemes_of(family)) {
      ModelConfig config = small_family(family, scheme);
      config.blocks = 2;
      check(config, case_name(family, scheme));
    }
    for (const ModelConfig& config : value_mixings(family)) {
      const bool depth = config.depth_attention_stride > 0;
      check(config, case_name(family, depth ? "depth attention" : enum_text(config.value_residual).data()));
    }
  }
}

// Of the same numbers in double, each weight changed by at most 2^-9 of itself (draw 0: not at all).
std::unique_ptr<Model> in_double(const Model& model, const ModelConfig& config, int draw) {
  auto exact = make_small(config, 1, at::kDouble);
  const c10::NoGradGuard no_grad;
  for (size_t i = 0; i < model.parameters().list().size(); ++i) {
    at::Tensor to = exact->parameters().list()[i].value;
    to.copy_(model.parameters().list()[i].value);
    if (draw == 0) continue;
    const uint64_t seed = static_cast<uint64_t>(draw) * 1000 + i;
    to.mul_(1 + testing::randn(to.sizes(), seed).clamp(-1, 1) * 0x1p-9);
  }
  return exact;
}

// The exact gradients, and for each tensor how much its length may differ from them.
struct Expected {
  double loss = 0;
  std::vector<at::Tensor> gradients;
  std::vector<double> bounds;
};

Expected expected(const Model& model, const ModelConfig& config, const Inputs& inputs, const LossOptions& options) {
  Expected result;
  const auto exact = in_double(model, config, 0);
  std::tie(result.loss, result.gradients) = loss_and_gradients(*exact, inputs, options);
  double longest = 0;
  for (const auto& gradient : result.gradients) longest = std::max(longest, length(gradient));
  result.bounds.assign(result.gradients.size(), 0);
  for (int draw = 1; draw <= kDraws; ++draw) {
    const auto changed = in_double(model, config, draw);
    const auto gradients = loss_and_gradients(*changed, inputs, options).second;
    for (size_t i = 0; i < gradients.size(); ++i) {
      result.bounds[i] = std::max(result.bounds[i], kTimes * length(gradients[i] - result.gradients[i]));
    }
  }
  for (double& bound : result.bounds) bound += 1e-6 * longest;
  return result;
}

TEST(BfloatPrecision, GradientsAreThoseOfDoubleWithinTheRoundingOfProducts) {
  double worst = 0;
  for_every_case([&](const ModelConfig& given, const std::string& name) {
    ModelConfig config = given;
    config.experts_per_token = config.experts;  // a token that falls to another expert is not off by a rounding
    const auto model = make_small(config);
    perturb(*model);
    const Inputs inputs = family_inputs(config, 3, 2);
    const LossOptions options = family_options(config, 3);
    const Expected want = expected(*model, config, inputs, options);
    for (const auto mode : {ops::Mode::automatic, ops::Mode::plain}) {
      const PrecisionGuard precision(Precision::bfloat16);
      const ops::ModeGuard guard(mode);
      const std::string what = name + (mode == ops::Mode::plain ? " plain " : " fused ");
      const auto rounded = loss_and_gradients(*model, inputs, options);
      EXPECT_NEAR(rounded.first, want.loss, 0.01 * std::abs(want.loss)) << what;
      double errors = 0, lengths = 0;
      for (size_t i = 0; i < want.gradients.size(); ++i) {
        const auto& parameter = model->parameters().list()[i];
        ASSERT_EQ(rounded.second[i].scalar_type(), at::kFloat) << what << parameter.name;
        const double error = length(rounded.second[i].to(at::kDouble) - want.gradients[i]);
        errors += error * error;
        lengths += std::pow(length(want.gradients[i]), 2);
        worst = std::max(worst, error / want.bounds[i]);
        EXPECT_LE(error, want.bounds[i]) << what << parameter.name << " of length " << length(want.gradients[i]);
      }
      // Not of the loss, which a rounding may leave where it was; float32 would be off by about 1e-6.
      EXPECT_GT(std::sqrt(errors), 1e-4 * std::sqrt(lengths)) << what << ": nothing was rounded";
    }
  });
  RecordProperty("worst", std::to_string(worst));
}

// What the trainer does: in place, weights rounded once a step, with and without recomputation, with a recorder, which
// takes floats where a pass without it has bfloat16; and weights rounded at every use.
class Silent : public residual::Recorder {
 public:
  void stream(const residual::Site&, const std::string&, const at::Tensor& before, const at::Tensor&) override {
    EXPECT_EQ(before.scalar_type(), at::kFloat);
  }
  void branch(const residual::Site&, const at::Tensor& input, const at::Tensor& output) override {
    EXPECT_EQ(input.scalar_type(), at::kFloat);
    EXPECT_EQ(output.scalar_type(), at::kFloat);
  }
};

TEST(BfloatPrecision, InPlaceRecomputedAndRecordedGiveTheSameBits) {
  const PrecisionGuard precision(Precision::bfloat16);
  for_every_case([](const ModelConfig& config, const std::string& name) {
    const auto model = make_small(config);
    perturb(*model);
    const Inputs inputs = family_inputs(config, 3, 2);
    LossOptions options = family_options(config, 3);
    const nn::GradientBuffer buffer(model->parameters());
    std::vector<at::Tensor> first;
    double loss = 0;
    Silent recorder;
    struct Way {
      int recompute;
      bool recorded, rounds_once;
    };
    for (const Way& way : {Way{0, false, true}, {1, false, true}, {0, true, true}, {0, false, false}}) {
      options.stack.recompute_every = way.recompute;
      options.stack.recorder = way.recorded ? &recorder : nullptr;
      buffer.zero();
      const ops::GradientsInPlace in_place;
      std::optional<ops::RoundWeightsOnce> once;
      if (way.rounds_once) once.emplace();
      const at::Tensor objective = model->losses(inputs, options).objective;
      objective.backward();
      const bool is_first = first.empty();
      if (is_first) loss = objective.item<double>();
      EXPECT_EQ(objective.item<double>(), loss) << name;
      for (size_t i = 0; i < model->parameters().list().size(); ++i) {
        const auto& parameter = model->parameters().list()[i];
        if (is_first) first.push_back(parameter.value.grad().clone());
        testing::expect_same_bits(parameter.value.grad(), first[i], name + " " + parameter.name);
      }
    }
  });
}

// The pass that makes a branch's input rounds it. Only where a stream is the input as it stands, it is a float and is
// rounded in front of the products.
TEST(BfloatPrecision, ReadsRoundTheBranchInput) {
  const PrecisionGuard precision(Precision::bfloat16);
  std::set<std::string> with_floats;
  for (const std::string& scheme : testing::all_schemes()) {
    const nn::Parameters parameters(5, at::kFloat);
    const Stack stack(nn::Scope(parameters), scheme, {.width = 8, .blocks = 3, .norm = {}});
    const auto sublayer = [&](const residual::Site&, const at::Tensor& x, const std::vector<at::Tensor>&,
                              const std::vector<at::Tensor>&) {
      if (x.scalar_type() != at::kBFloat16) with_floats.insert(scheme.substr(0, scheme.find('(')));
      return SublayerOutput{.branch = {at::tanh(x), {}}};
    };
    stack(testing::randn({2, 3, 8}, 1, at::kFloat), sublayer);
  }
  EXPECT_EQ(with_floats, (std::set<std::string>{"deepnorm", "hybrid", "mixln", "post", "resi_dual", "span"}));
}

void expect_same_at_any_thread_count(const ModelConfig& config, int64_t batch, const std::string& name) {
  const auto model = make_small(config);
  perturb(*model);
  const Inputs inputs = family_inputs(config, batch, 2);
  for (const auto mode : {ops::Mode::automatic, ops::Mode::plain}) {
    const ops::ModeGuard guard(mode);
    const std::string what = name + (mode == ops::Mode::plain ? " plain " : " fused ") + std::to_string(batch);
    testing::expect_same_at_any_thread_count(what, [&] {
      const auto [loss, gradients] = loss_and_gradients(*model, inputs, family_options(config, batch));
      std::vector<at::Tensor> made = {at::scalar_tensor(loss, at::kDouble)};
      for (const auto& gradient : gradients) made.push_back(gradient.clone());
      return made;
    });
  }
}

// Large enough for the library's own products.
TEST(BfloatPrecision, TheSameBitsAtAnyThreadCount) {
  const PrecisionGuard precision(Precision::bfloat16);
  for (const Family family : all_families()) {
    for (const auto& scheme : {"siamese", "hc"}) {
      ModelConfig config = small_family(family, scheme);
      config.blocks = 2;
      config.width = 128;
      config.ffn_width = 288;
      resolve(config, {});
      for (const int64_t batch : {1, 7, 64}) expect_same_at_any_thread_count(config, batch, case_name(family, scheme));
    }
  }
}

TEST(BfloatPrecision, EverySchemeGivesTheSameBitsAtAnyThreadCount) {
  const PrecisionGuard precision(Precision::bfloat16);
  for_every_case(
      [](const ModelConfig& config, const std::string& name) { expect_same_at_any_thread_count(config, 5, name); });
}

}  // namespace precision_test
}  // namespace siamese::models

// Documents packed into one batch equal each document by itself: the loss and the gradient of every parameter.
#include <cmath>

#include "tests/models/small_lm.h"
#include "tests/support/errors.h"
#include "tests/support/threads.h"

#include "siamese/nn/pieces.h"

namespace siamese::models {
namespace {

using testing::expect_relative;

constexpr int64_t kContext = 12;
// Rows of one, several and all borders; two neighbours of equal length; a border behind the last token read.
const std::vector<std::vector<int64_t>> kBorders = {
    {}, {}, {5}, {3, 6, 7}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {12}, {4, 8, 12}};

ModelConfig config_of(const std::string& scheme, Positions positions) {
  ModelConfig config = small_config(scheme);
  config.context = kContext;
  config.positions = positions;
  return config;
}

Inputs packed_inputs(const ModelConfig& config) {
  Inputs inputs = random_inputs(config, static_cast<int64_t>(kBorders.size()), 8);
  inputs.borders = kBorders;
  inputs.weights = at::ones({inputs.tokens.size(0), kContext});
  for (size_t row = 0; row < kBorders.size(); ++row) {
    for (const int64_t border : kBorders[row]) inputs.weights[static_cast<int64_t>(row)][border - 1] = 0;
  }
  return inputs;
}

// Every piece alone in a batch of one row. Of a piece of one token there is nothing to predict.
std::pair<double, std::vector<at::Tensor>> one_by_one(const Model& model, const Inputs& packed) {
  double loss = 0;
  std::vector<at::Tensor> sums;
  for (const auto& parameter : model.parameters().list()) sums.push_back(at::zeros_like(parameter.value));
  for (size_t row = 0; row < kBorders.size(); ++row) {
    std::vector<int64_t> edges = kBorders[row];
    edges.insert(edges.begin(), 0);
    edges.push_back(kContext + 1);
    for (size_t i = 0; i + 1 < edges.size(); ++i) {
      const int64_t length = edges[i + 1] - edges[i];
      if (length < 2) continue;
      Inputs alone;
      alone.tokens = packed.tokens.narrow(0, static_cast<int64_t>(row), 1).narrow(1, edges[i], length).clone();
      const auto [own, gradients] = loss_and_gradients(model, alone, {});
      loss += own;
      for (size_t p = 0; p < sums.size(); ++p) {
        if (gradients[p].defined()) sums[p] += gradients[p];
      }
    }
  }
  return {loss, sums};
}

void expect_equal(const std::string& what, const Model& model, const Inputs& packed, double tolerance) {
  const auto [loss, gradients] = loss_and_gradients(model, packed, {});
  std::vector<at::Tensor> got;
  for (const auto& gradient : gradients) got.push_back(gradient.clone());
  const auto [expected, sums] = one_by_one(model, packed);
  EXPECT_NEAR(loss, expected, tolerance * std::abs(expected)) << what;
  const auto& parameters = model.parameters().list();
  for (size_t p = 0; p < sums.size(); ++p) {
    expect_relative(got[p], sums[p], tolerance, what + ", " + parameters[p].name, testing::largest(sums[p]));
  }
}

TEST(Packed, EqualsEveryDocumentByItself) {
  for (const char* const scheme : {"siamese", "pre", "hybrid"}) {
    for (const Positions positions : {Positions::rope, Positions::learned}) {
      const ModelConfig config = config_of(scheme, positions);
      const std::string what = std::string(scheme) + (positions == Positions::rope ? ", rope" : ", learned");
      const auto exact = make_lm(config, 3, at::kDouble);
      perturb(*exact);
      Inputs inputs = packed_inputs(config);
      inputs.weights = inputs.weights.to(at::kDouble);
      expect_equal(what, *exact, inputs, 1e-11);
      expect_equal(what + ", fused", *make_lm(config, 3), packed_inputs(config), 3e-5);
    }
  }
}

TEST(Packed, MattersAndIsTheSameRecomputed) {
  const ModelConfig config = config_of("siamese", Positions::rope);
  const auto model = make_lm(config, 3);
  const Inputs packed = packed_inputs(config);
  Inputs stream = packed;
  stream.borders = {};
  const auto [loss, gradients] = loss_and_gradients(*model, packed, {});
  std::vector<at::Tensor> kept;
  for (const auto& gradient : gradients) kept.push_back(gradient.clone());
  EXPECT_GT(std::abs(loss - loss_and_gradients(*model, stream, {}).first), 1e-3);
  LossOptions again;
  again.stack.recompute_every = 1;
  const auto [same, recomputed] = loss_and_gradients(*model, packed, again);
  EXPECT_EQ(loss, same);
  for (size_t p = 0; p < kept.size(); ++p) testing::expect_same_bits(recomputed[p], kept[p], "recomputed");
}

TEST(Packed, SameBitsAtAnyThreadCount) {
  const ModelConfig config = config_of("siamese", Positions::rope);
  const auto model = make_lm(config, 3);
  const Inputs packed = packed_inputs(config);
  testing::expect_same_at_any_thread_count("packed", [&] {
    std::vector<at::Tensor> made;
    const auto [loss, gradients] = loss_and_gradients(*model, packed, {});
    for (const auto& gradient : gradients) made.push_back(gradient.clone());
    made.push_back(at::scalar_tensor(loss, at::kDouble));
    return made;
  });
}

TEST(Packed, WrongBordersAreRefused) {
  const ModelConfig config = config_of("siamese", Positions::rope);
  const auto model = make_lm(config, 3);
  Inputs inputs = random_inputs(config, 2, 8);
  const auto refused = [&](std::vector<std::vector<int64_t>> borders, const std::string& words) {
    inputs.borders = std::move(borders);
    testing::expect_error<UsageError>([&] { model->losses(inputs, {}); }, {words});
  };
  refused({{3}}, "borders: expected of 2 samples");
  refused({{3}, {0}}, "borders of documents: expected ascending from 1 to 12");
  refused({{3}, {5, 5}}, "ascending");
  refused({{3}, {13}}, "ascending");
}

}  // namespace
}  // namespace siamese::models

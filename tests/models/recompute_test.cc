#include "siamese/models/recompute.h"

#include "tests/models/small_lm.h"

namespace siamese::models {
namespace {

TEST(Recompute, GivesTheSameBitsForEverySchemeAndSegmentLength) {
  for (const auto& scheme : testing::all_schemes()) {
    const ModelConfig config = small_config(scheme);
    const auto model = make_lm(config);
    const Inputs inputs = random_inputs(config, 3, 2);
    const auto kept = loss_and_gradients(*model, inputs, {.normalizer = 36, .z_loss = 1e-3});
    for (const int64_t every : {1, 2, 3, 7}) {
      const auto again =
          loss_and_gradients(*model, inputs, {.stack = {.recompute_every = every}, .normalizer = 36, .z_loss = 1e-3});
      EXPECT_EQ(again.first, kept.first) << scheme;
      for (size_t i = 0; i < kept.second.size(); ++i) {
        testing::expect_same_bits(again.second[i], kept.second[i],
                                  std::string(scheme) + " " + model->parameters().list()[i].name);
      }
    }
  }
}

TEST(Recompute, TheSegmentRunsAgainInBackwardOnly) {
  int runs = 0;
  const at::Tensor x = testing::leaf(testing::randn({3}, 1));
  const at::Tensor w = testing::leaf(testing::randn({3}, 2));
  const auto outputs = recompute(
      [&](const std::vector<at::Tensor>& in) {
        ++runs;
        return std::vector<at::Tensor>{in[0] * w, in[0].sin()};
      },
      {x});
  EXPECT_EQ(runs, 1);
  (outputs[0].sum() + outputs[1].sum()).backward();
  EXPECT_EQ(runs, 2);
  testing::expect_close(x.grad(), w + x.cos(), 1e-15, "input gradient");
  testing::expect_close(w.grad(), x, 1e-15, "parameter gradient");
}

TEST(Recompute, ParametersLearnWhenNoInputDoes) {
  const at::Tensor w = testing::leaf(testing::randn({3}, 2));
  const auto outputs = recompute([&](const std::vector<at::Tensor>& in) { return std::vector<at::Tensor>{in[0] * w}; },
                                 {testing::randn({3}, 1)});
  outputs[0].sum().backward();
  testing::expect_close(w.grad(), testing::randn({3}, 1), 1e-15, "parameter gradient");
}

class CountStreams : public residual::Recorder {
 public:
  void stream(const residual::Site&, const std::string&, const at::Tensor&, const at::Tensor&) override { ++streams; }
  void branch(const residual::Site&, const at::Tensor&, const at::Tensor&) override { ++branches; }
  int streams = 0;
  int branches = 0;
};

TEST(Recompute, RecordsTheFirstPassOnly) {
  const ModelConfig config = small_config("siamese");
  const auto model = make_lm(config);
  CountStreams count;
  loss_and_gradients(*model, random_inputs(config, 2, 2), {.stack = {.recompute_every = 1, .recorder = &count}});
  EXPECT_EQ(count.streams, 12);
  EXPECT_EQ(count.branches, 6);
}

}  // namespace
}  // namespace siamese::models

#include "siamese/eval/held_out.h"

#include "tests/models/small_lm.h"
#include "tests/support/thread_group.h"

#include "siamese/data/batches.h"
#include "siamese/eval/inputs.h"

namespace siamese::eval {
namespace {

// Three samples; the last has no counted target.
class ThreeSamples : public data::Dataset {
 public:
  int64_t vocab() const override { return 19; }
  int64_t samples() const override { return 3; }
  void sample(uint64_t position, std::span<int64_t> tokens, std::span<float> weights) const override {
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int64_t>((position * 7 + i * 3) % 19);
    for (auto& weight : weights) weight = position < 2 ? 1.0F : 0.0F;
  }
  std::string describe() const override { return "three samples"; }
};

TEST(HeldOut, IsTheMeanOverCountedTargetsOfTheWholeSmallSet) {
  const auto model = models::make_lm(models::small_config("siamese"));
  const auto batches = data::token_batches(std::make_unique<ThreeSamples>(), 12);
  const HeldOut result = held_out_loss(*model, *batches, 2, 200);
  EXPECT_EQ(result.targets, 24);
  double sum = 0;
  for (uint64_t position = 0; position < 2; ++position) {
    const data::Batch batch = batches->batch(position, 1);
    sum += model->losses(to_inputs(batch), {}).loss.item<double>();
  }
  EXPECT_NEAR(result.loss, sum / 24, 1e-6);
  EXPECT_NEAR(result.perplexity, std::exp(sum / 24), 1e-4);
}

// The same bits as one process gets, also with more ranks than passes.
TEST(HeldOut, RanksShareThePasses) {
  const auto model = models::make_lm(models::small_config("siamese"));
  const auto batches = data::token_batches(std::make_unique<ThreeSamples>(), 12);
  const HeldOut alone = held_out_loss(*model, *batches, 1, 200);
  for (const int ranks : {2, 3, 5}) {
    std::vector<HeldOut> all(static_cast<size_t>(ranks));
    comm::ThreadGroup::run(ranks, [&](comm::Group& group) {
      all[static_cast<size_t>(group.rank())] = held_out_loss(*model, *batches, 1, 200, nullptr, &group);
    });
    for (const HeldOut& one : all) {
      EXPECT_EQ(one.loss, alone.loss) << ranks;
      EXPECT_EQ(one.targets, alone.targets);
    }
  }
}

}  // namespace
}  // namespace siamese::eval

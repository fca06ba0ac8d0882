// Gradients that go out while backward still runs: the same bits as those that go out after it.
#include "siamese/train/gradient_exchange.h"

#include <map>
#include <mutex>

#include "tests/support/tensors.h"
#include "tests/support/thread_group.h"
#include "tests/train/tiny_run.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/models/registry.h"
#include "siamese/train/trainer.h"

namespace siamese::train {
namespace gradient_exchange_test {

struct Trained {
  std::vector<at::Tensor> weights;
  std::vector<double> numbers;  // losses and gradient norms of the steps
  bool hid = false;             // something was exchanged during backward
};

// Some steps of so many ranks; of every rank what it ends with.
std::vector<Trained> train(const RunConfig& config, int ranks, bool overlaps) {
  std::vector<Trained> all(static_cast<size_t>(ranks));
  comm::ThreadGroup::run(
      ranks,
      [&](comm::Group& group) {
        Trained& mine = all[static_cast<size_t>(group.rank())];
        Trainer trainer(config, false, &group);
        for (int i = 0; i < 4; ++i) {
          const StepMetrics metrics = trainer.step();
          mine.numbers.insert(mine.numbers.end(), {metrics.loss, metrics.grad_norm});
          const GradientExchange::Times times = trainer.exchange_times();
          EXPECT_GE(times.exchanging, times.waited);
          mine.hid = mine.hid || times.exchanging > times.waited;
        }
        for (const auto& parameter : trainer.model().parameters().list()) {
          mine.weights.push_back(parameter.value.detach().clone());
        }
      },
      overlaps);
  return all;
}

void expect_same_bits_with_overlap(const RunConfig& config, int ranks) {
  const std::vector<Trained> after = train(config, ranks, false), during = train(config, ranks, true);
  EXPECT_FALSE(after.front().hid);
  for (size_t rank = 0; rank < after.size(); ++rank) {
    EXPECT_EQ(during[rank].numbers, after[rank].numbers) << "rank " << rank;
    for (size_t i = 0; i < after[rank].weights.size(); ++i) {
      EXPECT_TRUE(at::equal(during[rank].weights[i], after.front().weights[i])) << "rank " << rank << ", tensor " << i;
    }
  }
}

class Overlap : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, Overlap, ::testing::Values("lm", "moe", "vit", "dit"));

TEST_P(Overlap, ChangesNoBit) {
  at::set_num_threads(1);
  for (const char* const shard : {"none", "optimizer"}) {
    for (const char* const recompute : {"0", "1", "2"}) {
      SCOPED_TRACE(std::string(shard) + ", recompute " + recompute);
      const std::vector<std::string> overrides = {std::string("engine.shard=") + shard,
                                                  std::string("engine.recompute=") + recompute, "model.blocks=3",
                                                  "train.micro_batch=1", "train.record_every=3"};
      const RunConfig config = GetParam() == "lm" ? tiny_config(overrides) : tiny_family(GetParam(), overrides);
      expect_same_bits_with_overlap(config, 2);
    }
  }
}

TEST(GradientExchange, ChangesNoBitOfMuonOrMoreRanks) {
  at::set_num_threads(1);
  for (const char* const shard : {"none", "optimizer"}) {
    const std::string divided = std::string("engine.shard=") + shard;
    expect_same_bits_with_overlap(tiny_config({divided, "optim.name=muon", "train.micro_batch=1"}), 3);
    expect_same_bits_with_overlap(tiny_config({divided, "train.micro_batch=1"}), 4);
  }
}

// Frozen blocks have no gradient, and nothing passes them.
TEST(GradientExchange, ChangesNoBitOfWhatIsPartlyFrozen) {
  at::set_num_threads(1);
  expect_same_bits_with_overlap(
      tiny_config({"train.micro_batch=1", "model.blocks=4", "optim.freeze=[embedding, blocks.0.*, blocks.1.*]"}), 2);
}

TEST(RowSegments, AreTheBlocksAndWhatIsBetween) {
  const RunConfig config = tiny_config({"model.blocks=3"});
  const auto model = models::make_model(config.model, config.init, 1);
  const nn::GradientBuffer gradients(model->parameters());
  const auto segments = row_segments(gradients, model->blocks_of_parameters(), 2);
  int64_t next = 0;
  std::map<int64_t, int64_t> sizes;
  for (const RowSegment& segment : segments) {
    EXPECT_EQ(segment.begin, next);
    next = segment.end;
    sizes[segment.block] += segment.end - segment.begin;
  }
  EXPECT_EQ(next, gradients.whole().numel());
  for (const int64_t block : {0, 1, 2}) EXPECT_GE(sizes[block], 1024) << block;
  EXPECT_EQ(sizes[0], sizes[2]);
  // Of many ranks none would have anything to add up.
  const auto few = row_segments(gradients, model->blocks_of_parameters(), 1 << 20);
  ASSERT_EQ(few.size(), 1U);
  EXPECT_EQ(few[0].block, RowSegment::kNoBlock);
}

}  // namespace gradient_exchange_test
}  // namespace siamese::train

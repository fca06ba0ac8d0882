#include "siamese/eval/difference.h"

#include <cmath>

#include "tests/models/small_families.h"

#include "siamese/base/check.h"
#include "siamese/data/batches.h"
#include "siamese/data/random_tokens.h"
#include "siamese/eval/held_out.h"
#include "siamese/eval/inputs.h"

namespace siamese::eval {
namespace {

TEST(Difference, IsTheLargestOverEveryBatchAndZeroForTheSameModel) {
  const auto config = models::small_config("pre");
  const auto before = models::make_lm(config, 1);
  const auto after = models::make_lm(config, 2);
  const auto dataset = data::random_tokens(config.vocab, 4);
  const auto batches = data::token_batches(data::random_tokens(config.vocab, 4), config.context);
  EXPECT_EQ(difference(*before, *before, *batches, 2, 5).max_logit, 0);
  // Whole at once by hand; five rows in parts of two must see the same.
  at::Tensor tokens = at::empty({5, config.context + 1}, at::kLong);
  std::vector<float> weights(static_cast<size_t>(config.context));
  for (int64_t row = 0; row < 5; ++row) {
    dataset->sample(static_cast<uint64_t>(row),
                    {tokens[row].mutable_data_ptr<int64_t>(), static_cast<size_t>(config.context + 1)}, weights);
  }
  const c10::NoGradGuard no_grad;
  const at::Tensor input = tokens.narrow(1, 0, config.context);
  const double expected =
      testing::largest_difference(before->logits(before->hidden(input)), after->logits(after->hidden(input)));
  const Difference found = difference(*before, *after, *batches, 2, 5);
  EXPECT_NEAR(found.max_logit, expected, 1e-5);
  EXPECT_EQ(found.loss_before, held_out_loss(*before, *batches, 2, 5).loss);
  EXPECT_EQ(found.loss_after, held_out_loss(*after, *batches, 2, 5).loss);
}

TEST(Difference, OfVitsIsThatOfTheirLogits) {
  const auto config = models::small_family(models::Family::vit, "pre");
  const auto before = models::make_small(config, 1);
  const auto after = models::make_small(config, 2);
  data::DataConfig random;
  random.source = data::Source::random;
  const data::SampleShape shape{.image = config.image, .channels = config.channels, .classes = config.classes};
  const auto batches = data::open_batches(random, data::Split::test, shape, 3);
  EXPECT_EQ(difference(*before, *before, *batches, 2, 5).max_logit, 0);
  const c10::NoGradGuard no_grad;
  const models::Inputs whole = to_inputs(batches->batch(0, 5));
  const double expected = testing::largest_difference(before->pass(whole, {}).output, after->pass(whole, {}).output);
  const Difference found = difference(*before, *after, *batches, 2, 5);
  EXPECT_NEAR(found.max_logit, expected, 1e-5);
  EXPECT_GT(expected, 0.1);
  EXPECT_EQ(found.loss_after, held_out_loss(*after, *batches, 2, 5).loss);
  const auto dit = models::make_small(models::small_family(models::Family::dit, "pre"));
  EXPECT_THROW(difference(*dit, *dit, *batches, 2, 4), UsageError);
}

TEST(Difference, DoesNotHideNan) {
  const auto config = models::small_config("pre");
  const auto before = models::make_lm(config, 1);
  const auto after = models::make_lm(config, 1);
  const c10::NoGradGuard no_grad;
  after->parameters().find("close.norm.weight")->value.fill_(std::nan(""));
  const auto batches = data::token_batches(data::random_tokens(config.vocab, 4), config.context);
  EXPECT_TRUE(std::isnan(difference(*before, *after, *batches, 2, 4).max_logit));
}

}  // namespace
}  // namespace siamese::eval

#include "siamese/train/spike_guard.h"

#include <cmath>

#include "tests/support/tensors.h"
#include "tests/train/tiny_run.h"

#include "siamese/base/random.h"
#include "siamese/train/trainer.h"

namespace siamese::train {
namespace spike_guard_test {

namespace fs = std::filesystem;

// The rule written out over the whole past, without a window that moves.
std::optional<Outlier> written_out(const std::vector<std::pair<double, double>>& past, double loss, double norm,
                                   double z, size_t size) {
  const size_t count = std::min(past.size(), size);
  if (count < 8 || 2 * count < size) return std::nullopt;
  double scores[2] = {0, 0};
  for (const int which : {0, 1}) {
    const double x = which == 0 ? loss : norm;
    long double sum = 0, squares = 0;
    for (size_t i = past.size() - count; i < past.size(); ++i) sum += which == 0 ? past[i].first : past[i].second;
    const long double mean = sum / count;
    for (size_t i = past.size() - count; i < past.size(); ++i) {
      const long double off = (which == 0 ? past[i].first : past[i].second) - mean;
      squares += off * off;
    }
    const long double deviation = std::max(std::sqrt(squares / count), 1e-6L * std::abs(mean));
    scores[which] = static_cast<double>((x - mean) / deviation);
  }
  if (scores[0] > z) return Outlier{SkipReason::loss, scores[0]};
  if (scores[1] > z) return Outlier{SkipReason::grad_norm, scores[1]};
  return std::nullopt;
}

TEST(SpikeGuard, FollowsTheRuleWrittenOut) {
  for (const int64_t size : {8, 9, 17, 64}) {
    SpikeWindow window;
    std::vector<std::pair<double, double>> past;
    int by_loss = 0, by_norm = 0;
    for (uint64_t step = 0; step < 400; ++step) {
      const double loss = 3 + random_uniform(1, step, 0), norm = 1 + random_uniform(1, step, 1);
      const auto expected = written_out(past, loss, norm, 1.6, static_cast<size_t>(size));
      const auto got = judge_step(window, loss, norm, 1.6, size);
      ASSERT_EQ(got.has_value(), expected.has_value()) << "window " << size << " step " << step;
      if (got) {
        EXPECT_EQ(got->reason, expected->reason);
        EXPECT_NEAR(got->z, expected->z, 1e-9);
        (got->reason == SkipReason::loss ? by_loss : by_norm) += 1;
      }
      past.emplace_back(loss, norm);
      ASSERT_EQ(window.loss.size(), std::min(past.size(), static_cast<size_t>(size)));
    }
    EXPECT_GT(by_loss, 3);
    EXPECT_GT(by_norm, 3);
  }
}

TEST(SpikeGuard, SaysNothingBeforeHalfTheWindow) {
  SpikeWindow window;
  for (int step = 0; step < 8; ++step) {
    EXPECT_FALSE(judge_step(window, step == 7 ? 1e9 : 2 + 0.1 * (step % 2), 1, 3, 8)) << step;  // eight at least
  }
  EXPECT_TRUE(judge_step(window, 1e12, 1, 2, 8));
  window = {};
  for (int step = 0; step < 20; ++step) judge_step(window, 2 + 0.1 * (step % 2), 1, 3, 41);
  EXPECT_FALSE(judge_step(window, 9, 1, 3, 41));  // 20 of 41 are less than half
  EXPECT_TRUE(judge_step(window, 90, 1, 3, 41));
}

// A loss that has stopped moving: the floor of the deviation is a millionth of the mean.
TEST(SpikeGuard, ARoundingDifferenceIsNoOutlier) {
  SpikeWindow window;
  for (int step = 0; step < 16; ++step) EXPECT_FALSE(judge_step(window, 2, 0, 5, 16));
  EXPECT_FALSE(judge_step(window, std::nextafter(2, 3), 0, 5, 16));
  window = {std::vector<double>(16, 2), std::vector<double>(16, 0)};
  EXPECT_FALSE(judge_step(window, 2 + 9e-6, 0, 5, 16));
  window = {std::vector<double>(16, 2), std::vector<double>(16, 0)};
  EXPECT_TRUE(judge_step(window, 2 + 11e-6, 0, 5, 16));
  window = {std::vector<double>(16, 2), std::vector<double>(16, 0)};
  EXPECT_FALSE(judge_step(window, 2, 1e-30, 5, 16));  // of nothing but zeros nothing can be said
}

TEST(SpikeGuard, OnlyUpwardsAndNotForEver) {
  SpikeWindow window;
  for (int step = 0; step < 16; ++step) judge_step(window, 2 + 0.01 * (step % 2), 1, 4, 16);
  EXPECT_FALSE(judge_step(window, 0.001, 1, 4, 16));
  int skipped = 0;
  for (int step = 0; step < 16; ++step) judge_step(window, 2 + 0.01 * (step % 2), 1, 4, 16);
  while (judge_step(window, 5, 1, 4, 16)) ASSERT_LT(++skipped, 8);
  EXPECT_GE(skipped, 1);
}

TEST(SpikeGuard, ASkippedStepTouchesNothingAndDoesNotCountAsDiverging) {
  // From step 9 on every step that is above the mean at all is skipped.
  Trainer trainer(tiny_config(
      {"train.skip_outliers=1e-9", "train.skip_window=8", "train.ema=0.9", "train.max_skips=1", "train.steps=100"}));
  int skipped = 0;
  for (int step = 1; step <= 40; ++step) {
    const int64_t applied = trainer.state().applied_steps;
    std::vector<at::Tensor> before;
    for (const auto& parameter : trainer.model().parameters().list())
      before.push_back(parameter.value.detach().clone());
    const StepMetrics metrics = trainer.step();
    EXPECT_FALSE(metrics.skipped && step <= 8);
    EXPECT_EQ(trainer.state().skips_in_a_row, 0);
    if (!metrics.skipped) continue;
    ++skipped;
    EXPECT_NE(metrics.skip_reason, SkipReason::non_finite);
    EXPECT_GT(metrics.skip_z, 0);
    EXPECT_EQ(trainer.state().applied_steps, applied);
    for (size_t i = 0; i < before.size(); ++i) {
      testing::expect_same_bits(trainer.model().parameters().list()[i].value, before[i], "weights");
    }
    const std::string line = to_json(metrics);
    EXPECT_NE(line.find("\"skipped\":true,\"skip_reason\":\""), std::string::npos) << line;
    EXPECT_NE(line.find("\"skip_z\":"), std::string::npos) << line;
  }
  EXPECT_GT(skipped, 3);
  EXPECT_EQ(trainer.state().skipped_steps, skipped);
}

// With a limit that nothing reaches, a guarded run is the run without a guard.
TEST(SpikeGuard, OffOrUnreachedChangesNoWeight) {
  const TemporaryFolder folder("guard");
  start_run(tiny_config(), folder / "off", false, "", {});
  start_run(tiny_config({"train.skip_outliers=1e6"}), folder / "on", false, "", {});
  EXPECT_EQ(io::read_file(folder / "off" / "step12" / "model.safetensors"),
            io::read_file(folder / "on" / "step12" / "model.safetensors"));
  EXPECT_EQ(io::read_file(folder / "off" / "step12" / "trainer.json").find("\"window\""), std::string::npos);
  EXPECT_NE(io::read_file(folder / "on" / "step12" / "trainer.json").find("\"window\""), std::string::npos);
}

TEST(SpikeGuard, TheWindowReadsBackToTheSameBits) {
  const TemporaryFolder folder("window");
  TrainerState state;
  for (uint64_t i = 0; i < 50; ++i) {
    state.window.loss.push_back(std::exp(40 * random_uniform(2, i, 0) - 20));
    state.window.grad_norm.push_back(std::exp(1400 * random_uniform(2, i, 1) - 700));
  }
  state.step = 1;
  state.unrecorded = "{\"step\":1}";
  io::write_file_atomic(folder / "trainer.json", to_json(state, {}));
  const TrainerState again = read_trainer_state(folder / "trainer.json");
  EXPECT_EQ(again.window.loss, state.window.loss);
  EXPECT_EQ(again.window.grad_norm, state.window.grad_norm);
  EXPECT_EQ(again.unrecorded, state.unrecorded);
}

}  // namespace spike_guard_test
}  // namespace siamese::train

// Every scheme learns, and what it learnt survives its checkpoint.
#include "tests/support/schemes.h"

#include "tests/support/tensors.h"
#include "tests/train/tiny_run.h"

#include "siamese/formats/convert.h"
#include "siamese/models/weights.h"
#include "siamese/train/checkpoint.h"

namespace siamese::train {
namespace {

double mean_loss(const std::vector<nlohmann::json>& lines, size_t first, size_t last) {
  double sum = 0;
  for (size_t i = first; i < last; ++i) sum += lines[i].at("loss").get<double>();
  return sum / static_cast<double>(last - first);
}

TEST(Schemes, EachLearnsArithmeticInFiftySteps) {
  const TemporaryFolder folder("schemes");
  for (const auto& scheme : testing::causal_schemes()) {
    const RunConfig config =
        tiny_config({"model.residual=" + scheme, "train.steps=50", "train.batch=8", "train.eval_every=0",
                     "train.checkpoint_every=0", "train.record_every=25", "optim.lr=5e-3", "optim.schedule.warmup=5"});
    const auto run = folder / "run";
    start_run(config, run, true, "", {});
    const auto lines = timeless_lines(run / "metrics.jsonl");
    ASSERT_EQ(lines.size(), 50U) << scheme;
    for (const auto& line : lines) ASSERT_TRUE(line.at("loss").is_number()) << scheme;  // null is not finite
    EXPECT_LT(mean_loss(lines, 40, 50), mean_loss(lines, 0, 5) - 0.3) << scheme;

    // Loaded and saved again, the weights are the same bytes.
    const LoadedModel loaded = load_model(run);
    EXPECT_EQ(loaded.config.model.residual, config.model.residual);
    models::save_tensors(folder / "again.safetensors", models::named_values(loaded.model->parameters()),
                         formats::metadata_of(formats::Layout::siamese, config.model));
    EXPECT_TRUE(io::read_file(folder / "again.safetensors") == io::read_file(run / "step50" / "model.safetensors"))
        << scheme;
  }
}

}  // namespace
}  // namespace siamese::train

// Whole runs of every family on the stand-in device: trained, recorded, evaluated, saved, stopped, resumed. Whatever
// reaches for a device's memory from the host ends this process; whatever mixes devices throws. LibTorch's kernels are
// those of the CPU, so a run has to be the same, bit for bit, as the CPU's with plain expressions.
#include "tests/support/protected_device.h"
#include "tests/train/tiny_run.h"

#include "siamese/train/trainer.h"

namespace siamese::train {
namespace {

namespace fs = std::filesystem;

RunConfig three_steps(const std::string& family, const std::vector<std::string>& more) {
  std::vector<std::string> all = {"train.steps=3", "train.eval_every=2", "train.checkpoint_every=1",
                                  "train.record_every=2", "train.micro_batch=2"};
  all.insert(all.end(), more.begin(), more.end());
  return family == "lm" ? tiny_config(all) : tiny_family(family, all);
}

// Like expect_same_runs, in few words: the files are not printed.
void expect_equal_runs(const fs::path& cpu, const fs::path& there) {
  const auto lines = [](const fs::path& path) {
    std::vector<std::string> texts;
    for (const auto& line : timeless_lines(path)) texts.push_back(line.dump());
    return texts;
  };
  EXPECT_EQ(lines(cpu / "metrics.jsonl"), lines(there / "metrics.jsonl"));
  EXPECT_EQ(lines(cpu / "eval.jsonl"), lines(there / "eval.jsonl"));
  for (const std::string file : {"step3/model.safetensors", "step3/optim.safetensors", "step3/trainer.json",
                                 "step3/ema.safetensors", "samples/step3.png"}) {
    ASSERT_EQ(fs::exists(cpu / file), fs::exists(there / file)) << file;
    if (!fs::exists(cpu / file)) continue;
    EXPECT_TRUE(io::read_file(cpu / file) == io::read_file(there / file)) << file;
  }
}

void expect_device_equals_cpu(const std::string& family, const std::vector<std::string>& overrides) {
  const TemporaryFolder folder("devices");
  const auto with = [&](const std::string& key) {
    std::vector<std::string> all = overrides;
    all.push_back(key);
    return three_steps(family, all);
  };
  start_run(with("engine.ops=plain"), folder / "cpu", false, "", {});
  const RunConfig there = with("engine.device=protected");
  ASSERT_EQ(start_run(there, folder / "there", false, "", stop_after(2)).status, RunStatus::stopped);
  ASSERT_EQ(resume_run(folder / "there", {}).status, RunStatus::finished);
  expect_equal_runs(folder / "cpu", folder / "there");
}

TEST(DeviceRuns, LanguageModel) {
  for (const std::string scheme : {"pre", "siamese", "post", "peri", "resi_dual", "hc", "mhc", "keel", "span"}) {
    SCOPED_TRACE(scheme);
    expect_device_equals_cpu("lm", {"model.residual=" + scheme});
  }
}

TEST(DeviceRuns, LanguageModelWithEverything) {
  expect_device_equals_cpu("lm", {"model.residual=siamese", "model.positions=learned", "model.kv_heads=1",
                                  "model.tied=true", "train.z_loss=1e-3", "train.ema=0.9", "eval.averaged=true",
                                  "model.attention_norm=qk", "model.norm=layer", "model.bias=true"});
}

TEST(DeviceRuns, MuonFrozenParametersAndDropout) {
  for (const std::string family : {"lm", "moe", "vit", "dit"}) {
    SCOPED_TRACE(family);
    expect_device_equals_cpu(
        family, {"optim.name=muon", "optim.freeze=['blocks.0.attention*']", "optim.lr_scale.norm=2",
                 "model.dropout.embedding=0.1", "model.dropout.attention=0.2", "model.dropout.branch=0.1"});
  }
}

TEST(DeviceRuns, Experts) {
  for (const std::string scheme : {"pre", "siamese", "mhc"}) {
    SCOPED_TRACE(scheme);
    expect_device_equals_cpu("moe", {"model.residual=" + scheme});
  }
}

TEST(DeviceRuns, VisionTransformer) {
  for (const std::string scheme : {"pre", "siamese", "hc"}) {
    SCOPED_TRACE(scheme);
    expect_device_equals_cpu("vit", {"model.residual=" + scheme});
  }
}

TEST(DeviceRuns, DiffusionTransformer) {
  for (const std::string scheme : {"pre", "siamese", "resi_dual"}) {
    SCOPED_TRACE(scheme);
    expect_device_equals_cpu("dit", {"model.residual=" + scheme});
  }
}

// It was trained on the CPU and judges where the run is.
TEST(DeviceRuns, ClassifierOfSamples) {
  const TemporaryFolder folder("devices_classifier");
  start_run(three_steps("vit", {}), folder / "vit", false, "", {});
  expect_device_equals_cpu("dit", {"eval.classifier=" + (folder / "vit").string()});
}

// A device multiplies bfloat16 by LibTorch's own product, where the CPU takes small ones in float32 before it rounds:
// so losses are equal up to a few such roundings, and a resumed run equals one that was not stopped.
TEST(DeviceRuns, Bfloat16) {
  for (const std::string family : {"lm", "moe", "vit", "dit"}) {
    for (const std::string scheme : {"siamese", "hc"}) {
      SCOPED_TRACE(family + " " + scheme);
      const TemporaryFolder folder("devices_bfloat16");
      const auto on = [&](const std::string& device) {
        return three_steps(family, {"model.residual=" + scheme, "engine.precision=bfloat16", "engine.ops=plain",
                                    "engine.device=" + device});
      };
      start_run(on("cpu"), folder / "cpu", false, "", {});
      start_run(on("protected"), folder / "there", false, "", {});
      ASSERT_EQ(start_run(on("protected"), folder / "cut", false, "", stop_after(2)).status, RunStatus::stopped);
      ASSERT_EQ(resume_run(folder / "cut", {}).status, RunStatus::finished);
      expect_equal_runs(folder / "there", folder / "cut");
      const auto here = timeless_lines(folder / "cpu" / "metrics.jsonl");
      const auto there = timeless_lines(folder / "there" / "metrics.jsonl");
      ASSERT_EQ(here.size(), there.size());
      for (size_t i = 0; i < here.size(); ++i) {
        const double loss = here[i]["loss"], other = there[i]["loss"];
        EXPECT_NEAR(other, loss, 0x1p-9 * loss) << "step " << i + 1;
      }
    }
  }
}

TEST(DeviceRuns, Recomputation) {
  for (const std::string family : {"lm", "moe", "vit", "dit"}) {
    SCOPED_TRACE(family);
    expect_device_equals_cpu(family, {"model.residual=siamese", "engine.recompute=1"});
  }
}

// Checkpoints know no device.
TEST(DeviceRuns, GoOnOnAnotherDevice) {
  const TemporaryFolder folder("devices_moved");
  const auto at = [](const std::string& device) {
    return three_steps("moe", {"engine.ops=plain", "engine.device=" + device});
  };
  start_run(at("cpu"), folder / "whole", false, "", {});
  for (const auto& [first, then] : {std::pair{"cpu", "protected"}, std::pair{"protected", "cpu"}}) {
    const fs::path run = folder / (std::string("to_") + then);
    start_run(at(first), run, false, "", stop_after(1));
    io::write_file_atomic(run / "config.yaml", config_text(at(then)));
    Heard heard;
    ASSERT_EQ(resume_run(run, {&heard}).status, RunStatus::finished);
    ASSERT_EQ(heard.warnings.size(), 1U);
    EXPECT_NE(heard.warnings[0].find(std::string("engine.device: was ") + first + ", is " + then), std::string::npos);
    expect_equal_runs(folder / "whole", run);
  }
}

// However many parameters, micro-batches and terms there are. Experts read how many rows each has, which is the size of
// their products, in each pass: forward, and once more in backward, which computes it again.
TEST(DeviceRuns, TheHostWaitsOncePerStep) {
  for (const std::string family : {"lm", "moe", "vit", "dit"}) {
    const RunConfig config = three_steps(family, {"engine.device=protected", "train.record_every=3"});
    const int64_t passes = 2 * config.model.blocks * (config.train.batch / config.train.micro_batch);
    const int64_t of_experts = family == "moe" ? passes : 0;
    Trainer trainer(config);
    trainer.step();
    int64_t before = testing::host_reads();
    trainer.step();
    EXPECT_EQ(testing::host_reads() - before, 1 + of_experts) << family;
    before = testing::host_reads();
    trainer.step();
    EXPECT_EQ(testing::host_reads() - before, 2 + of_experts) << family << ": with a record of all sites";
  }
}

}  // namespace
}  // namespace siamese::train

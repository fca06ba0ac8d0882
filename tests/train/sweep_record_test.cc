#include "siamese/train/sweep_record.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "tests/train/tiny_run.h"

#include "siamese/base/check.h"
#include "siamese/train/provenance.h"

namespace siamese::train {
namespace {

namespace fs = std::filesystem;

// A line that no run was needed for.
runs::RecordLine line_about(const RunConfig& config) {
  runs::RecordLine line{.sweep = "s", .dir = "pre-seed1", .variant = "pre", .scheme = config.model.residual};
  line.lr = config.optim.lr;
  line.seed = config.train.seed;
  line.config = result_config(config);
  line.stretches = {begin_stretch(config.engine, 0)};
  line.summary.val_loss = 0.5;
  line.summary.curve = {{1, 2}, {2, 1}, {3, 0.5}};
  return line;
}

void without(runs::RecordLine& line, const std::string& key) {
  ASSERT_EQ(std::erase_if(line.config, [&](const auto& entry) { return entry.first == key; }), 1U) << key;
}

// The line as version 0.1.0 wrote it: neither kind nor checksum.
nlohmann::ordered_json as_schema_1(const std::string& line) {
  auto json = nlohmann::ordered_json::parse(line);
  for (const char* const key : {"kind", "checksum", "stretches", "data"}) json.erase(key);
  json["schema"] = 1;
  json["threads"] = 2;
  json["cpu"] = "a CPU";
  json["version"] = "siamese 0.1.0, LibTorch 2.13.0, AVX3 kernels";
  return json;
}

std::string message_of(const fs::path& file) {
  try {
    SweepRecord record(file);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(SweepRecordLine, SaysWhatTheRunDirectorySays) {
  const TemporaryFolder folder("record_line");
  const fs::path dir = folder / "run";
  const PlannedRun run{"pre-lr0.004-seed7", "mine",
                       tiny_config({"model.residual=pre", "optim.lr=4e-3", "train.seed=7"})};
  start_run(run.config, dir, false, run.variant, {});
  const std::string text = runs::to_line(record_line("demo", run, dir));
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["schema"], 2);
  EXPECT_EQ(json["kind"], "result");
  EXPECT_EQ(json["sweep"], "demo");
  EXPECT_EQ(json["dir"], run.dir);
  EXPECT_EQ(json["variant"], "mine");
  EXPECT_EQ(json["scheme"], "pre");
  EXPECT_EQ(json["lr"], 0.004);
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["status"], "finished");
  EXPECT_EQ(json["steps"], 12);
  ASSERT_EQ(json["stretches"].size(), 1U);
  EXPECT_EQ(json["stretches"][0]["threads"], 1);
  EXPECT_EQ(json["stretches"][0]["libtorch"], this_build().libtorch);
  EXPECT_EQ(json["stretches"][0]["to_step"], 12);
  EXPECT_EQ(json["config"]["model.width"], "16");
  EXPECT_EQ(json["config"]["init.from"], "\"\"");
  EXPECT_FALSE(json["config"].contains("engine.threads"));
  EXPECT_EQ(json["config"]["engine.precision"], "float32");
  EXPECT_EQ(json["parameters"], nlohmann::json::parse(io::read_file(dir / "run.json"))["parameters"]);

  double sum = 0, milliseconds = 0;
  const auto steps = io::read_json_lines(dir / "metrics.jsonl");
  for (const auto& step : steps) {
    sum += nlohmann::json::parse(step)["loss"].get<double>();
    milliseconds += nlohmann::json::parse(step)["step_ms"].get<double>();
  }
  EXPECT_EQ(json["first_loss"], nlohmann::json::parse(steps[0])["loss"]);
  EXPECT_NEAR(json["train_loss"].get<double>(), sum / 12, 1e-12);
  EXPECT_NEAR(json["seconds"].get<double>(), milliseconds / 1000, 1e-9);
  const auto last = nlohmann::json::parse(io::read_json_lines(dir / "eval.jsonl").back());
  EXPECT_EQ(json["eval_step"], 12);
  EXPECT_EQ(json["val_loss"], last["loss"]);
  EXPECT_EQ(json["perplexity"], last["perplexity"]);
  EXPECT_EQ(json["accuracy"], last["accuracy"]);
  EXPECT_EQ(json["curve"]["steps"].size(), 12U);
  EXPECT_NEAR(json["curve"]["loss"][11].get<double>(), nlohmann::json::parse(steps[11])["loss"].get<double>(), 1e-3);
  EXPECT_EQ(runs::to_line(runs::read_record_line(text, "here")), text);
}

TEST(SweepRecordLine, ARunThatDivergedHasNullsAndItsMessage) {
  const TemporaryFolder folder("record_diverged");
  const fs::path dir = folder / "run";
  const PlannedRun run{"broken", "broken", tiny_config({"init.std=1e30", "train.max_skips=2", "train.eval_every=0"})};
  EXPECT_THROW(start_run(run.config, dir, false, run.variant, {}), DivergedError);
  const std::string text = runs::to_line(record_line("demo", run, dir));
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["status"], "diverged");
  EXPECT_NE(json["message"].get<std::string>().find("at step 2"), std::string::npos) << json["message"];
  EXPECT_EQ(json["steps"], 2);
  for (const char* const key : {"first_loss", "train_loss", "val_loss", "perplexity"}) {
    EXPECT_TRUE(json.at(key).is_null()) << key;
  }
  EXPECT_FALSE(json.contains("accuracy"));
  EXPECT_EQ(runs::to_line(runs::read_record_line(text, "here")), text);
}

TEST(SweepRecordLine, HoldsTheMeasuresOfTheFamily) {
  const TemporaryFolder folder("record_measures");
  const std::string judge = (folder / "vit").string();
  for (const auto& family : other_families()) {
    SCOPED_TRACE(family);
    auto config = tiny_family(family, {"model.residual=pre"});
    if (family == "dit") config.eval.classifier = judge;
    const PlannedRun run{"run", "pre", config};
    const fs::path dir = folder / family;
    start_run(run.config, dir, false, run.variant, {});
    const std::string text = runs::to_line(record_line("demo", run, dir));
    EXPECT_EQ(runs::to_line(runs::read_record_line(text, "here")), text);
    const auto json = nlohmann::json::parse(text);
    const auto last = nlohmann::json::parse(io::read_json_lines(dir / "eval.jsonl").back());
    nlohmann::json expected = nlohmann::json::object();
    if (family == "moe") {
      double sum = 0;
      for (const auto& step : timeless_lines(dir / "metrics.jsonl")) sum += step.at("expert_max_load").get<double>();
      ASSERT_TRUE(json.at("measures").contains("expert_max_load"));
      EXPECT_NEAR(json["measures"]["expert_max_load"].get<double>(), sum / 12, 1e-12);
      expected["expert_max_load"] = json["measures"]["expert_max_load"];
    } else if (family == "vit") {
      for (const char* const name : {"top1", "top5"}) {
        const auto& counts = last.at("classification").at(name);
        EXPECT_EQ(counts.at("count"), 4);
        expected[name] = counts.at("correct").get<double>() / counts.at("count").get<double>();
      }
    } else {
      expected = last.at("diffusion");
      ASSERT_EQ(expected.size(), 2U);
      for (const char* const name : {"feature_distance", "class_agreement"}) {
        expected[name] = last.at("samples").at(name);
      }
    }
    EXPECT_EQ(json["measures"], expected);
    EXPECT_EQ(json.at("perplexity").is_null(), family != "moe");
    EXPECT_EQ(json.contains("accuracy"), family == "moe");
    std::vector<double> rates;
    for (const auto& step : io::read_json_lines(dir / "metrics.jsonl")) {
      rates.push_back(nlohmann::json::parse(step).at("samples_per_s").get<double>());
    }
    std::sort(rates.begin() + 1, rates.end());  // eleven without the first
    EXPECT_EQ(json.at("samples_per_s").get<double>(), rates[6]);
  }
}

TEST(SweepRecordLine, OnlyARunThatEndedHasOne) {
  const TemporaryFolder folder("record_stopped");
  const PlannedRun run{"run", "pre", tiny_config()};
  start_run(run.config, folder / "run", false, "", stop_after(5));
  EXPECT_THROW(record_line("demo", run, folder / "run"), DataError);
}

TEST(SweepRecordLine, CurvesAreThinnedToMeans) {
  std::vector<double> loss, grad_norm;
  for (int step = 1; step <= 1010; ++step) {
    loss.push_back(step > 990 ? NAN : step);
    grad_norm.push_back(step == 11 ? NAN : 2 * step);
  }
  const runs::ThinnedCurve curve = runs::thin_curve(loss, grad_norm);
  EXPECT_EQ(curve.last_step.size(), 60U);
  EXPECT_EQ(curve.last_step[9], 10);  // the first ten one by one
  EXPECT_EQ(curve.last_step[10], 30);
  EXPECT_EQ(curve.last_step.back(), 1010);
  EXPECT_EQ(curve.loss[9], 10);
  EXPECT_EQ(curve.loss[10], 20.5);     // 11 ... 30
  EXPECT_EQ(curve.grad_norm[10], 42);  // 12 ... 30, doubled: what is not finite is left out
  EXPECT_TRUE(std::isnan(curve.loss.back()));
  EXPECT_EQ(runs::thin_curve({3}, {1}).last_step, std::vector<int64_t>{1});
}

TEST(SweepRecord, FindsARunByItsConfig) {
  const TemporaryFolder folder("record_find");
  SweepRecord record(folder / "results" / "r.jsonl");
  EXPECT_FALSE(record.find(tiny_config()));
  record.add(line_about(tiny_config()));  // makes the folder
  ASSERT_TRUE(record.find(tiny_config()));
  EXPECT_EQ(record.find(tiny_config())->summary.val_loss, 0.5);
  EXPECT_TRUE(SweepRecord(folder / "results" / "r.jsonl").find(tiny_config()));
  // How it is computed does not decide what comes out.
  EXPECT_TRUE(record.find(tiny_config({"engine.threads=2", "engine.recompute=1", "engine.ops=plain"})));
  EXPECT_FALSE(record.find(tiny_config({"engine.precision=bfloat16"})));
  EXPECT_FALSE(record.find(tiny_config({"optim.lr=2e-3"})));
  EXPECT_FALSE(record.find(tiny_config({"train.seed=2"})));
  EXPECT_FALSE(record.find(tiny_config({"init.from=elsewhere"})));
}

// Nor does how often it is saved or recorded.
TEST(SweepRecord, TheKeyIgnoresWhatCannotChangeAResult) {
  const TemporaryFolder folder("record_key");
  SweepRecord record(folder / "r.jsonl");
  record.add(line_about(tiny_config()));
  EXPECT_TRUE(record.find(tiny_config({"train.checkpoint_every=7", "train.record_every=3", "train.keep_last=2"})));
  // A line of an older version says these keys; what it says of them does not count.
  auto json = as_schema_1(io::read_json_lines(folder / "r.jsonl").front());
  json["config"]["train.checkpoint_every"] = "5";
  json["config"]["train.record_every"] = "0";
  std::ofstream(folder / "old.jsonl") << json.dump() << "\n";
  EXPECT_TRUE(SweepRecord(folder / "old.jsonl").find(tiny_config()));
}

TEST(SweepRecord, DataAreKnownByWhatTheyHoldNotByWhereTheyLie) {
  const TemporaryFolder folder("record_data");
  const auto put = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return (folder / name).string();
  };
  const std::string words(4000, 'a');
  const auto config_of = [&](const std::string& file) {
    return tiny_config({"data.source=text", "data.train=" + file});
  };
  const RunConfig here = config_of(put("here.txt", words));
  const RunConfig moved = config_of(put("moved.txt", words));
  const RunConfig changed = config_of(put("changed.txt", words + "b"));
  start_run(here, folder / "run", false, "", {});
  const runs::RecordLine line = record_line("s", {"run", "v", here}, folder / "run");
  EXPECT_EQ(line.data.train.files, 1);
  EXPECT_EQ(line.data.train.bytes, 4000U);
  EXPECT_EQ(*config::find_text(line.config, "data.train"), "[" + (folder / "here.txt").string() + "]");  // as written
  const fs::path file = folder / "r.jsonl";
  SweepRecord(file).add(line);
  EXPECT_TRUE(SweepRecord(file).find(here));
  EXPECT_TRUE(SweepRecord(file).find(moved));
  EXPECT_FALSE(SweepRecord(file).find(changed));
  put("here.txt", words + "c");
  EXPECT_FALSE(SweepRecord(file).find(here));  // the same path, other data
  fs::remove(folder / "here.txt");
  EXPECT_TRUE(SweepRecord(file).find(here));  // nobody can look: the path counts
  // A line that does not say what the data held is found by the path, as ever.
  std::ofstream(folder / "old.jsonl") << as_schema_1(io::read_json_lines(file).front()).dump() << "\n";
  put("here.txt", words + "c");
  EXPECT_TRUE(SweepRecord(folder / "old.jsonl").find(here));
  EXPECT_FALSE(SweepRecord(folder / "old.jsonl").find(moved));
}

TEST(SweepRecord, LinesOfOtherBuildsCanBeLeftAsideAndReplaced) {
  const TemporaryFolder folder("record_fresh");
  const fs::path file = folder / "r.jsonl";
  runs::RecordLine other = line_about(tiny_config());
  other.stretches.front().build.commit = std::string(40, 'f');
  SweepRecord(file).add(other);
  SweepRecord(file).add(line_about(tiny_config({"train.seed=2"})));
  EXPECT_FALSE(is_of_this_build(other.stretches));
  EXPECT_FALSE(is_of_this_build(std::vector<runs::Stretch>{}));  // it does not say
  using Lines = SweepRecord::Lines;
  EXPECT_TRUE(SweepRecord(file).find(tiny_config()));
  EXPECT_FALSE(SweepRecord(file, Lines::of_this_build).find(tiny_config()));
  EXPECT_TRUE(SweepRecord(file, Lines::of_this_build).find(tiny_config({"train.seed=2"})));
  runs::RecordLine again = line_about(tiny_config());
  again.summary.val_loss = 0.25;
  SweepRecord(file, Lines::of_this_build).add(again);
  EXPECT_EQ(io::read_json_lines(file).size(), 2U);
  EXPECT_EQ(SweepRecord(file).find(tiny_config())->summary.val_loss, 0.25);
  EXPECT_TRUE(SweepRecord(file).find(tiny_config({"train.seed=2"})));
}

TEST(SweepRecord, LivesBehindALinkAndWithBlankLines) {
  const TemporaryFolder folder("record_link");
  std::ofstream(folder / "real.jsonl") << "\n" << runs::to_line(line_about(tiny_config())) << "\r\n\n";
  std::filesystem::create_symlink("real.jsonl", folder / "link.jsonl");
  SweepRecord record(folder / "link.jsonl");
  EXPECT_TRUE(record.find(tiny_config()));
  record.add(line_about(tiny_config({"train.seed=2"})));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.jsonl"));
  EXPECT_TRUE(SweepRecord(folder / "real.jsonl").find(tiny_config({"train.seed=2"})));
}

TEST(SweepRecord, SaysBeforehandThatItCannotBeWritten) {
  const TemporaryFolder folder("record_denied");
  std::ofstream(folder / "file") << "mine";
  EXPECT_THROW(SweepRecord(folder / "file" / "r.jsonl").check_writable(), SystemError);
  EXPECT_NO_THROW(SweepRecord(folder / "new" / "r.jsonl").check_writable());
}

TEST(SweepRecord, AKeyThatDidNotExistThenHasItsDefault) {
  const TemporaryFolder folder("record_new_key");
  runs::RecordLine old = line_about(tiny_config());
  without(old, "train.z_loss");
  without(old, "model.kv_heads");  // derived: the default is 0, the plan says 2
  SweepRecord record(folder / "r.jsonl");
  record.add(old);
  EXPECT_TRUE(record.find(tiny_config()));
  EXPECT_FALSE(record.find(tiny_config({"train.z_loss=1e-4"})));
  EXPECT_FALSE(record.find(tiny_config({"model.kv_heads=1"})));
  // And the other way round: a key that is gone said something that no run of today says.
  runs::RecordLine other = line_about(tiny_config({"train.seed=2"}));
  other.config.emplace_back("optim.magic", "0");
  record.add(other);
  EXPECT_FALSE(record.find(tiny_config({"train.seed=2"})));
  EXPECT_TRUE(record.find(tiny_config()));
}

TEST(SweepRecord, WhatWasMeasuredFirstStays) {
  const TemporaryFolder folder("record_again");
  const fs::path file = folder / "r.jsonl";
  SweepRecord record(file);
  SweepRecord other(file);
  record.add(line_about(tiny_config()));
  runs::RecordLine again = line_about(tiny_config({"engine.threads=2"}));
  again.summary.val_loss = 0.7;
  other.add(again);
  EXPECT_EQ(other.find(tiny_config())->summary.val_loss, 0.5);
  EXPECT_EQ(io::read_json_lines(file).size(), 1U);
  // A line edited by hand need not end in a line break; the next one is not glued to it.
  std::string text = io::read_file(file);
  text.pop_back();
  std::ofstream(file) << text;
  record.add(line_about(tiny_config({"train.seed=2"})));
  EXPECT_EQ(io::read_json_lines(file).size(), 2U);
  EXPECT_TRUE(record.find(tiny_config()));
  EXPECT_TRUE(record.find(tiny_config({"train.seed=2"})));
}

TEST(SweepRecord, ABrokenLineIsNamed) {
  const TemporaryFolder folder("record_broken");
  const fs::path file = folder / "r.jsonl";
  const std::string good = runs::to_line(line_about(tiny_config())) + "\n";
  const auto said = [&](const std::string& line) {
    std::ofstream(file) << good << line;
    return message_of(file);
  };
  EXPECT_EQ(said(""), "");
  EXPECT_NE(said("<<<<<<< HEAD\n").find("r.jsonl: line 2: not valid JSON: '<<<<<<< HEAD'"), std::string::npos);
  EXPECT_EQ(said("\n"), "");                                              // left by an editor
  EXPECT_NE(said(good.substr(0, 50)).find("line 2"), std::string::npos);  // torn: it is never written so by us
  const auto old = as_schema_1(good);
  EXPECT_EQ(said(old.dump()), "");
  for (const char* const key : {"schema", "status", "config", "val_loss", "seed", "curve", "dir"}) {
    auto json = old;
    json.erase(key);
    EXPECT_NE(said(json.dump()).find(std::string("line 2: ") + key + ": expected"), std::string::npos)
        << message_of(file);
    json[key] = nlohmann::json::array({1});
    EXPECT_NE(said(json.dump()).find(std::string("line 2: ") + key + ": expected"), std::string::npos)
        << message_of(file);
  }
  auto json = old;
  json["schema"] = 3;
  EXPECT_NE(said(json.dump()).find("schema: expected 1 or 2, got '3'"), std::string::npos) << message_of(file);
  json = old;
  json["curve"]["steps"] = {2, 1};
  EXPECT_NE(said(json.dump()).find("line 2: curve: steps: expected ascending"), std::string::npos) << message_of(file);
  std::string changed = good;
  changed.replace(changed.find("\"val_loss\":0.5"), 14, "\"val_loss\":0.4");
  EXPECT_NE(said(changed).find("line 2: checksum: expected the checksum"), std::string::npos) << message_of(file);
  // Nor is it overwritten.
  std::ofstream(file) << good;
  SweepRecord record(file);
  std::ofstream(file) << good << "broken\n";
  EXPECT_THROW(record.add(line_about(tiny_config({"train.seed=2"}))), DataError);
  EXPECT_EQ(io::read_file(file), good + "broken\n");
}

TEST(SweepRecord, ManyMayAddAtOnce) {
  const TemporaryFolder folder("record_many");
  const fs::path file = folder / "r.jsonl";
  constexpr int kWriters = 4;
  constexpr int kEach = 5;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      try {
        SweepRecord record(file);
        for (int i = 0; i < kEach; ++i) {
          record.add(line_about(tiny_config({"train.seed=" + std::to_string(100 + writer * kEach + i)})));
          record.add(line_about(tiny_config()));  // all of them did this one
        }
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    });
  }
  for (auto& writer : writers) writer.join();
  SweepRecord record(file);
  EXPECT_EQ(io::read_json_lines(file).size(), static_cast<size_t>(kWriters * kEach + 1));
  for (int i = 0; i < kWriters * kEach; ++i) {
    EXPECT_TRUE(record.find(tiny_config({"train.seed=" + std::to_string(100 + i)}))) << i;
  }
}

}  // namespace
}  // namespace siamese::train

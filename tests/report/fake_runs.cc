#include "tests/report/fake_runs.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "siamese/base/random.h"

namespace siamese::report {

namespace {

using nlohmann::json;

class Fake {
 public:
  explicit Fake(const FakeRun& run)
      : run_(run), key_(hash_text(run.variant + std::to_string(run.lr)) + static_cast<uint64_t>(run.seed)) {}

  json step_object(int64_t step) const {
    const bool lost = run_.status == "diverged" && step == run_.last_step;
    json object{{"schema", 1},
                {"step", step},
                {"tokens", step * 3072},
                {"loss", lost ? json(nullptr) : json(loss(step))},
                {"grad_norm", lost ? json(nullptr) : json(grad_norm(step))},
                {"lr", rate(step)},
                {"tokens_per_s", (step == 1 ? 9000 : 31000) * (1 + 0.04 * noise(step, 2))},
                {"step_ms", 99.1 * (1 + 0.04 * noise(step, 2))},
                {"skipped", lost}};
    if (run_.sites_every > 0 && (step == 1 || step % run_.sites_every == 0)) object["sites"] = sites(step);
    add_family_step(run_, step, object);
    return object;
  }

  json eval_object(int64_t step) const {
    const double value = smooth_loss(step) * 1.04 + 0.005 * noise(step, 5);
    json object{{"schema", 1}, {"step", step}, {"loss", value}, {"perplexity", std::exp(value)}, {"tokens", 98304}};
    if (run_.baseline > 0) object["baseline"] = run_.baseline;
    add_family_eval(run_, step, object);
    if (!run_.accuracy || run_.family != "lm") return object;
    json groups = json::array();
    int64_t correct = 0, count = 0;
    const std::vector<std::string> operations{"+", "-", "*"};
    for (size_t op = 0; op < operations.size(); ++op) {
      for (int64_t digits = 1; digits <= 4; ++digits) {
        const double ease = 1.6 - value - 0.16 * static_cast<double>(digits) - 0.14 * static_cast<double>(op);
        const auto right = static_cast<int64_t>(200 * std::clamp(ease, 0.0, 1.0));
        groups.push_back({{"operation", operations[op]}, {"digits", digits}, {"correct", right}, {"count", 200}});
        correct += right;
        count += 200;
      }
    }
    object["accuracy"] = {{"correct", correct}, {"count", count}, {"groups", groups}};
    return object;
  }

 private:
  double noise(int64_t step, uint64_t stream) const {
    return random_normal(key_, stream, static_cast<uint64_t>(step), 2.5);
  }

  double progress(int64_t step) const { return static_cast<double>(step) / static_cast<double>(run_.steps); }

  double smooth_loss(int64_t step) const {
    return run_.floor + (2.77 - run_.floor) * std::exp(-7 * progress(step)) + 0.02 * static_cast<double>(run_.seed % 4);
  }

  double loss(int64_t step) const {
    if (step == run_.spike_at) return 40;
    double value = smooth_loss(step) * (1 + 0.035 * noise(step, 1));
    if (run_.status == "diverged") {
      const double left = static_cast<double>(run_.last_step - step) / static_cast<double>(run_.last_step);
      value += 12 * std::exp(-40 * left);
    }
    return value;
  }

  double grad_norm(int64_t step) const {
    const double spike = step % 97 == 0 ? 6 : 1;
    const double blow = run_.status == "diverged" && run_.last_step - step < 15 ? 30 : 1;
    return blow * spike * (0.4 + 2.5 * std::exp(-9 * progress(step))) * std::exp(0.25 * noise(step, 3));
  }

  double rate(int64_t step) const {
    const double warmup = std::min(1.0, progress(step) / 0.1);
    return run_.lr * warmup * (0.55 + 0.45 * std::cos(3.14159265 * progress(step)));
  }

  json sites(int64_t step) const {
    json list = json::array();
    const int64_t depth = 2 * run_.blocks;
    for (int64_t site = 0; site < depth; ++site) {
      const double at = static_cast<double>(site + 1) / static_cast<double>(depth);
      json streams = json::array();
      for (size_t s = 0; s < run_.streams.size(); ++s) {
        const bool raw = s > 0 || run_.streams.size() == 1;
        const double before = raw ? 0.8 + 14 * at * (0.3 + progress(step)) : 1.05 + 0.2 * at;
        const bool normed = s == 0 || site % 2 == 0;
        streams.push_back({{"name", run_.streams[s]},
                           {"before", before * (1 + 0.03 * noise(step * depth + site, 10 + s))},
                           {"after", normed ? json(1.0 + 0.02 * noise(step * depth + site, 20 + s)) : json(nullptr)}});
      }
      list.push_back({{"site", site},
                      {"block", site / 2},
                      {"kind", site % 2 == 0 ? "attention" : "ffn"},
                      {"grad_norm", 0.2 * std::exp(-1.5 * at) * (1 + 0.1 * noise(step * depth + site, 30))},
                      {"branch_in", 1.0 + 0.05 * noise(step * depth + site, 31)},
                      {"branch_out", (0.2 + 0.8 * at) * (1 + 0.05 * noise(step * depth + site, 32))},
                      {"streams", streams}});
    }
    return list;
  }

  FakeRun run_;
  uint64_t key_;
};

std::string short_number(double value) { return json(value).dump(); }

std::string config_text(const FakeRun& run) {
  return "model:\n  family: " + run.family + "\n  residual: " + run.scheme +
         "\n  width: 128\n  blocks: " + std::to_string(run.blocks) + "\noptim:\n  lr: " + short_number(run.lr) +
         "\ntrain:\n  steps: " + std::to_string(run.steps) + "\n  seed: " + std::to_string(run.seed) + "\n";
}

}  // namespace

void add_family_step(const FakeRun& run, int64_t step, json& line) {
  if (run.family == "vit" || run.family == "dit") line["samples_per_s"] = 100 * run.seed;
  if (run.family == "dit") {
    line["mse"] = static_cast<double>(step) / 1000;
    line["vlb"] = static_cast<double>(step) / 10000;
  }
  if (run.family != "moe") return;
  line["balance_loss"] = 2;
  line["router_z_loss"] = 3;
  line["expert_max_load"] = 1 + run.seed;
  if (line.contains("sites")) {
    line["experts"] = {{{"block", 0}, {"load", {0.25, 0.75}}}, {{"block", 3}, {"load", {0.5, 0.5}}}};
  }
}

void add_family_eval(const FakeRun& run, int64_t step, json& line) {
  if (run.family == "vit") {
    line["classification"] = {{"top1", {{"correct", 400 + run.seed}, {"count", 512}}},
                              {"top5", {{"correct", 500}, {"count", 512}}},
                              {"classes", {"circle", "square"}},
                              {"confusion", {{200, 56}, {step, 256}}}};
  }
  if (run.family == "dit") {
    line["diffusion"] = {{"mse", 0.25}, {"vlb", 0.03125}};
    line["samples"] = {{"count", 64},
                       {"feature_distance", 10 + run.seed},
                       {"class_agreement", 0.5},
                       {"sampler", "ddim"},
                       {"classifier", "runs/judge"},
                       {"steps", 50},
                       {"guidance", 1.5},
                       {"grid", "samples/step" + std::to_string(step) + ".png"}};
  }
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

void write_fake_run(const std::filesystem::path& folder, const FakeRun& run) {
  std::filesystem::create_directories(folder);
  const Fake fake(run);
  std::ofstream metrics(folder / "metrics.jsonl");
  for (int64_t step = 1; step <= run.last_step; ++step) metrics << fake.step_object(step).dump() << '\n';
  if (run.eval_every > 0) {
    std::ofstream evals(folder / "eval.jsonl");
    for (int64_t step = run.eval_every; step <= run.last_step; step += run.eval_every) {
      evals << fake.eval_object(step).dump() << '\n';
    }
  }
  json object{{"schema", 1},        {"status", run.status}, {"scheme", run.scheme}, {"step", run.last_step},
              {"steps", run.steps}, {"parameters", 812345}, {"seed", run.seed},     {"lr", run.lr}};
  if (!run.message.empty()) object["message"] = run.message;
  write_text(folder / "run.json", object.dump() + "\n");
  write_text(folder / "config.yaml", config_text(run));
}

std::string fake_run_name(const FakeRun& run) {
  return run.variant + "-lr" + short_number(run.lr) + "-seed" + std::to_string(run.seed);
}

void write_fake_sweep(const std::filesystem::path& folder, const std::string& name, const std::vector<FakeRun>& runs) {
  std::filesystem::create_directories(folder);
  json list = json::array();
  for (const FakeRun& run : runs) {
    list.push_back({{"dir", fake_run_name(run)}, {"variant", run.variant}, {"lr", run.lr}, {"seed", run.seed}});
    if (run.last_step > 0) write_fake_run(folder / fake_run_name(run), run);
  }
  write_text(folder / "sweep.json", json{{"schema", 1}, {"name", name}, {"runs", list}}.dump() + "\n");
}

}  // namespace siamese::report

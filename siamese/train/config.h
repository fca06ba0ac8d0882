// A whole run as a value: every section of a config file. The resolved text stands in the run directory and in every
// checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "siamese/base/enum_text.h"
#include "siamese/config/use.h"
#include "siamese/config/value.h"
#include "siamese/data/batches.h"
#include "siamese/data/config.h"
#include "siamese/eval/config.h"
#include "siamese/models/config.h"
#include "siamese/nn/init.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/operand.h"
#include "siamese/train/optim_config.h"
#include "siamese/train/residual_warmup.h"

namespace siamese::train {

inline config::Use for_moe() { return models::for_family({models::Family::moe}); }
config::Use with_residual_warmup();

struct TrainConfig {
  int64_t steps = 1000;
  uint64_t seed = 1;
  int64_t batch = 32;
  int64_t micro_batch = 0;
  double z_loss = 0;
  double balance_loss = 0.01;
  double router_z_loss = 0.001;
  ResidualWarmup residual_warmup = ResidualWarmup::none;
  int64_t residual_warmup_steps = 0;
  double ema = 0;
  int64_t eval_every = 0;
  int64_t checkpoint_every = 0;
  int64_t record_every = 50;
  bool tensorboard = false;
  int64_t keep_last = 0;
  int64_t keep_every = 0;
  bool save_in_background = false;
  double max_hours = 0;
  int64_t max_skips = 20;
  double skip_outliers = 0;
  int64_t skip_window = 128;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("steps", self.steps, "optimizer steps");
    visit("seed", self.seed, "of initial weights and data order");
    visit("batch", self.batch, "samples per step");
    visit("micro_batch", self.micro_batch,
          "samples per forward pass, gradients accumulate; 0 = as many as keep memory small");
    visit("z_loss", self.z_loss, {"weight of the squared log-normaliser of the head", models::for_text()});
    visit("balance_loss", self.balance_loss, {"weight of the routers' load-balancing loss", for_moe()});
    visit("router_z_loss", self.router_z_loss, {"weight of the routers' squared log-normaliser", for_moe()});
    visit(
        "residual_warmup", self.residual_warmup,
        "schedule by which what the branches write grows to the whole, block by block (ProRes); none = whole at once");
    visit("residual_warmup_steps", self.residual_warmup_steps,
          {"steps until every block writes the whole; 0 = 1000 for each block", with_residual_warmup()});
    visit("ema", self.ema, "decay of a moving average of the weights, kept beside them; 0 = none");
    visit("eval_every", self.eval_every, "steps between evaluations; 0 = only at the end");
    visit("checkpoint_every", self.checkpoint_every, "steps between checkpoints; 0 = only at the end");
    visit("record_every", self.record_every, "steps between records of streams and gradients by depth; 0 = never");
    visit("tensorboard", self.tensorboard, "what is recorded goes into an event file for TensorBoard, too");
    visit("keep_last", self.keep_last, "newest checkpoints that stay, older ones are removed; 0 = all stay");
    visit("keep_every", self.keep_every,
          {"checkpoints at multiples of so many steps stay for ever; 0 = none", config::with({"train.keep_last"})});
    visit("save_in_background", self.save_in_background,
          "checkpoints are written from a copy in memory while training goes on");
    visit(
        "max_hours", self.max_hours,
        "hours of a process (train, resume or a whole sweep) after which it saves and stops with exit code 75; 0 = no "
        "limit");
    visit("max_skips", self.max_skips, "non-finite steps in a row after which the run has diverged");
    visit("skip_outliers", self.skip_outliers,
          "skip a step whose loss or gradient norm lies more than so many standard deviations above the last "
          "train.skip_window; 0 = off");
    visit("skip_window", self.skip_window, {"steps that it looks back on", config::with({"train.skip_outliers"})});
  }
};

// How the weights of a run start: by a rule, or as a checkpoint has them.
struct InitConfig : nn::InitConfig {
  std::string from;
  bool optimizer = false;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    nn::InitConfig::fields(self, [&](std::string_view name, auto& field, config::About about) {
      about.uses.push_back(config::without("init.from"));
      visit(name, field, about);
    });
    visit("from", self.from, "a run directory or checkpoint whose weights start this run; empty starts afresh");
    visit("optimizer", self.optimizer,
          {"fork it: keep its moments, averages and place in the data too", config::with({"init.from"})});
  }
};

enum class Shard { none, optimizer };

struct EngineConfig {
  ops::Mode ops = ops::Mode::automatic;
  ops::Precision precision = ops::Precision::float32;
  int64_t threads = 0;
  int64_t recompute = 0;
  std::string device = "cpu";
  double timeout = 600;
  Shard shard = Shard::none;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("ops", self.ops, "kernels: auto = fused where there is one");
    visit("precision", self.precision, "operands of products; bfloat16: rounded, sums stay float32; decides results");
    visit("threads", self.threads, "worker threads; 0 = one per core; results do not depend on it");
    visit("recompute", self.recompute, "activation checkpointing: blocks per recomputed segment; 0 = off");
    visit("device", self.device, "where tensors live and are computed: cpu, cuda, cuda:1, mps ...");
    visit("timeout", self.timeout, "seconds that ranks under mpirun wait for each other; 0 = for ever");
    visit("shard", self.shard,
          "what ranks under mpirun divide among them: none, or moments (and, with bfloat16, float32 matrices)");
  }
};

struct RunConfig {
  models::ModelConfig model;
  InitConfig init;
  data::DataConfig data;
  OptimConfig optim;
  TrainConfig train;
  eval::EvalConfig eval;
  EngineConfig engine;
  // No key: which keys somebody gave; nullopt: not known (a run with a run.json of schema 1).
  std::optional<std::vector<std::string>> given = std::nullopt;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("model", self.model, "");
    visit("init", self.init, "");
    visit("data", self.data, "");
    visit("optim", self.optim, "");
    visit("train", self.train, "");
    visit("eval", self.eval, "");
    visit("engine", self.engine, "");
  }
};

// Strict reading, derived values filled in, impossible values and keys without effect refused (config/use.h).
RunConfig read_config(const config::Value& value);
// The resolved config as YAML; reads back to the same value.
std::string config_text(const RunConfig& config);
// Of weights without a run: how many samples a pass has (train.micro_batch) is left to the run that goes on from them.
std::string weights_config_text(RunConfig config);
// The config.yaml of a run directory or checkpoint (DataError when missing, empty or broken), with what run.json says
// of its origin (config_origin.h).
RunConfig read_config_file(const std::string& path);

// What a model takes of the data.
data::SampleShape sample_shape(const models::ModelConfig& model);

// Sets kernels and threads for this process. SystemError when it may not have so many, UsageError when engine.device is
// not here.
void apply_engine(const EngineConfig& engine);

// One line where engine.precision is slower than float32 on this CPU, else "".
std::string precision_note(const EngineConfig& engine);
std::string precision_note(const EngineConfig& engine, bool has_products);  // of bfloat16, on this CPU
// For what runs without a config: one thread where the system does not allow one per core.
void limit_threads();
// Threads that a run gets where engine.threads is 0: one per core that this process may use.
int64_t core_count();
// From here on at most so many: for a process that shares the machine with others like it. 0: all of them again.
void limit_cores(int64_t most);
std::string cpu_name();  // "unknown" where the system does not say

}  // namespace siamese::train

template <>
struct siamese::EnumText<siamese::train::Shard> {
  static constexpr EnumNames<train::Shard, 2> names{
      {{train::Shard::none, "none"}, {train::Shard::optimizer, "optimizer"}}};
};

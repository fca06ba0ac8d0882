#include "siamese/train/config.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <thread>

#include <sched.h>

#include <ATen/Parallel.h>

#include "siamese/base/check.h"
#include "siamese/base/thread_room.h"
#include "siamese/config/fields.h"
#include "siamese/config/yaml.h"
#include "siamese/io/atomic_file.h"
#include "siamese/kernels/simd.h"
#include "siamese/models/registry.h"
#include "siamese/train/config_origin.h"
#include "siamese/train/device.h"
#include "siamese/train/freeze.h"

namespace siamese::train {
namespace {

template <class T>
void require(bool ok, const std::string& key, const std::string& expected, T got) {
  if (!ok) throw UsageError(key + ": expected " + expected + ", got " + config::print(got).text);
}

std::atomic<int64_t> most_cores = 0;  // 0: as many as there are
constexpr int kPools = 2;             // LibTorch keeps threads of its own beside those of OpenMP
constexpr int64_t kMaxBatch = 1 << 20;
// How large a forward pass is when nobody says: enough rows for matrix products to run at full speed, 1024 tokens of
// width 256, and about 256 MB of activations at the 18 numbers that a block keeps for each element of its streams.
constexpr int64_t kLeanRows = 1 << 18;
constexpr int64_t kLeanActivations = (int64_t{256} << 20) / (18 * int64_t{sizeof(float)});

void check_eval(const RunConfig& config) {
  const eval::EvalConfig& eval = config.eval;
  require(eval.samples >= 0 && eval.samples <= 1 << 20, "eval.samples", "a number from 0 to 1048576", eval.samples);
  require(eval.sampler_steps >= 2 && eval.sampler_steps <= 1000, "eval.sampler_steps", "a number from 2 to 1000",
          eval.sampler_steps);
  require(eval.prompt_tokens >= 1 && eval.prompt_tokens <= 1 << 16, "eval.prompt_tokens", "a number from 1 to 65536",
          eval.prompt_tokens);
  require(eval.guidance >= 0 && eval.guidance <= 1000, "eval.guidance", "a number from 0 to 1000", eval.guidance);
  if (!eval.classifier.empty() && eval.samples > 0) {
    require(eval.samples >= 2, "eval.samples", "at least 2 for eval.classifier", eval.samples);
    const int64_t images = eval.held_out_samples(config.train.batch);
    require(images >= 2, eval.batches > 0 ? "eval.batches" : "eval.held_out", "at least 2 images for eval.classifier",
            images);
  }
  require(eval.task_limit >= 0, "eval.task_limit", "a number >= 0 (0 = all)", eval.task_limit);
  if (config.model.family == models::Family::dit && eval.guidance != 1) {
    require(config.model.label_dropout > 0, "eval.guidance", "1 with model.label_dropout 0", eval.guidance);
  }
}

// Text for language models, images for the others; random data is either.
void check_source(const RunConfig& config) {
  const bool images = config.model.sees_images();
  if (config.data.source == data::Source::random || data::sizes_of(config.data).images == images) return;
  throw UsageError(std::string("data.source: expected ") +
                   (images ? "shapes, idx, cifar, folder or latents" : "arithmetic, text or tokens") +
                   " for model.family " + std::string(enum_text(config.model.family)) + ", got " +
                   std::string(enum_text(config.data.source)));
}

void check_pixels(const RunConfig& config) {
  const bool pixels = config.model.family == models::Family::dit && config.data.source != data::Source::latents;
  const data::AugmentConfig& augment = config.data.augment;
  const std::pair<const char*, double> mixing[] = {
      {"mixup", augment.mixup}, {"cutmix", augment.cutmix}, {"smoothing", augment.smoothing}, {"erase", augment.erase}};
  for (const auto& [key, value] : mixing) {
    require(config.model.family != models::Family::dit || value == 0, std::string("data.augment.") + key,
            "0 for a dit, which would learn to draw what it makes", value);
  }
  if (pixels && config.data.normalize != data::Normalize::symmetric) {
    throw UsageError("data.normalize: expected symmetric for a dit of pixels: samplers keep them between -1 and 1");
  }
}

void check_pack(const RunConfig& config) {
  if (config.data.pack != data::Pack::documents || config.data.source != data::Source::tokens) return;
  require(config.model.dropout.attention == 0, "model.dropout.attention", "0 with data.pack documents",
          config.model.dropout.attention);
}

void check_residual_warmup(const RunConfig& config) {
  const int64_t steps = config.train.residual_warmup_steps;
  const bool on = config.train.residual_warmup != ResidualWarmup::none;
  constexpr int64_t kMost = int64_t{1} << 40;
  require(steps >= (on ? config.model.blocks : 0) && steps <= kMost, "train.residual_warmup_steps",
          on ? "at least one for each of the " + std::to_string(config.model.blocks) + " blocks (0 = 1000 for each)"
             : "a number >= 0",
          steps);
}

void check(const RunConfig& config) {
  const TrainConfig& train = config.train;
  check_residual_warmup(config);
  require(train.steps >= 1, "train.steps", "at least 1", train.steps);
  require(train.batch >= 1 && train.batch <= kMaxBatch, "train.batch", "a number of samples from 1 to 1048576",
          train.batch);
  require(train.micro_batch >= 1 && train.batch % train.micro_batch == 0, "train.micro_batch",
          "a divisor of train.batch (" + std::to_string(train.batch) + ")", train.micro_batch);
  for (const auto& [key, weight] :
       {std::pair{"train.z_loss", train.z_loss}, std::pair{"train.balance_loss", train.balance_loss},
        std::pair{"train.router_z_loss", train.router_z_loss}}) {
    require(weight >= 0, key, "a number >= 0", weight);
  }
  require(train.ema >= 0 && train.ema < 1, "train.ema", "a decay in [0, 1) (0 = none)", train.ema);
  check_eval(config);
  check_pixels(config);
  check_pack(config);
  for (const auto& [key, value] :
       {std::pair{"train.eval_every", train.eval_every}, std::pair{"train.checkpoint_every", train.checkpoint_every},
        std::pair{"train.record_every", train.record_every}, std::pair{"train.keep_last", train.keep_last},
        std::pair{"train.keep_every", train.keep_every}, std::pair{"engine.threads", config.engine.threads},
        std::pair{"engine.recompute", config.engine.recompute}, std::pair{"eval.problems", config.eval.problems}}) {
    require(value >= 0, key, "a number >= 0", value);
  }
  require(train.max_skips >= 1, "train.max_skips", "at least 1", train.max_skips);
  require(train.max_hours >= 0, "train.max_hours", "a number >= 0 (0 = no limit)", train.max_hours);
  require(train.skip_outliers >= 0, "train.skip_outliers", "a number >= 0 (0 = off)", train.skip_outliers);
  require(train.skip_window >= 8 && train.skip_window <= 1 << 16, "train.skip_window", "a number from 8 to 65536",
          train.skip_window);
  require(config.eval.held_out >= 1 && config.eval.held_out <= 1 << 30, "eval.held_out",
          "a number of samples from 1 to 1073741824", config.eval.held_out);
  require(config.eval.batches >= 0 && config.eval.batches <= 1 << 20, "eval.batches", "a number from 0 to 1048576",
          config.eval.batches);
  require(config.engine.threads <= 1024, "engine.threads", "at most 1024", config.engine.threads);
  check_device_name(config.engine.device);
  if (config.data.source == data::Source::arithmetic && config.eval.problems > 0) {
    const int64_t longest = 4 * config.data.digits + 3;  // "\n9999*9999=99980001": what a model reads of a problem
    require(config.model.context >= longest, "model.context",
            "at least " + std::to_string(longest) + " for whole problems of data.digits digits (or eval.problems=0)",
            config.model.context);
  }
  require(config.init.std >= 0, "init.std", "a number >= 0 (0 = the rule's own)", config.init.std);
  require(config.init.cut == 0 || config.init.cut >= 0.5, "init.cut",
          "0 (uncut) or at least 0.5: below that almost every draw is thrown away", config.init.cut);
}

int64_t lean_micro_batch(int64_t batch, const models::ModelConfig& model) {
  const int64_t sample = model.context * model.width;
  int64_t samples = 1;
  for (int64_t divisor = 2; divisor <= batch; ++divisor) {
    const int64_t elements = divisor * sample;
    if (batch % divisor == 0 && elements <= kLeanRows && elements * model.blocks <= kLeanActivations) samples = divisor;
  }
  return samples;
}

// Every entry of optim.freeze names parameters of the model, which has to be made for that (shapes only).
void check_freeze(const RunConfig& config) {
  if (config.optim.freeze.empty()) return;
  frozen(config.optim.freeze, models::make_model(config.model, config.init, 0, at::kMeta)->parameters());
}

// Fills in what was left to be derived, refuses what is impossible.
void resolve_run(RunConfig& config) {
  data::check(config.data);
  check_source(config);
  const data::DataSizes sizes = data::sizes_of(config.data);
  if (config.model.sees_images() && config.model.classes == 0) data::check_told_classes(config.data);
  models::resolve(config.model, {sizes.vocab, sizes.classes, sizes.channels});
  check(config.optim);
  check_freeze(config);
  if (config.train.micro_batch == 0 && config.train.batch >= 1 && config.train.batch <= kMaxBatch) {
    config.train.micro_batch = lean_micro_batch(config.train.batch, config.model);
  }
  if (config.train.residual_warmup != ResidualWarmup::none && config.train.residual_warmup_steps == 0) {
    config.train.residual_warmup_steps = kWarmupStepsOfABlock * config.model.blocks;
  }
  check(config);
}

// By what uses are judged: the resolved keys, and how many parameters of each kind there are. To know them the model
// has to be made (shapes only), so that is done only where somebody changed what goes by kinds.
config::Texts use_facts(const RunConfig& config) {
  config::Texts texts = config::flatten(config::print(config));
  const auto by_kind = [](const OptimConfig& optim) {
    config::Texts all = config::flatten(config::print(optim.decay));
    const config::Texts rates = config::flatten(config::print(optim.lr_scale));
    all.insert(all.end(), rates.begin(), rates.end());
    return all;
  };
  if (by_kind(config.optim) == by_kind({})) return texts;
  std::map<nn::ParameterKind, int64_t> counts;
  const auto model = models::make_model(config.model, config.init, 0, at::kMeta);
  for (const auto& parameter : model->parameters().list()) ++counts[parameter.kind];
  for (const auto& entry : EnumText<nn::ParameterKind>::names) {
    texts.emplace_back(kind_key(entry.first), std::to_string(counts[entry.first]));
  }
  return texts;
}

}  // namespace

config::Use with_residual_warmup() {
  config::Use use = config::for_values("train.residual_warmup", {ResidualWarmup::none});
  use.excluded = true;
  return use;
}

RunConfig read_config(const config::Value& value) {
  RunConfig config = config::read_used<RunConfig>(value, resolve_run, use_facts);
  config.given = given_keys(value);
  return config;
}

data::SampleShape sample_shape(const models::ModelConfig& model) {
  if (!model.sees_images()) return {.context = model.context, .vocab = model.vocab};
  return {.image = model.image, .channels = model.channels, .classes = model.classes};
}

std::string config_text(const RunConfig& config) { return config::to_yaml(config::print(config)); }

std::string weights_config_text(RunConfig config) {
  config.train.micro_batch = 0;
  return config_text(config);
}

RunConfig read_config_file(const std::string& path) {
  try {
    const config::Value value = config::parse_yaml(io::read_file(path), path);
    // Read as a file that a user writes it would mean the default model.
    if (value.kind == config::Value::Kind::null) throw DataError(path + ": is empty: expected the config of a run");
    RunConfig config = read_config(config::in_layer(value, config::kStoredLayer));
    take_origin(config, path);
    return config;
  } catch (const UsageError& error) {
    throw DataError(error.what());  // what a run wrote is data, not usage
  }
}

int64_t core_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool known = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0;
  const int64_t cores = known ? CPU_COUNT(&set) : std::max(1U, std::thread::hardware_concurrency());
  return most_cores > 0 ? std::min(cores, most_cores.load()) : cores;
}

void limit_cores(int64_t most) { most_cores = most; }

std::string cpu_name() {
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

void apply_engine(const EngineConfig& engine) {
  device_of(engine);
  ops::set_mode(engine.ops);
  ops::set_precision(engine.precision);
  const auto threads = static_cast<int>(engine.threads > 0 ? engine.threads : core_count());
  const int more = kPools * (threads - 1);
  if (const int room = startable_threads(more); room < more) {
    throw SystemError("engine.threads: " + std::to_string(threads) + (engine.threads > 0 ? "" : " (one per core)") +
                      " need " + std::to_string(more) + " threads beside the first, and the system lets this process " +
                      "start " + std::to_string(room) + " (" + thread_limits() + "); engine.threads=1 needs none");
  }
  at::set_num_threads(threads);
  // OpenMP starts its threads now, and not when a batch is already being made by the last one that was to be had.
  at::parallel_for(0, threads, 1, [](int64_t, int64_t) {});
}

std::string precision_note(const EngineConfig& engine, bool has_products) {
  const bool on_cpu = engine.precision == ops::Precision::bfloat16 && engine.device == "cpu";
  if (!on_cpu || has_products) return "";
  return "engine.precision: bfloat16: this CPU has no products of bfloat16 (AVX512-BF16): they are computed in float32 "
         "on rounded operands, in 0.9 to 1.1 times the time of engine.precision=float32";
}

std::string precision_note(const EngineConfig& engine) {
  return precision_note(engine, kernels::has_bfloat16_products());
}

void limit_threads() {
  const auto cores = static_cast<int>(core_count());
  if (startable_threads(cores - 1) < cores - 1) at::set_num_threads(1);
}

}  // namespace siamese::train

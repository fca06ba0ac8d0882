#include "siamese/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <span>

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/data/prefetch.h"
#include "siamese/eval/inputs.h"
#include "siamese/formats/convert.h"
#include "siamese/io/run_dir.h"
#include "siamese/models/registry.h"
#include "siamese/models/weights.h"
#include "siamese/ops/gradient.h"
#include "siamese/ops/operand.h"
#include "siamese/ops/reduce.h"
#include "siamese/train/device.h"
#include "siamese/train/freeze.h"
#include "siamese/train/residual_warmup.h"
#include "siamese/train/tasks.h"

namespace siamese::train {
namespace {

// Weights of another scheme may fit by name and shape and yet compute something else: the scheme has to be the same.
void load_initial_weights(const RunConfig& config, const models::Model& model) {
  try {
    const WeightFiles stored = WeightFiles::open(io::resolve_checkpoint(config.init.from));
    if (!stored.scheme.empty() && stored.scheme != config.model.residual) {
      throw DataError("expected a model with residual scheme " + config.model.residual + ", got " + stored.scheme +
                      (stored.scheme == "pre" ? " (`siamese upcycle` converts Pre-Norm models)" : "") + " in " +
                      stored.files.path().string());
    }
    formats::load_weights(stored.files, config.model, models::named_values(model.parameters()));
  } catch (const DataError& error) {
    throw DataError(std::string("init.from: ") + error.what());
  }
}

std::unique_ptr<models::Model> make_initial_model(const RunConfig& config, bool resuming) {
  auto model = models::make_model(config.model, config.init, config.train.seed, device_of(config.engine));
  if (!config.init.from.empty() && !resuming) {
    load_initial_weights(config, *model);
  }
  freeze(config.optim.freeze, model->parameters());
  return model;
}

int64_t micro_batches(const TrainConfig& train) { return train.batch / train.micro_batch; }

void check_ranks(const TrainConfig& train, int ranks) {
  const int64_t most = micro_batches(train);
  if (ranks <= most) return;
  throw UsageError("expected at most " + std::to_string(most) + (most == 1 ? " rank" : " ranks") +
                   ", one for each micro-batch (train.batch " + std::to_string(train.batch) + ", train.micro_batch " +
                   std::to_string(train.micro_batch) + "), got " + std::to_string(ranks) +
                   ": a smaller train.micro_batch makes more of them");
}

// An optimizer of matrices needs them whole.
Division division_of(const RunConfig& config, const nn::GradientBuffer& gradients, const models::Model& model,
                     const comm::Group* group) {
  if (group == nullptr || config.engine.shard == Shard::none) return {};
  return {gradients, model.blocks_of_parameters(), group->rank(), group->size(),
          config.optim.name != OptimizerName::muon};
}

// In the middle of a residual warm-up the model as it is after `step` steps, on the same tensors, so that whatever
// asks it gets the factors of this step; else null.
std::unique_ptr<models::Model> model_in_warmup(const RunConfig& config, const models::Model& model, int64_t step) {
  models::ModelConfig now = config.model;
  now.branch_scales = branch_scales(config, step);
  if (now.branch_scales.empty()) return nullptr;
  std::map<std::string, at::Tensor> tensors;
  for (const auto& tensor : models::named_values(model.parameters())) tensors[tensor.name] = tensor.value;
  return models::make_model(now, config.init, nn::Parameters(std::move(tensors)));
}

// The numbers of a state depend on each other: one that was edited, or of another checkpoint, does not go unnoticed.
void check_state(const TrainerState& state, const RunConfig& config, const std::filesystem::path& checkpoint) {
  const auto require = [&](bool ok, const std::string& what) {
    if (!ok) throw DataError((checkpoint / io::kTrainerFile).string() + ": " + what);
  };
  const auto text = [](auto number) { return std::to_string(number); };
  const auto named = io::checkpoint_step(std::filesystem::absolute(checkpoint).lexically_normal().filename().string());
  require(!named || *named == state.step,
          "step: expected " + text(named.value_or(0)) + ", as its folder says, got " + text(state.step));
  const uint64_t position =
      state.forked_position + static_cast<uint64_t>(state.step) * static_cast<uint64_t>(config.train.batch);
  require(state.position == position, "position: expected step x train.batch" +
                                          std::string(state.forked_position > 0 ? " + forked.position" : "") + " = " +
                                          text(position) + ", got " + text(state.position));
  const int64_t applied = state.forked_steps + state.step - state.skipped_steps;
  require(state.applied_steps == applied, "applied_steps: expected " + text(applied) + " (step - skipped_steps" +
                                              (state.forked_steps > 0 ? " + forked.applied_steps" : "") + "), got " +
                                              text(state.applied_steps));
  const auto window = static_cast<int64_t>(state.window.loss.size());
  require(window <= config.train.skip_window, "window: expected at most train.skip_window = " +
                                                  text(config.train.skip_window) + " steps, got " + text(window));
}

}  // namespace

Trainer::Trainer(const RunConfig& config, bool resuming, comm::Group* group)
    : config_(config),
      training_data_(
          data::open_batches(config.data, data::Split::train, sample_shape(config.model), config.train.seed)),
      test_data_(data::open_held_out(config.data, sample_shape(config.model))),
      classifier_(config),
      tokenizer_(resuming ? RunTokenizer{} : find_tokenizer(config.data)),
      tasks_(resuming ? std::nullopt : open_tasks(config, tokenizer_)),
      model_(make_initial_model(config, resuming)),
      group_(group != nullptr && group->size() > 1 ? group : nullptr),
      gradients_(model_->parameters()),
      division_(division_of(config, gradients_, *model_, group_)),
      exchange_(group_
                    ? std::make_unique<GradientExchange>(*group_, gradients_, model_->blocks_of_parameters(), division_)
                    : nullptr),
      weights_(division_.divided() ? std::make_unique<WeightParts>(*group_, model_->parameters(), gradients_, division_,
                                                                   divides_operands(config.engine))
                                   : nullptr),
      optimizer_(make_optimizer(config.optim, model_->parameters(), division_, weights_.get())),
      average_(config.train.ema, model_->parameters(), weights_.get()) {
  if (group_ != nullptr) check_ranks(config_.train, group_->size());
  state_.config = fixed_config(config_);
  state_.data = data::identity_of(config_.data);
  if (!resuming) take_tokenizer(std::move(tokenizer_));
  if (config_.init.optimizer && !resuming) fork();
}

void Trainer::take_tokenizer(RunTokenizer tokenizer) {
  tokenizer_ = std::move(tokenizer);
  state_.tokenizer = tokenizer_.hash();
  if (config_.model.sees_images()) return;
  words_ = words_of(tokenizer_, config_);
  check_prompts(*words_, config_);
}

void Trainer::fork() {
  try {
    const auto checkpoint = io::resolve_checkpoint(config_.init.from, io::CheckpointUse::resume);
    // Averages that the other run did not keep start from its weights.
    const WeightAverage none(0, model_->parameters());
    const bool averaged = is_there(io::file_or_index(checkpoint, io::kAverageFile));
    TrainerState other = load_checkpoint(
        checkpoint, config_.model, {*model_, *optimizer_, averaged ? average_ : none, tokenizer_, weights_.get()});
    state_.position = state_.forked_position = other.position;
    state_.applied_steps = state_.forked_steps = other.applied_steps;
    const auto most = static_cast<size_t>(config_.train.skip_window);
    if (config_.train.skip_outliers == 0) return;
    for (auto* const values : {&other.window.loss, &other.window.grad_norm}) {
      values->erase(values->begin(), values->end() - static_cast<std::ptrdiff_t>(std::min(values->size(), most)));
    }
    state_.window = std::move(other.window);
  } catch (const DataError& error) {
    throw DataError(std::string("init.optimizer: ") + error.what());
  }
}

Trainer::~Trainer() = default;

std::vector<models::Losses> Trainer::accumulate_gradients(const data::Batch& batch, SiteRecorder* recorder) const {
  const TrainConfig& train = config_.train;
  const ops::GradientsInPlace in_place;
  const ops::RoundWeightsOnce rounded;
  std::vector<models::Losses> made;
  const int64_t pieces = micro_batches(train);
  const comm::Share mine = group_ ? comm::share_of(pieces, group_->rank(), group_->size()) : comm::Share{0, pieces};
  for (int64_t piece = mine.begin; piece < mine.end; ++piece) {
    const int64_t first = piece * train.micro_batch;
    models::LossOptions options;
    options.stack.recompute_every = config_.engine.recompute;
    options.stack.recorder = first == 0 ? recorder : nullptr;
    options.stack.branch_scales = branch_scales(config_, state_.step);
    options.normalizer = std::max(1.0, eval::total_weight(batch));
    options.share = static_cast<double>(train.micro_batch) / static_cast<double>(train.batch);
    options.z_loss = train.z_loss;
    options.balance_loss = train.balance_loss;
    options.router_z_loss = train.router_z_loss;
    options.training = true;
    options.seed = train.seed;
    if (exchange_ && piece == mine.end - 1) {  // what this backward completes can go out
      // The recorder looks at every gradient.
      exchange_->begin(/*everywhere=*/recorder != nullptr);
      options.stack.passed = [this](int64_t block) { exchange_->passed(block); };
    }
    models::Losses& losses =
        made.emplace_back(model_->losses(eval::to_inputs(batch, first, train.micro_batch), options));
    losses.objective.backward();
    losses.objective.reset();  // and the graph with it
  }
  if (exchange_) exchange_->finish();
  return made;
}

void Trainer::read(const std::vector<models::Losses>& made, bool record, StepMetrics& metrics) const {
  std::vector<at::Tensor> list = {optimizer_->squared_gradient_norm()};
  at::Tensor counts;
  for (const auto& losses : made) {
    list.push_back(losses.loss);
    for (const auto& term : losses.extra) list.push_back(term.second);
    if (losses.expert_counts.defined())
      counts = counts.defined() ? counts + losses.expert_counts : losses.expert_counts;
  }
  if (counts.defined()) list.push_back(counts);
  const std::vector<double> numbers = ops::read_numbers(list);
  auto next = numbers.begin();
  const double squares = *next++;
  // The loss, its terms, the experts' counts: of this rank, then of all.
  std::vector<double> sums(1 + made.front().extra.size());
  for (size_t i = 0; i < made.size(); ++i) {
    for (double& sum : sums) sum += *next++;
  }
  const std::ptrdiff_t terms = std::ssize(sums);
  sums.insert(sums.end(), next, numbers.end());
  sums.push_back(squares);
  if (group_ != nullptr) comm::sum(*group_, std::span<double>(sums));
  metrics.grad_norm = std::sqrt(division_.divided() ? sums.back() : squares);
  sums.pop_back();
  metrics.loss = sums.front();
  for (size_t term = 0; term < made.front().extra.size(); ++term) {
    metrics.extra.emplace_back(made.front().extra[term].first, sums[1 + term]);
  }
  if (!counts.defined()) return;
  const ExpertLoad load = expert_load({sums.begin() + terms, sums.end()}, counts.size(1));
  metrics.extra.emplace_back("expert_max_load", load.largest);
  if (record) metrics.expert_load = load.shares;
}

void Trainer::judge(StepMetrics& metrics) {
  const TrainConfig& train = config_.train;
  if (!std::isfinite(metrics.loss) || !std::isfinite(metrics.grad_norm)) {
    metrics.skipped = true;
    metrics.skip_reason = SkipReason::non_finite;
    return;
  }
  if (train.skip_outliers == 0) return;
  const auto outlier =
      judge_step(state_.window, metrics.loss, metrics.grad_norm, train.skip_outliers, train.skip_window);
  if (!outlier) return;
  metrics.skipped = true;
  metrics.skip_reason = outlier->reason;
  metrics.skip_z = outlier->z;
}

StepMetrics Trainer::step() {
  const TrainConfig& train = config_.train;
  if (!prefetcher_) prefetcher_ = std::make_unique<data::Prefetcher>(*training_data_, train.batch, state_.position);
  const auto start = std::chrono::steady_clock::now();
  StepMetrics metrics;
  metrics.step = state_.step + 1;
  metrics.lr = learning_rate(config_.optim.schedule, config_.optim.lr, state_.step, train.steps);

  SiteRecorder recorder;
  const bool record = train.record_every > 0 && (state_.step == 0 || metrics.step % train.record_every == 0);
  gradients_.zero();
  read(accumulate_gradients(prefetcher_->next(), record ? &recorder : nullptr), record, metrics);
  if (record) metrics.sites = recorder.finish(model_->parameters());
  updating_ = true;
  judge(metrics);
  if (!metrics.skipped) {
    optimizer_->step(metrics.lr, metrics.grad_norm);
    if (weights_) weights_->share();
    average_.update();
  }
  state_.step += 1;
  state_.position += static_cast<uint64_t>(train.batch);
  state_.applied_steps = optimizer_->applied_steps();
  state_.skipped_steps += metrics.skipped ? 1 : 0;
  const bool non_finite = metrics.skipped && metrics.skip_reason == SkipReason::non_finite;
  state_.skips_in_a_row = non_finite ? state_.skips_in_a_row + 1 : 0;
  updating_ = false;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  metrics.tokens = static_cast<int64_t>(state_.position - state_.forked_position) * config_.model.context;
  metrics.step_ms = seconds * 1e3;
  metrics.samples_per_s = static_cast<double>(train.batch) / seconds;
  metrics.tokens_per_s = metrics.samples_per_s * static_cast<double>(config_.model.context);
  metrics.of_images = config_.model.sees_images();
  return metrics;
}

eval::Evaluation Trainer::evaluate(const std::function<void()>& alone) const {
  std::optional<WeightAverage::InUse> averaged;
  if (config_.eval.averaged) averaged.emplace(average_);
  const auto warming_up = model_in_warmup(config_, *model_, state_.step);
  return eval::evaluate({.model = warming_up ? *warming_up : *model_,
                         .data = config_.data,
                         .held_out = *test_data_.front().batches,
                         .batch = config_.train.batch,
                         .rows = config_.train.micro_batch,
                         .step = state_.step,
                         .classifier = classifier_.model(),
                         .tasks = tasks_ ? &*tasks_ : nullptr,
                         .sets = &test_data_,
                         .words = words_.get(),
                         .group = group_,
                         .alone = alone},
                        config_.eval);
}

std::string Trainer::resume_from(const std::filesystem::path& checkpoint, bool accept_changed_data) {
  const data::DataIdentity data = state_.data;
  TrainerState state = load_checkpoint(checkpoint, config_.model, parts());
  check_state(state, config_, checkpoint);
  const auto changed = state.data.empty() ? std::nullopt : data::difference(state.data, data);
  if (changed && !accept_changed_data) {
    throw DataError(*changed + ": the data are not what the run was trained on; `siamese resume " +
                    "--accept-changed-data` goes on with them all the same");
  }
  if (changed) state.accepted_data.push_back("step " + std::to_string(state.step) + ": " + *changed);
  const std::vector<std::string> changes = fixed_changes(config_, state);
  state.config = fixed_config(config_);
  state.data = data;
  state_ = std::move(state);
  take_tokenizer(read_tokenizer(checkpoint, state_.tokenizer));
  tasks_ = open_tasks(config_, tokenizer_);
  note_edits(changes);
  prefetcher_.reset();
  return changed.value_or("");
}

void Trainer::note_edits(const std::vector<std::string>& changes) {
  for (const std::string& change : changes) {
    state_.accepted_config.push_back("step " + std::to_string(state_.step) + ": " + change);
  }
}

std::filesystem::path Trainer::save(const std::filesystem::path& run_dir) {
  if (division_.divided()) {
    throw SystemError("the optimizer's state is divided among the ranks (engine.shard), which are inside a step");
  }
  return save_checkpoint(run_dir, config_, parts(), state_);
}

std::filesystem::path Trainer::save_together(const std::filesystem::path& run_dir) {
  return save_checkpoint(run_dir, config_, parts(), state_, group_);
}

void Trainer::help_save() const { help_save_checkpoint(config_, parts(), *group_); }

std::shared_ptr<BackgroundSave> Trainer::begin_save(const std::filesystem::path& run_dir) const {
  return BackgroundSave::begin(run_dir, config_, parts(), state_, group_);
}

std::shared_ptr<BackgroundSave> Trainer::help_begin_save() const {
  return BackgroundSave::help(config_, parts(), *group_);
}

}  // namespace siamese::train

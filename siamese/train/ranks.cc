#include "siamese/train/ranks.h"

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/config/yaml.h"
#include "siamese/io/checksum.h"
#include "siamese/io/run_dir.h"
#include "siamese/kernels/simd.h"
#include "siamese/ops/operand.h"
#include "siamese/train/provenance.h"
#include "siamese/train/pulse.h"

namespace siamese::train {

// `alive` asks for nothing (pulse.h).
enum class Order : int64_t { end, start, alive, step, save, begin_save, finish_save, evaluate };

namespace ranks_detail {

namespace fs = std::filesystem;

void send(comm::Group& group, Order order) { comm::from_leader(group, static_cast<int64_t>(order)); }

// The next that asks for something. Before the start rank 0 may take as long as it likes: it opens the data.
Order receive(comm::Group& group, double timeout = 0) {
  group.set_timeout(group.has_threads() ? timeout : 0);
  Order order = Order::alive;
  while (order == Order::alive) order = static_cast<Order>(comm::from_leader(group, 0));
  return order;
}

// What has to be the same everywhere for all ranks to compute the same, one "name: value" a line.
std::string facts_of(const Trainer& trainer, bool sees_run) {
  const runs::DataKey data = data_key(trainer.state().data);
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{}: {}\n", name, value);
  };
  add("build", this_build().text());
  add("LibTorch", this_build().libtorch);
  add("kernels", std::string(kernels::simd_level()));
  for (const auto& [name, part] : {std::pair("training data", data.train), std::pair("held-out data", data.val)}) {
    add(name, fmt::format("{} files of {} bytes, {}", part.files, part.bytes, io::checksum_text(part.hash)));
  }
  add("step", std::to_string(trainer.state().step));
  add("run directory", sees_run ? "there" : "not there: the ranks need a file system that they share");
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t from = 0; from < text.size();) {
    const size_t end = text.find('\n', from);
    lines.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return lines;
}

// "" when they agree.
std::string difference(const std::string& leader, const std::string& other) {
  const auto ours = lines_of(leader), theirs = lines_of(other);
  for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    if (ours[i] == theirs[i]) continue;
    const size_t colon = ours[i].find(": ");
    return fmt::format("{}: expected {}, as on rank 0, got {}", ours[i].substr(0, colon), ours[i].substr(colon + 2),
                       theirs[i].substr(std::min(theirs[i].size(), colon + 2)));
  }
  return "";
}

// Of all ranks to all; every rank has to come here.
struct Agreement {
  std::vector<std::string> facts;
  std::vector<std::string> names;
};
Agreement exchanged(comm::Group& group, const std::string& facts) {
  return {comm::gather(group, facts), comm::gather(group, group.name())};
}

// What the ranks tell each other after a step; every rank has to come here.
struct AfterStep {
  int signal = 0;           // the first that a rank caught, in their order
  bool all_written = true;  // every rank has written its part of a checkpoint
};
AfterStep told_after_step(comm::Group& group, int signal, const BackgroundSave* saving) {
  const auto ranks = static_cast<size_t>(group.size()), mine = static_cast<size_t>(group.rank());
  std::vector<double> told(2 * ranks);
  told[mine] = signal;
  told[ranks + mine] = saving != nullptr && saving->part_is_written() ? 1 : 0;
  comm::sum(group, std::span<double>(told));
  AfterStep all;
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (all.signal == 0) all.signal = static_cast<int>(told[rank]);
    all.all_written = all.all_written && told[ranks + rank] != 0;
  }
  return all;
}

}  // namespace ranks_detail

Ranks::Ranks(comm::Group& group) : group_(group) {}
Ranks::~Ranks() = default;

void Ranks::call(Order order) {
  if (pulse_) pulse_->turn_off();
  group_.set_timeout(0);  // a small message leaves without an answer
  ranks_detail::send(group_, order);
  group_.set_timeout(timeout_);
  exchanging_ = true;
}

void Ranks::release() {
  exchanging_ = false;
  if (pulse_) pulse_->turn_on();
}

void Ranks::start(const Trainer& trainer, const std::filesystem::path& run_dir,
                  const std::filesystem::path& checkpoint) {
  using namespace ranks_detail;
  send(group_, Order::start);
  comm::from_leader(group_, config_text(trainer.config()));
  comm::from_leader(group_, trainer.config().data.base);
  comm::from_leader(group_, fs::absolute(run_dir).string());
  comm::from_leader(group_, checkpoint.empty() ? "" : fs::absolute(checkpoint).string());
  const Agreement all = exchanged(group_, facts_of(trainer, /*sees_run=*/true));
  timeout_ = trainer.config().engine.timeout;
  for (size_t rank = 1; rank < all.facts.size(); ++rank) {
    const std::string differs = difference(all.facts.front(), all.facts[rank]);
    if (!differs.empty()) throw DataError(all.names[rank] + ": " + differs);
  }
  constexpr double kBeats = 4;  // within a timeout, so that one that comes late does no harm
  if (group_.size() == 1 || !group_.has_threads()) return;
  pulse_ = std::make_unique<Pulse>(timeout_ / kBeats, [this] { send(group_, Order::alive); });
  pulse_->turn_on();
}

StepMetrics Ranks::step(Trainer& trainer) {
  call(Order::step);
  StepMetrics metrics = trainer.step();
  const bool joining = saving_ && !saving_->parts_are_joined();
  const auto all = ranks_detail::told_after_step(group_, 0, joining ? saving_.get() : nullptr);
  signal_elsewhere_ = all.signal;
  if (joining && all.all_written) saving_->join_parts();
  release();
  return metrics;
}

// What rank 0 does alone, the others do not wait for inside it.
eval::Evaluation Ranks::evaluate(const Trainer& trainer) {
  call(Order::evaluate);
  eval::Evaluation evaluation = trainer.evaluate([this] { release(); });
  release();
  return evaluation;
}

// That a rank could not write is told by all to all; after that they wait for an order as ever.
std::filesystem::path Ranks::save(Trainer& trainer, const std::filesystem::path& run_dir) {
  if (exchanging_) return trainer.save(run_dir);
  call(Order::save);
  try {
    std::filesystem::path saved = trainer.save_together(run_dir);
    release();
    return saved;
  } catch (const comm::Unanswered&) {
    throw;
  } catch (const SystemError&) {
    release();
    throw;
  }
}

std::shared_ptr<BackgroundSave> Ranks::begin_save(const Trainer& trainer, const std::filesystem::path& run_dir) {
  call(Order::begin_save);
  try {
    saving_ = trainer.begin_save(run_dir);
    release();
    return saving_;
  } catch (const comm::Unanswered&) {
    throw;
  } catch (const SystemError&) {
    release();
    throw;
  }
}

std::filesystem::path Ranks::finish_save() {
  const std::shared_ptr<BackgroundSave> saving = std::move(saving_);
  if (!saving->parts_are_joined() && !exchanging_) {
    call(Order::finish_save);
    saving->join_parts();
    release();
  }
  return saving->finish();
}

bool Ranks::finish() {
  if (exchanging_) return false;
  if (pulse_) pulse_->turn_off();
  group_.set_timeout(0);
  ranks_detail::send(group_, Order::end);
  return true;
}

void follow(comm::Group& group, const std::function<int()>& stop_signal) {
  using namespace ranks_detail;
  if (receive(group) == Order::end) return;
  const config::Value value = config::parse_yaml(comm::from_leader(group, std::string()), "the config of rank 0");
  RunConfig config = read_config(config::in_layer(value, config::kStoredLayer));
  config.data.base = comm::from_leader(group, std::string());
  const fs::path run_dir = comm::from_leader(group, std::string());
  const fs::path checkpoint = comm::from_leader(group, std::string());
  const ops::PrecisionGuard only_here(config.engine.precision);
  apply_engine(config.engine);
  const bool sees_run = is_there(run_dir / io::kRunFile);
  Trainer trainer(config, !checkpoint.empty(), &group);
  // Rank 0 was asked about data that changed, and every rank's data are compared with rank 0's.
  if (!checkpoint.empty() && sees_run) trainer.resume_from(checkpoint, /*accept_changed_data=*/true);
  exchanged(group, facts_of(trainer, sees_run));
  std::shared_ptr<BackgroundSave> saving;
  const auto join_parts = [&] {
    saving->join_parts();
    saving.reset();
  };
  const double timeout = config.engine.timeout;
  for (Order order = receive(group, timeout); order != Order::end; order = receive(group, timeout)) {
    group.set_timeout(timeout);
    if (order == Order::save) {
      trainer.help_save();
    } else if (order == Order::begin_save) {
      saving = trainer.help_begin_save();
    } else if (order == Order::finish_save) {
      join_parts();
    } else if (order == Order::evaluate) {
      trainer.evaluate();
    } else {
      trainer.step();
      const AfterStep all = told_after_step(group, stop_signal ? stop_signal() : 0, saving.get());
      if (saving && all.all_written) join_parts();
    }
  }
}

}  // namespace siamese::train

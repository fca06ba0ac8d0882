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

namespace siamese::train {
namespace ranks_detail {

namespace fs = std::filesystem;

enum class Order : int64_t { end, start, step, save, evaluate };

// Whoever waits for an order waits as long as rank 0 draws samples or asks tasks; what all do together, a step, a save,
// the passes of an evaluation, takes all about as long.
void send(comm::Group& group, Order order) {
  group.set_timeout(0);
  comm::from_leader(group, static_cast<int64_t>(order));
}
Order receive(comm::Group& group) {
  group.set_timeout(0);
  return static_cast<Order>(comm::from_leader(group, 0));
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

// The signals that the ranks have caught; every rank has to come here. The first, in their order.
int first_signal(comm::Group& group, int mine) {
  std::vector<double> signals(static_cast<size_t>(group.size()));
  signals[static_cast<size_t>(group.rank())] = mine;
  comm::sum(group, std::span<double>(signals));
  for (const double signal : signals) {
    if (signal != 0) return static_cast<int>(signal);
  }
  return 0;
}

}  // namespace ranks_detail

void Ranks::start(const Trainer& trainer, const std::filesystem::path& run_dir,
                  const std::filesystem::path& checkpoint) {
  using namespace ranks_detail;
  send(group_, Order::start);
  comm::from_leader(group_, config_text(trainer.config()));
  comm::from_leader(group_, trainer.config().data.base);
  comm::from_leader(group_, fs::absolute(run_dir).string());
  comm::from_leader(group_, checkpoint.empty() ? "" : fs::absolute(checkpoint).string());
  const Agreement all = exchanged(group_, facts_of(trainer, /*sees_run=*/true));
  for (size_t rank = 1; rank < all.facts.size(); ++rank) {
    const std::string differs = difference(all.facts.front(), all.facts[rank]);
    if (!differs.empty()) throw DataError(all.names[rank] + ": " + differs);
  }
}

StepMetrics Ranks::step(Trainer& trainer) {
  exchanging_ = true;
  ranks_detail::send(group_, ranks_detail::Order::step);
  group_.set_timeout(trainer.config().engine.timeout);
  StepMetrics metrics = trainer.step();
  signal_elsewhere_ = ranks_detail::first_signal(group_, 0);
  exchanging_ = false;
  return metrics;
}

// What rank 0 does alone, the others do not wait for inside it.
eval::Evaluation Ranks::evaluate(const Trainer& trainer) {
  exchanging_ = true;
  ranks_detail::send(group_, ranks_detail::Order::evaluate);
  group_.set_timeout(trainer.config().engine.timeout);
  eval::Evaluation evaluation = trainer.evaluate();
  exchanging_ = false;
  return evaluation;
}

std::filesystem::path Ranks::save(Trainer& trainer, const std::filesystem::path& run_dir) {
  if (exchanging_) return trainer.save(run_dir);
  ranks_detail::send(group_, ranks_detail::Order::save);
  group_.set_timeout(trainer.config().engine.timeout);
  return trainer.save_together(run_dir);
}

bool Ranks::finish() {
  if (exchanging_) return false;
  ranks_detail::send(group_, ranks_detail::Order::end);
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
  for (Order order = receive(group); order != Order::end; order = receive(group)) {
    group.set_timeout(config.engine.timeout);
    if (order == Order::save) {
      trainer.help_save();
    } else if (order == Order::evaluate) {
      trainer.evaluate();
    } else {
      trainer.step();
      first_signal(group, stop_signal ? stop_signal() : 0);
    }
  }
}

}  // namespace siamese::train

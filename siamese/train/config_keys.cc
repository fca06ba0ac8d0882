#include "siamese/train/config_keys.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/config/fields.h"
#include "siamese/io/run_dir.h"
#include "siamese/io/strict_json.h"
#include "siamese/train/trainer_state.h"

namespace siamese::train {
namespace {

constexpr size_t kMostNamed = 3;

bool is_one_of(std::string_view key, std::initializer_list<std::string_view> keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::string as_utf8(const std::string& text) {
  using nlohmann::json;
  return io::read_json(io::json_text(json(text)), "a text").get<std::string>();
}

// The first few of many.
std::string named_changes(std::vector<std::string> changes) {
  const size_t more = changes.size() - std::min(changes.size(), kMostNamed);
  changes.resize(changes.size() - more);
  return join(changes, "; ") + (more > 0 ? fmt::format("; and {} more", more) : "");
}

// Of data without end the first samples are those of eval.held_out: runs that were configured either way are the same.
RunConfig with_one_way_to_hold_out(RunConfig config) {
  using data::Source;
  const Source source = config.data.source;
  const bool endless = source == Source::arithmetic || source == Source::shapes || source == Source::random;
  if (!endless || config.eval.batches == 0) return config;
  config.eval.held_out = config.eval.held_out_samples(config.train.batch);
  config.eval.batches = 0;
  return config;
}

}  // namespace

bool decides_result(std::string_view key) {
  if (key.starts_with("engine.")) return key == "engine.precision";
  return !is_one_of(
      key, {"eval.tasks", "eval.task_limit", "eval.tokenizer", "train.max_hours", "train.keep_last", "train.keep_every",
            "train.save_in_background", "train.checkpoint_every", "train.record_every", "train.tensorboard"});
}

std::string deciding_override(const std::vector<std::string>& overrides) {
  for (const std::string& assignment : overrides) {
    const bool of_engine = assignment.starts_with("engine=") && assignment.find("precision") == std::string::npos;
    if (!of_engine && decides_result(assignment.substr(0, assignment.find('=')))) return assignment;
  }
  return "";
}

bool tells_where(std::string_view key) { return is_one_of(key, {"data.train", "data.val", "data.tokenizer"}); }

bool may_be_edited(std::string_view key) {
  return !decides_result(key) || key.starts_with("eval.") ||
         is_one_of(key, {"train.steps", "train.eval_every", "train.max_skips"});
}

ConfigTexts result_config(const RunConfig& config) {
  const ConfigTexts all = config::flatten(config::print(with_one_way_to_hold_out(config)));
  ConfigTexts texts;
  for (const config::KeyUse& key : config::key_uses<RunConfig>()) {
    if (!decides_result(key.path) || key.broken(all) != nullptr) continue;
    texts.emplace_back(key.path, *config::find_text(all, key.path));
  }
  return texts;
}

ConfigTexts fixed_config(const RunConfig& config) {
  ConfigTexts texts = config::flatten(config::print(config));
  std::erase_if(texts, [](const auto& entry) { return may_be_edited(entry.first) || tells_where(entry.first); });
  for (auto& [key, text] : texts) text = as_utf8(text);
  return texts;
}

std::vector<std::string> fixed_changes(const RunConfig& config, const TrainerState& state) {
  std::vector<std::string> changes;
  for (const auto& [key, text] : fixed_config(config)) {
    const std::string* const saved = config::find_text(state.config, key);
    if (saved != nullptr && *saved != text) changes.push_back(fmt::format("{}: was {}, is {}", key, *saved, text));
  }
  return changes;
}

void check_unchanged(const RunConfig& config, const TrainerState& state, const std::filesystem::path& file) {
  const std::vector<std::string> changes = fixed_changes(config, state);
  if (changes.empty()) return;
  throw DataError(fmt::format("{}: was changed since the checkpoint was saved: {}: put it back", file.string(),
                              named_changes(changes)));
}

RunConfig edited_config(const RunConfig& run, const std::vector<std::string>& overrides) {
  if (overrides.empty()) return run;
  config::Value value = config::in_layer(config::print(run), config::kStoredLayer);
  for (const std::string& assignment : overrides) config::apply_override(value, assignment);
  RunConfig edited = read_config(value);
  edited.given = run.given;
  edited.data.base = run.data.base;
  const ConfigTexts before = config::flatten(config::print(run));
  for (const auto& [key, text] : config::flatten(config::print(edited))) {
    const std::string* const was = config::find_text(before, key);
    if (may_be_edited(key) || tells_where(key) || (was != nullptr && *was == text)) continue;
    throw UsageError(fmt::format(
        "override of {}: was {}, got {}: a run that goes on keeps it; what may change: keys of engine but precision, "
        "keys "
        "of eval, train.steps, eval_every, checkpoint_every, record_every, tensorboard, keep_last, keep_every, "
        "save_in_background, "
        "max_hours "
        "and max_skips; a new run with it: siamese train ... init.from=RUN init.optimizer=true",
        key, was != nullptr ? *was : "nothing", text));
  }
  return edited;
}

std::vector<std::string> result_edits(const RunConfig& now, const RunConfig& then) {
  std::vector<std::string> edits;
  const ConfigTexts before = config::flatten(config::print(then));
  for (const auto& [key, text] : config::flatten(config::print(now))) {
    const std::string* const was = config::find_text(before, key);
    if (!may_be_edited(key) || !decides_result(key) || was == nullptr || *was == text) continue;
    edits.push_back(fmt::format("{}: was {}, is {}", key, *was, text));
  }
  return edits;
}

std::string check_edits(const RunConfig& now, const RunConfig& then, const TrainerState& state,
                        const std::filesystem::path& run_dir, const std::filesystem::path& checkpoint) {
  const ConfigTexts texts = config::flatten(config::print(now));
  const ConfigTexts before = config::flatten(config::print(then));
  const std::vector<config::KeyDoc> keys = config::describe<RunConfig>();
  std::vector<std::string> refused, edited;
  bool all_as_saved = true;  // what is refused is no fault of RUN/config.yaml
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto& [key, text] = texts[i];  // the keys are those of the struct, so both lists have the same
    const std::string& other = before[i].second;
    const std::string* const found = config::find_text(state.config, key);
    const std::string saved = found != nullptr ? *found : as_utf8(other);
    const bool moved = tells_where(key) && !state.data.empty();  // what they hold is compared when they are read
    if (text != other && !may_be_edited(key) && !moved) {
      refused.push_back(fmt::format("{}: {}, and the checkpoint says {}", key, text, other));
      all_as_saved = all_as_saved && found != nullptr && *found == as_utf8(text);
    } else if (as_utf8(text) != saved) {
      edited.push_back(fmt::format("{}: was {}, is {}", key, saved, text));
      const config::Use* const broken = text != keys[i].fallback ? keys[i].broken(texts) : nullptr;
      if (text != other && broken != nullptr) {
        throw DataError(fmt::format("{}: {}: has no effect: {}", (run_dir / io::kConfigFile).string(), key,
                                    broken->why_not(texts)));
      }
    }
  }
  const auto run_file = run_dir / io::kConfigFile, checkpoint_file = checkpoint / io::kConfigFile;
  if (!refused.empty() && all_as_saved) check_unchanged(then, state, checkpoint_file);
  if (!refused.empty()) {
    throw DataError(fmt::format(
        "{}: was changed since {} was saved: {}: put it back to go on with the run, or make the same change in {} if "
        "it is meant",
        run_file.string(), checkpoint.filename().string(), named_changes(refused), checkpoint_file.string()));
  }
  std::string said;
  if (!edited.empty()) {
    said = fmt::format("{}: edited since {} was saved: {}", run_file.string(), checkpoint.filename().string(),
                       join(edited, "; "));
  }
  if (now.train.steps == then.train.steps || now.optim.schedule.kind == ScheduleKind::constant) return said;
  return said + fmt::format(
                    "; the {} schedule follows the new end, so that the learning rates from here on are not "
                    "those of a run of {} steps from its start",
                    enum_text(now.optim.schedule.kind), now.train.steps);
}

}  // namespace siamese::train

#include "siamese/train/config_keys.h"

#include <algorithm>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/nearest.h"
#include "siamese/config/fields.h"
#include "siamese/io/run_dir.h"

namespace siamese::train {
namespace {

constexpr size_t kMostNamed = 3;

bool is_one_of(std::string_view key, std::initializer_list<std::string_view> keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

bool decides_result(std::string_view key) {
  return !key.starts_with("engine.") && !is_one_of(key, {"train.max_hours", "train.keep_last", "train.keep_every"});
}

bool may_be_edited(std::string_view key) {
  return !decides_result(key) || key.starts_with("eval.") ||
         is_one_of(key, {"train.steps", "train.eval_every", "train.checkpoint_every", "train.record_every",
                         "train.max_skips"});
}

ConfigTexts result_config(const RunConfig& config) {
  ConfigTexts texts = config::flatten(config::print(config));
  std::erase_if(texts, [](const auto& entry) { return !decides_result(entry.first); });
  return texts;
}

std::string check_edits(const RunConfig& now, const RunConfig& then, const std::filesystem::path& run_dir,
                        const std::filesystem::path& checkpoint) {
  const ConfigTexts texts = config::flatten(config::print(now));
  const ConfigTexts before = config::flatten(config::print(then));
  std::vector<std::string> refused;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto& [key, text] = texts[i];  // the keys are those of the struct, so both lists have the same
    if (text != before[i].second && !may_be_edited(key)) {
      refused.push_back(fmt::format("{}: {}, and the checkpoint says {}", key, text, before[i].second));
    }
  }
  if (!refused.empty()) {
    const size_t more = refused.size() - std::min(refused.size(), kMostNamed);
    refused.resize(std::min(refused.size(), kMostNamed));
    throw DataError(
        fmt::format("{}: was changed since {} was saved: {}{}: put it back to go on with the run, or make "
                    "the same change in {} if it is meant",
                    (run_dir / io::kConfigFile).string(), checkpoint.filename().string(), join(refused, "; "),
                    more > 0 ? fmt::format("; and {} more", more) : "", (checkpoint / io::kConfigFile).string()));
  }
  if (now.train.steps == then.train.steps || now.optim.schedule.kind == ScheduleKind::constant) return "";
  return fmt::format(
      "train.steps was {} and is {} now: the {} schedule follows the new end, so that the learning rates "
      "from here on are not those of a run of {} steps from its start",
      then.train.steps, now.train.steps, enum_text(now.optim.schedule.kind), now.train.steps);
}

}  // namespace siamese::train

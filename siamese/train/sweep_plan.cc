#include "siamese/train/sweep_plan.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/base/nearest.h"
#include "siamese/config/fields.h"
#include "siamese/config/load.h"
#include "siamese/config/yaml.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/checksum.h"
#include "siamese/runs/sweep_file.h"
#include "siamese/train/config_origin.h"

namespace siamese::train {
namespace {

using config::Value;

const std::string kNoVariant = "base";

// "siamese(x=hybrid)" -> "siamese-x-hybrid": letters, digits and dots, single dashes.
std::string folder_name(const std::string& text) {
  std::string name;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_') {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name;
}

std::string last_part(const std::string& key) { return key.substr(key.rfind('.') + 1); }

// "pre, attention_norm=qkv": the scheme first, then whatever else the variant sets.
std::string variant_label(const Value& variant) {
  if (const Value* label = variant.find("label")) return label->text;
  std::string text;
  if (const Value* recipe = variant.find("config")) text = recipe->text;
  if (const Value* residual = variant.find("model.residual")) text += (text.empty() ? "" : ", ") + residual->text;
  for (const auto& [key, value] : variant.entries) {
    if (key == "model.residual" || key == "config") continue;
    text += (text.empty() ? "" : ", ") + last_part(key) + "=" + config::inline_yaml(value);
  }
  return text.empty() ? kNoVariant : text;
}

// All points of the grid, the last key varying fastest.
std::vector<Value> grid_points(const Value& grid, const std::string& source) {
  std::vector<Value> points = {Value::map()};
  for (const auto& [key, values] : grid.entries) {
    const std::vector<Value> choices = values.kind == Value::Kind::list ? values.items : std::vector<Value>{values};
    if (choices.empty()) throw UsageError(source + ": grid." + key + ": expected at least one value");
    std::vector<Value> longer;
    for (const auto& point : points) {
      for (const auto& choice : choices) {
        longer.push_back(point);
        longer.back()[key] = choice;
      }
    }
    points = std::move(longer);
  }
  return points;
}

// Each above the recipe that a run starts from, below the command line.
constexpr int kSetLayer = config::kFileLayer + 1;
constexpr int kVariantLayer = kSetLayer + 1;
constexpr int kGridLayer = kVariantLayer + 1;

// `names`: keys that are not of a run's config.
void apply(Value& root, const Value* overrides, int layer, const std::string& source,
           const std::vector<std::string>& names = {}) {
  if (overrides == nullptr || overrides->kind == Value::Kind::null) return;
  if (!overrides->is_map()) throw UsageError(source + ": expected a map of dotted keys, got " + overrides->kind_text());
  for (const auto& [key, value] : overrides->entries) {
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    config::set_path(root, key, config::in_layer(value, layer));
  }
}

// The entry `key`, or null when it is not there; UsageError when it is something else than `kind`.
const Value* find_kind(const Value& sweep, const std::string& key, Value::Kind kind, const std::string& expected) {
  const Value* const value = sweep.find(key);
  if (value != nullptr && value->kind != kind) {
    throw UsageError(value->where + ": " + key + ": expected " + expected + ", got " + value->kind_text());
  }
  return value;
}

// A recipe where a sweep is expected: the next step is another verb.
void refuse_recipe(const Value& sweep, const std::vector<std::string>& known, const std::string& source) {
  std::vector<std::string> sections = config::print(RunConfig{}).keys();
  sections.emplace_back("preset");
  const auto has = [&](const auto& key) { return sweep.find(key) != nullptr; };
  if (std::any_of(known.begin(), known.end(), has) || std::none_of(sections.begin(), sections.end(), has)) return;
  throw UsageError(source + ": is the config of one run, not a sweep: siamese train " + source);
}

// An override of what the sweep varies would train the same run under different names.
void check_overrides(const std::vector<std::string>& overrides, const Value* grid, const std::vector<Value>& variants,
                     const std::string& source) {
  std::vector<std::string> varied = grid != nullptr ? grid->keys() : std::vector<std::string>{};
  for (const auto& variant : variants) {
    for (const auto& key : variant.keys()) varied.push_back(key);
  }
  for (const auto& assignment : overrides) {
    const std::string key = assignment.substr(0, assignment.find('='));
    for (const auto& other : varied) {
      if (other == key || other.starts_with(key + ".")) {
        throw UsageError("override '" + assignment + "': " + other + " varies in " + source + "; change it there");
      }
    }
  }
}

}  // namespace

SweepPlan plan_sweep(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                     const std::vector<std::filesystem::path>& config_folders, const std::string& only) {
  return plan_sweep_text(io::read_file(path), path, overrides, config_folders, only);
}

SweepPlan plan_sweep_text(const std::string& text, const std::filesystem::path& path,
                          const std::vector<std::string>& overrides,
                          const std::vector<std::filesystem::path>& config_folders, const std::string& only) {
  const std::string source = path.string();
  const Value sweep = config::parse_yaml(text, source);
  const std::vector<std::string> known = {"sweep", "config", "set", "variants", "grid", "record"};
  if (!sweep.is_map()) throw UsageError(source + ": expected a map with " + join(known));
  refuse_recipe(sweep, known, source);
  for (const auto& [key, value] : sweep.entries) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw UsageError(value.where + ": " + key + ": unknown key" + did_you_mean(key, known));
    }
  }
  const Value* const base_name = find_kind(sweep, "config", Value::Kind::scalar, "the name of a recipe");
  const Value* const name = find_kind(sweep, "sweep", Value::Kind::scalar, "a name");
  const Value* const grid = find_kind(sweep, "grid", Value::Kind::map, "a map of keys to lists");
  const Value* const variants = find_kind(sweep, "variants", Value::Kind::list, "a list of maps");
  const Value* const record = find_kind(sweep, "record", Value::Kind::scalar, "the path of a file");
  if (record != nullptr && record->text.empty())
    throw UsageError(record->where + ": record: expected the path of a file, got ''");
  if (variants != nullptr && variants->items.empty()) throw UsageError(source + ": variants: expected at least one");
  std::vector<std::filesystem::path> folders = {path.parent_path()};
  folders.insert(folders.end(), config_folders.begin(), config_folders.end());
  std::map<std::string, Value> recipes;
  const auto load_base = [&](const Value& variant) -> const Value& {
    const Value* const own = variant.is_map() ? variant.find("config") : nullptr;
    if (own == nullptr && base_name == nullptr) {
      throw UsageError(source + ": config: the recipe all runs start from is missing");
    }
    const std::string& recipe = (own != nullptr ? own : base_name)->text;
    auto found = recipes.find(recipe);
    if (found == recipes.end()) found = recipes.emplace(recipe, load_given(recipe, folders)).first;
    return found->second;
  };
  const auto choices = variants != nullptr ? variants->items : std::vector<Value>{Value::map()};
  for (const auto& variant : choices) {
    if (variant.is_map() || variant.kind == Value::Kind::null) continue;
    throw UsageError(source + ": variants: expected a map of dotted keys, got " + variant.kind_text());
  }
  check_overrides(overrides, grid, choices, source);
  SweepPlan plan;
  plan.name = name != nullptr ? name->text : path.stem().string();
  if (plan.name != folder_name(plan.name) || plan.name.empty() || plan.name.front() == '.') {
    throw UsageError(source + ": sweep: expected a name of letters, digits, '.', '_' and '-', got '" + plan.name + "'");
  }
  if (record != nullptr) plan.record = (path.parent_path() / record->text).lexically_normal();
  std::set<std::string> names;
  for (const auto& point : grid_points(grid != nullptr ? *grid : Value::map(), source)) {
    for (const auto& variant : choices) {
      PlannedRun run{"", variant_label(variant), {}};
      run.dir = folder_name(run.variant);
      // Only learning rate and seed are axes of the report; any other key of the grid makes another variant.
      for (const auto& [key, value] : point.entries) {
        if (key == "optim.lr" || key == "train.seed") continue;
        const std::string part =
            key == "model.residual" ? value.text : last_part(key) + "=" + config::inline_yaml(value);
        run.variant = run.variant == kNoVariant ? part : run.variant + ", " + part;
      }
      for (const auto& [key, value] : point.entries) {
        const bool list = value.kind == Value::Kind::list;  // of optim.freeze, data.train
        run.dir += "-" + folder_name(last_part(key) + (list ? config::inline_yaml(value) : value.text));
      }
      if (!names.insert(run.dir).second) {
        throw UsageError(source + ": two runs have the same name '" + run.dir +
                         "': give the variants different labels");
      }
      if (!only.empty() && run.dir != only) continue;
      Value root = load_base(variant);
      apply(root, sweep.find("set"), kSetLayer, source + ": set");
      apply(root, &variant, kVariantLayer, source + ": variants", {"label", "config"});
      apply(root, &point, kGridLayer, source + ": grid");
      for (const auto& assignment : overrides) config::apply_override(root, assignment);
      run.config = read_config(root);
      plan.runs.push_back(std::move(run));
    }
  }
  return plan;
}

std::string plan_checksum(const PlannedRun& run) {
  return io::checksum_text(io::checksum(run.variant + "\n" + config_text(run.config)));
}

std::string to_json(const SweepPlan& plan) {
  runs::SweepFile file{plan.name, {}};
  for (const auto& run : plan.runs) {
    file.runs.push_back({run.dir, run.variant, run.config.optim.lr, run.config.train.seed});
  }
  return runs::to_json(file);
}

}  // namespace siamese::train

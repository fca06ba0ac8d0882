#include "siamese/io/run_dir.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/message.h"
#include "siamese/io/strict_json.h"

namespace siamese::io {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kStepPrefix = "step";

// What trainer.json lists in `files`: what this checkpoint holds beside the files that all have. One that cannot be
// read lists nothing; whoever loads it says what is wrong with it.
std::vector<std::string> further_files(const fs::path& trainer_file) {
  const std::string text = read_file(trainer_file);
  nlohmann::json state;
  try {
    state = read_json(text, trainer_file.string());
  } catch (const DataError&) {
  }
  std::vector<std::string> files;
  if (!state.is_object() || !state.contains("files") || !state["files"].is_array()) return files;
  for (const auto& file : state["files"]) {
    if (file.is_string()) files.push_back(file.get<std::string>());
  }
  return files;
}

// Steps of the folders named step{N} that are complete for `use`, ascending.
std::vector<int64_t> complete_steps(const fs::path& run_dir, CheckpointUse use) {
  std::vector<int64_t> steps;
  if (!is_there(run_dir)) return steps;
  for (const fs::path& entry : folder_entries(run_dir)) {
    const auto step = checkpoint_step(entry.filename().string());
    if (step && missing_files(entry, use).empty()) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

}  // namespace

std::string shard_name(std::string_view file, int rank, int ranks) {
  const std::string_view stem = file.substr(0, file.size() - kSafetensorsEnding.size());
  return fmt::format("{}-{:05}-of-{:05}{}", stem, rank + 1, ranks, kSafetensorsEnding);
}

std::string index_name(std::string_view file) { return fmt::format("{}.index.json", file); }

bool is_shard_or_index(std::string_view name) {
  constexpr std::string_view kShape = "-00000-of-00000";
  for (const auto file : {kModelFile, kOptimFile, kAverageFile}) {
    if (name == index_name(file)) return true;
    const std::string_view stem = file.substr(0, file.size() - kSafetensorsEnding.size());
    if (name.size() != file.size() + kShape.size() || !name.starts_with(stem) || !name.ends_with(kSafetensorsEnding))
      continue;
    const std::string_view numbers = name.substr(stem.size(), kShape.size());
    const auto fits = [](char got, char shape) { return shape == '0' ? got >= '0' && got <= '9' : got == shape; };
    if (std::equal(numbers.begin(), numbers.end(), kShape.begin(), fits)) return true;
  }
  return false;
}

fs::path file_or_index(const fs::path& folder, std::string_view file) {
  const fs::path index = folder / index_name(file);
  return !is_there(folder / file) && is_there(index) ? index : folder / file;
}

std::string checkpoint_name(int64_t step) {
  SIAMESE_INVARIANT(step >= 0);
  return fmt::format("{}{}", kStepPrefix, step);
}

std::optional<int64_t> checkpoint_step(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kStepPrefix.size());
  int64_t step = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  // One text per step: no sign, no leading zero, nothing after.
  if (error != std::errc() || step < 0 || checkpoint_name(step) != name) return std::nullopt;
  return step;
}

void write_latest(const fs::path& run_dir, std::string_view name) {
  SIAMESE_INVARIANT(checkpoint_step(name).has_value());
  write_file_atomic(run_dir / kLatestFile, fmt::format("{}\n", name));
}

std::optional<std::string> read_latest(const fs::path& run_dir) {
  const fs::path path = run_dir / kLatestFile;
  if (!is_there(path)) return std::nullopt;
  std::string text = read_file(path);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  if (!checkpoint_step(text)) {
    throw DataError(
        fmt::format("{}: expected the name of a checkpoint such as step500, got {}", path.string(), in_quotes(text)));
  }
  return text;
}

std::vector<std::string> missing_files(const fs::path& checkpoint, CheckpointUse use) {
  std::vector<std::string> missing;
  const bool folder = is_folder(checkpoint);
  const auto has = [&](std::string_view file) { return folder && is_file(checkpoint / file); };
  const auto need = [&](std::string_view file) {
    if (!has(file)) missing.emplace_back(file);
  };
  need(kConfigFile);
  if (!has(kModelIndexFile)) need(kModelFile);
  if (use == CheckpointUse::resume) {
    if (!has(index_name(kOptimFile))) need(kOptimFile);
    need(kTrainerFile);
    if (has(kTrainerFile)) {
      for (const std::string& file : further_files(checkpoint / kTrainerFile)) need(file);
    }
  }
  return missing;
}

fs::path resolve_checkpoint(const fs::path& run_or_checkpoint, CheckpointUse use) {
  const std::string name = run_or_checkpoint.string();
  if (!is_folder(run_or_checkpoint)) {
    throw DataError(fmt::format("{}: expected a run directory or a checkpoint, got {}", name,
                                is_file(run_or_checkpoint) ? "a file" : "nothing there"));
  }
  const auto require_complete = [&](const fs::path& checkpoint) {
    const auto missing = missing_files(checkpoint, use);
    if (!missing.empty()) {
      const bool of_others = !is_file(checkpoint / kConfigFile) && is_file(checkpoint / "config.json");
      throw DataError(fmt::format("{}: incomplete checkpoint: missing {}{}", checkpoint.string(), join(missing),
                                  of_others ? "; by its config.json a model of Hugging Face's: `siamese convert " +
                                                  checkpoint.string() +
                                                  " --from LAYOUT --to siamese -o OUT` makes a checkpoint of it"
                                            : ""));
    }
    return checkpoint;
  };
  if (is_file(run_or_checkpoint / kModelFile) || is_file(run_or_checkpoint / kModelIndexFile))
    return require_complete(run_or_checkpoint);
  if (const auto latest = read_latest(run_or_checkpoint)) {
    const fs::path checkpoint = run_or_checkpoint / *latest;
    if (!is_folder(checkpoint)) {
      throw DataError(fmt::format("{}: its '{}' names {}, which is missing", name, kLatestFile, *latest));
    }
    return require_complete(checkpoint);
  }
  // A run killed between its first checkpoint and the first `latest`.
  const auto steps = complete_steps(run_or_checkpoint, use);
  if (!steps.empty()) return run_or_checkpoint / checkpoint_name(steps.back());
  throw DataError(
      fmt::format("{}: no checkpoint: expected a run directory ('{}' and step{{N}}/) or a checkpoint ({}, {})", name,
                  kLatestFile, kConfigFile, kModelFile));
}

std::vector<int64_t> list_checkpoints(const fs::path& run_dir) {
  return complete_steps(run_dir, CheckpointUse::resume);
}

}  // namespace siamese::io

#include "siamese/train/trainer_state.h"

#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/strict_json.h"

namespace siamese::train {
namespace {

constexpr int kStateFormat = 1;

[[noreturn]] void wrong(const std::filesystem::path& path, const std::string& key, const std::string& expected) {
  throw DataError(path.string() + ": " + key + ": expected " + expected);
}

std::vector<double> numbers(const nlohmann::json& list, const std::filesystem::path& path, const std::string& key) {
  if (!list.is_array()) wrong(path, key, "a list of numbers");
  std::vector<double> values;
  for (const auto& item : list) {
    if (!item.is_number()) wrong(path, key, "a list of numbers");
    values.push_back(item.get<double>());
  }
  return values;
}

SpikeWindow read_window(const nlohmann::json& window, const std::filesystem::path& path) {
  SpikeWindow read{numbers(window.at("loss"), path, "window.loss"),
                   numbers(window.at("grad_norm"), path, "window.grad_norm")};
  if (read.loss.size() != read.grad_norm.size()) wrong(path, "window", "as many losses as gradient norms");
  return read;
}

}  // namespace

std::string to_json(const TrainerState& state, const std::vector<std::string>& files) {
  nlohmann::ordered_json json = {{"format", kStateFormat},
                                 {"step", state.step},
                                 {"position", state.position},
                                 {"applied_steps", state.applied_steps},
                                 {"skipped_steps", state.skipped_steps},
                                 {"skips_in_a_row", state.skips_in_a_row}};
  // Numbers are printed so that they read back to the same bits.
  if (!state.window.loss.empty()) {
    json["window"] = {{"loss", state.window.loss}, {"grad_norm", state.window.grad_norm}};
  }
  if (!files.empty()) json["files"] = files;
  if (!state.unrecorded.empty()) json["unrecorded"] = state.unrecorded;
  return io::json_text(json, 2) + "\n";
}

TrainerState read_trainer_state(const std::filesystem::path& path) {
  try {
    const auto json = io::read_json(io::read_file(path), path.string());
    if (json.at("format").get<int>() != kStateFormat) {
      throw DataError(path.string() + ": expected checkpoint format " + std::to_string(kStateFormat) + ", got " +
                      io::json_text(json.at("format")));
    }
    for (const char* const key : {"step", "position", "applied_steps", "skipped_steps", "skips_in_a_row"}) {
      if (!json.at(key).is_number_integer() || json.at(key).get<int64_t>() < 0) {
        wrong(path, key, "a whole number >= 0, got " + io::json_text(json.at(key)));
      }
    }
    TrainerState state{.step = json.at("step").get<int64_t>(),
                       .position = json.at("position").get<uint64_t>(),
                       .applied_steps = json.at("applied_steps").get<int64_t>(),
                       .skipped_steps = json.at("skipped_steps").get<int64_t>(),
                       .skips_in_a_row = json.at("skips_in_a_row").get<int64_t>(),
                       .window = {},
                       .unrecorded = json.value("unrecorded", "")};
    if (!state.unrecorded.empty()) {
      const auto line = io::read_json(state.unrecorded, path.string() + ": unrecorded");
      const bool fits = line.is_object() && line.value("step", int64_t{-1}) == state.step &&
                        state.unrecorded.find('\n') == std::string::npos;
      if (!fits) wrong(path, "unrecorded", "one line of metrics.jsonl, of this step");
    }
    if (json.contains("window")) state.window = read_window(json.at("window"), path);
    return state;
  } catch (const nlohmann::json::exception&) {  // whose text is for programmers
    throw DataError(path.string() + ": not the state of a run: not JSON, or a key is missing or of another type");
  }
}

}  // namespace siamese::train

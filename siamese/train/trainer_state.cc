#include "siamese/train/trainer_state.h"

#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/checksum.h"
#include "siamese/io/strict_json.h"
#include "siamese/runs/step_record.h"

namespace siamese::train {
namespace {

constexpr int kStateFormat = 1;
constexpr const char* kChecksumMark = "\"checksum\": \"";  // as the printer spaces it

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

void read_fork(const nlohmann::json& forked, const std::filesystem::path& path, TrainerState& state) {
  for (const char* const key : {"position", "applied_steps"}) {
    if (!forked.at(key).is_number_unsigned()) wrong(path, std::string("forked.") + key, "a whole number >= 0");
  }
  state.forked_position = forked.at("position").get<uint64_t>();
  state.forked_steps = forked.at("applied_steps").get<int64_t>();
}

nlohmann::ordered_json identities_json(const std::vector<data::FileIdentity>& files) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& [path, content] : files) {
    list.push_back({{"path", path}, {"bytes", content.bytes}, {"hash", io::checksum_text(content.hash)}});
  }
  return list;
}

std::vector<data::FileIdentity> read_identities(const nlohmann::json& list, const std::filesystem::path& path) {
  std::vector<data::FileIdentity> files;
  for (const auto& file : list) {
    const auto hash = io::checksum_from_text(file.at("hash").get<std::string>());
    if (!hash) wrong(path, "data", "a hash of 16 digits, got " + io::json_text(file.at("hash")));
    files.push_back({file.at("path").get<std::string>(), {file.at("bytes").get<uint64_t>(), *hash}});
  }
  return files;
}

// Whoever writes a config writes a checksum: without it, its own name was damaged.
void check_seal(const nlohmann::json& state, std::string_view content, const std::filesystem::path& path) {
  if (!state.contains("checksum") && !state.contains("config")) return;
  if (const auto error = io::seal_error(content, kChecksumMark)) {
    throw DataError(path.string() + ": checksum: " + *error + ": the file was damaged or changed");
  }
}

}  // namespace

std::string to_json(const TrainerState& state, const std::vector<std::string>& files) {
  nlohmann::ordered_json json = {{"format", kStateFormat},
                                 {"checksum", std::string(16, '0')},
                                 {"step", state.step},
                                 {"position", state.position},
                                 {"applied_steps", state.applied_steps},
                                 {"skipped_steps", state.skipped_steps},
                                 {"skips_in_a_row", state.skips_in_a_row}};
  // Numbers are printed so that they read back to the same bits.
  if (!state.window.loss.empty()) {
    json["window"] = {{"loss", state.window.loss}, {"grad_norm", state.window.grad_norm}};
  }
  if (state.forked_steps > 0 || state.forked_position > 0) {
    json["forked"] = {{"position", state.forked_position}, {"applied_steps", state.forked_steps}};
  }
  if (!files.empty()) json["files"] = files;
  if (!state.unrecorded.empty()) json["unrecorded"] = state.unrecorded;
  if (!state.config.empty()) json["config"] = nlohmann::ordered_json::object();
  for (const auto& [key, text] : state.config) json["config"][key] = text;
  if (!state.data.empty()) {
    json["data"] = {{"train", identities_json(state.data.train)}, {"val", identities_json(state.data.val)}};
  }
  if (!state.tokenizer.empty()) json["tokenizer"] = state.tokenizer;
  if (!state.accepted_data.empty()) json["accepted_data"] = state.accepted_data;
  if (!state.accepted_config.empty()) json["accepted_config"] = state.accepted_config;
  std::string text = io::json_text(json, 2) + "\n";
  io::seal(text, kChecksumMark);
  return text;
}

TrainerState read_trainer_state(const std::filesystem::path& path) {
  try {
    const std::string content = io::read_file(path);
    const auto json = io::read_json(content, path.string());
    check_seal(json, content, path);
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
                       .forked_position = 0,
                       .forked_steps = 0,
                       .unrecorded = json.value("unrecorded", ""),
                       .config = {},
                       .data = {},
                       .tokenizer = json.value("tokenizer", ""),
                       .accepted_data = json.value("accepted_data", std::vector<std::string>()),
                       .accepted_config = json.value("accepted_config", std::vector<std::string>())};
    if (!state.unrecorded.empty()) {
      const auto line = runs::read_step(state.unrecorded, path.string() + ": unrecorded");
      if (line.step != state.step || state.unrecorded.find('\n') != std::string::npos)
        wrong(path, "unrecorded", "one line of metrics.jsonl, of this step");
    }
    if (json.contains("window")) state.window = read_window(json.at("window"), path);
    if (json.contains("forked")) read_fork(json.at("forked"), path, state);
    if (json.contains("config")) {
      for (const auto& [key, text] : json.at("config").items()) state.config.emplace_back(key, text.get<std::string>());
    }
    if (json.contains("data")) {
      state.data = {read_identities(json.at("data").at("train"), path),
                    read_identities(json.at("data").at("val"), path)};
    }
    return state;
  } catch (const nlohmann::json::exception&) {  // whose text is for programmers
    throw DataError(path.string() + ": not the state of a run: not JSON, or a key is missing or of another type");
  }
}

}  // namespace siamese::train

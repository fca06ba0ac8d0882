#include "siamese/runs/run_info.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/path_kind.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/run_dir.h"
#include "siamese/io/strict_json.h"
#include "siamese/runs/fields.h"
#include "siamese/runs/lines.h"

namespace siamese::runs {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRunKind = "run";

// 0.1.0 wrote no `kind`: its run.json is known by its keys.
void check_keys(const Fields& fields) {
  for (const char* const key : {"schema", "scheme", "label", "step", "steps", "parameters", "seed", "lr"}) {
    if (!fields.has(key)) fields.wrong(key, "that of a run");
  }
}

RunStatus read_status(const Fields& fields) {
  const auto status = enum_from_text<RunStatus>(fields.text("status"));
  if (!status) fields.wrong("status", "running, finished, diverged or stopped");
  return *status;
}

void check_is_ours(const Fields& fields) {
  if (fields.has("schema") && fields.whole("schema") != 1 && fields.whole("schema") != kSchema) {
    fields.wrong("schema", fmt::format("1 or {}", kSchema));
  }
  if (fields.has("kind") && (!fields.at("kind").is_string() || fields.text("kind") != kRunKind)) {
    fields.wrong("kind", "'run'");
  }
  if (fields.notes() == nullptr) check_keys(fields);
}

}  // namespace

std::string to_json(const RunInfo& info) {
  Json json = {{"schema", kSchema},
               {"kind", kRunKind},
               {"id", info.id},
               {"status", std::string(enum_text(info.status))},
               {"scheme", info.scheme},
               {"label", info.label},
               {"step", info.step},
               {"saved", info.saved.value_or(0)},
               {"steps", info.steps},
               {"parameters", info.parameters},
               {"seed", info.seed.value_or(0)},
               {"lr", info.lr}};
  if (std::isfinite(info.step_flops)) json["step_flops"] = info.step_flops;
  if (!info.message.empty()) json["message"] = info.message;
  if (!info.folder.empty()) json["folder"] = info.folder;
  if (info.says_set) json["set"] = info.set;
  if (!info.data.empty()) json["data"] = to_json(info.data);
  auto& stretches = json["stretches"] = Json::array();
  for (const Stretch& stretch : info.stretches) stretches.push_back(to_json(stretch));
  return io::json_text(json, 2) + "\n";
}

RunInfo read_run_info(std::string_view text, const std::string& where, Notes* notes) {
  const Json object = io::read_ordered_json(text, where);
  const Fields fields(object, where, notes);
  check_is_ours(fields);
  RunInfo info;
  info.status = read_status(fields);
  fields.take("id", info.id);
  fields.take("scheme", info.scheme);
  fields.take("label", info.label);
  fields.take("step", info.step);
  fields.attempt("saved", [&] { info.saved = fields.count("saved"); });
  fields.take("steps", info.steps);
  fields.take("parameters", info.parameters);
  fields.attempt("seed", [&] { info.seed = fields.unsigned_whole("seed"); });
  fields.take("lr", info.lr);
  fields.take("step_flops", info.step_flops);
  fields.take("message", info.message);
  fields.take("folder", info.folder);
  fields.attempt("set", [&] {
    info.set = fields.texts("set");
    info.says_set = true;
  });
  fields.attempt("data", [&] { info.data = read_data_key(fields.at("data"), where + ": data"); });
  fields.attempt("stretches", [&] {
    for (const Json& stretch : fields.list("stretches")) {
      info.stretches.push_back(read_stretch(stretch, where + ": stretches"));
    }
  });
  return info;
}

bool is_run_file(const std::filesystem::path& run_dir) {
  const std::filesystem::path path = run_dir / io::kRunFile;
  const std::string text = io::read_file(path);  // one that cannot be read may be ours: that is said, not guessed
  try {
    const Json object = io::read_ordered_json(text, path.string());
    Notes notes;
    const Fields fields(object, path.string(), &notes);
    check_is_ours(fields);
    if (!fields.has("kind")) check_keys(fields);
    read_status(fields);
    return true;
  } catch (const DataError&) {  // somebody else's
    return false;
  }
}

std::optional<RunInfo> read_run_file(const std::filesystem::path& run_dir, Notes* notes) {
  const std::filesystem::path path = run_dir / io::kRunFile;
  if (!is_there(path)) return std::nullopt;
  return read_run_info(io::read_file(path), path.string(), notes);
}

void write_run_file(const std::filesystem::path& run_dir, const RunInfo& info) {
  io::write_file_atomic(run_dir / io::kRunFile, to_json(info));
}

}  // namespace siamese::runs

#include "siamese/runs/sweep_file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/message.h"
#include "siamese/io/strict_json.h"
#include "siamese/runs/fields.h"
#include "siamese/runs/lines.h"

namespace siamese::runs {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSweepKind = "sweep";

SweepEntry read_entry(const Json& object, const std::string& where) {
  const Fields fields(object, where);
  SweepEntry entry{.dir = fields.text("dir")};
  if (entry.dir.empty()) fields.wrong("dir", "the name of a folder");
  fields.take("variant", entry.variant);
  fields.take("lr", entry.lr);
  if (fields.has("seed")) entry.seed = fields.unsigned_whole("seed");
  return entry;
}

}  // namespace

std::string to_json(const SweepFile& sweep) {
  Json json = {{"schema", kSchema}, {"kind", kSweepKind}, {"name", sweep.name}};
  auto& runs = json["runs"] = Json::array();
  for (const SweepEntry& run : sweep.runs) {
    runs.push_back({{"dir", run.dir}, {"variant", run.variant}, {"lr", run.lr}});
    if (run.seed) runs.back()["seed"] = *run.seed;
  }
  return io::json_text(json, 2) + "\n";
}

SweepFile read_sweep_file(std::string_view text, const std::string& where) {
  const Json object = io::read_ordered_json(text, where);
  const Fields fields(object, where);
  if (fields.has("schema") && fields.whole("schema") != 1 && fields.whole("schema") != kSchema) {
    fields.wrong("schema", fmt::format("1 or {}", kSchema));
  }
  if (fields.has("kind") && fields.text("kind") != kSweepKind) fields.wrong("kind", "'sweep'");
  SweepFile sweep;
  fields.take("name", sweep.name);
  for (const Json& run : fields.list("runs")) sweep.runs.push_back(read_entry(run, where + ": runs"));
  return sweep;
}

bool is_sweep_file(const std::filesystem::path& path) {
  const std::string text = io::read_file(path);
  try {
    const Json object = io::read_ordered_json(text, path.string());
    read_sweep_file(text, path.string());
    return object.contains("schema") && object.contains("name");
  } catch (const DataError&) {  // somebody else's
    return false;
  }
}

}  // namespace siamese::runs

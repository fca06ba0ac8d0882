#include "siamese/config/load.h"

#include <algorithm>
#include <fstream>

#include "siamese/base/check.h"
#include "siamese/base/nearest.h"
#include "siamese/config/text.h"
#include "siamese/config/yaml.h"

namespace siamese::config {
namespace fs = std::filesystem;
namespace {

constexpr int kMaxPresetDepth = 8;

// False also for what the system cannot look up: a name too long, a folder it may not enter, a circle of links.
bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// At most one byte more than a config may have: a wrong file need not fit in memory.
std::string read_text(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw UsageError(path.string() + ": cannot be read");
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  std::string text(error ? 0 : std::min<uintmax_t>(bytes, kMaxYamlBytes + 1), '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

// Beside the file that names it first: the working folder must not change what a file means.
fs::path find_preset(const std::string& name, const fs::path& beside, const std::vector<fs::path>& folders) {
  for (const auto& candidate : {beside / name, beside / (name + ".yaml")}) {
    if (is_file(candidate)) return candidate;
  }
  return find_config(name, folders);
}

Value load_file(const fs::path& path, const std::vector<fs::path>& folders, int depth) {
  if (depth > kMaxPresetDepth) throw UsageError(path.string() + ": presets refer to each other in a circle");
  Value value = parse_yaml(read_text(path), path.string());
  if (value.kind == Value::Kind::null) value = Value::map(path.string());
  if (!value.is_map()) throw UsageError(path.string() + ": expected a map of keys, got " + value.kind_text());
  const Value* preset = value.find("preset");
  if (preset == nullptr) return value;
  if (preset->kind != Value::Kind::scalar) throw UsageError(preset->where + ": preset: expected a name");
  Value merged = load_file(find_preset(preset->text, path.parent_path(), folders), folders, depth + 1);
  value.erase("preset");
  merge(merged, value);
  return merged;
}

}  // namespace

std::vector<std::string> list_configs(const std::vector<fs::path>& folders) {
  std::vector<std::string> names;
  for (const auto& folder : folders) {
    std::error_code error;
    for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      if (it->path().extension() == ".yaml") {
        names.push_back(fs::relative(it->path(), folder).replace_extension().generic_string());
      }
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

fs::path find_config(const std::string& name_or_path, const std::vector<fs::path>& folders) {
  if (is_file(name_or_path)) return name_or_path;
  for (const auto& folder : folders) {
    for (const auto& candidate : {folder / name_or_path, folder / (name_or_path + ".yaml")}) {
      if (is_file(candidate)) return candidate;
    }
  }
  throw UsageError("no config '" + shown(name_or_path) + "': expected a YAML file or the name of a recipe" +
                   did_you_mean(fs::path(name_or_path).stem().string(), list_configs(folders)));
}

Value load(const std::string& name_or_path, const std::vector<std::string>& overrides,
           const std::vector<fs::path>& folders) {
  Value value = load_file(find_config(name_or_path, folders), folders, 0);
  for (const auto& assignment : overrides) apply_override(value, assignment);
  return value;
}

}  // namespace siamese::config

#include "siamese/config/load.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "siamese/base/check.h"
#include "siamese/base/nearest.h"
#include "siamese/base/path_kind.h"
#include "siamese/config/text.h"
#include "siamese/config/yaml.h"

namespace siamese::config {
namespace fs = std::filesystem;
namespace {

constexpr int kMaxPresetDepth = kFileLayer;  // each has a layer of its own
// The recipes of papers stand in a folder of their own and are called as if they did not.
constexpr std::string_view kPublished = "published/";

// Looks in one place after the other; what the system would not tell of one (a folder that may not be entered, a circle
// of links, a name too long) is said when no other has the file.
class Search {
 public:
  bool finds(const fs::path& path) {
    try {
      return is_file(path);
    } catch (const DataError& error) {
      const std::string what = error.what();
      if (reason_.empty()) reason_ = what.substr(what.rfind(": ") + 2);
      return false;
    }
  }
  void refuse_unread(const std::string& name) const {
    if (!reason_.empty()) throw UsageError("cannot read config '" + shown(name) + "': " + reason_);
  }

 private:
  std::string reason_;
};

// At most one byte more than a config may have: a wrong file need not fit in memory.
std::string read_text(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw UsageError(path.string() + ": cannot be read: " + std::generic_category().message(errno));
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  std::string text(error ? 0 : std::min<uintmax_t>(bytes, kMaxYamlBytes + 1), '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

// Beside the file that names it first: the working folder must not change what a file means.
fs::path find_preset(const std::string& name, const fs::path& beside, const std::vector<fs::path>& folders) {
  Search search;
  for (const auto& candidate : {beside / name, beside / (name + ".yaml")}) {
    if (search.finds(candidate)) return candidate;
  }
  search.refuse_unread(name);
  return find_config(name, folders);
}

Value load_file(const fs::path& path, const std::vector<fs::path>& folders, int depth) {
  if (depth > kMaxPresetDepth) throw UsageError(path.string() + ": presets refer to each other in a circle");
  Value value = in_layer(parse_yaml(read_text(path), path.string()), kFileLayer - depth);
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
        std::string name = fs::relative(it->path(), folder).replace_extension().generic_string();
        if (name.starts_with(kPublished)) name.erase(0, kPublished.size());
        names.push_back(std::move(name));
      }
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

fs::path find_config(const std::string& name_or_path, const std::vector<fs::path>& folders) {
  Search search;
  if (search.finds(name_or_path)) return name_or_path;
  for (const auto& folder : folders) {
    for (const auto& candidate :
         {folder / name_or_path, folder / (name_or_path + ".yaml"), folder / kPublished / (name_or_path + ".yaml")}) {
      if (search.finds(candidate)) return candidate;
    }
  }
  search.refuse_unread(name_or_path);
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

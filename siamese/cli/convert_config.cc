#include "siamese/cli/convert_config.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/cli/paths.h"
#include "siamese/config/fields.h"
#include "siamese/config/load.h"
#include "siamese/config/yaml.h"
#include "siamese/formats/hf_config.h"
#include "siamese/formats/hf_folder.h"
#include "siamese/formats/settings.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/run_dir.h"
#include "siamese/train/config_origin.h"

namespace siamese::cli {
namespace {

namespace fs = std::filesystem;
using config::Value;
using formats::kHfConfigFile;
using formats::Layout;

// The tree of a run config as far as somebody said something, and what config.json leaves to transformers.
struct Said {
  Value root = Value::map();
  Value defaults = Value::map();
  std::vector<std::string> notes;
  int64_t window = 0;       // HfConfig's
  std::string window_file;  // whose it is

  void add_model(const Value& model) {
    Value tree = Value::map();
    tree["model"] = model;
    add_stored(std::move(tree));
  }
  void add_stored(Value tree) { config::merge(root, config::in_layer(std::move(tree), config::kStoredLayer)); }
  void add_hf(Layout layout, const fs::path& path) {
    const auto hf = formats::read_hf_config(layout, io::read_file(path), path.string());
    add_model(hf.model);
    config::merge(defaults, hf.defaults);
    if (hf.window == 0) return;
    window = hf.window;
    window_file = path.string();
    notes.push_back(
        fmt::format("{}: sliding_window {}: model.context is that: so many tokens see what they see there, "
                    "and generation past them slides",
                    window_file, window));
  }
};

// A config.yaml of ours is resolved: it names its scheme, unless it was damaged. Beside weights in the layouts of
// others it may be theirs (OLMo writes one, too) and have other keys.
void add_beside(const io::TensorFiles& files, Layout from, const fs::path& path, Said& said) {
  if (!is_file(path)) return;
  Value tree;
  try {
    tree = config::parse_yaml(io::read_file(path), path.string());
  } catch (const UsageError& error) {
    throw DataError(error.what());
  }
  const Value* const model = tree.find("model");
  if (model != nullptr && model->find("residual") != nullptr) {
    formats::check_saved_model(files, *model, path.string());
    said.add_stored(std::move(tree));
  } else if (from == Layout::siamese) {
    throw DataError(path.string() +
                    ": model.residual: missing, and every checkpoint names its scheme there: the file "
                    "was damaged or changed");
  } else {
    said.notes.push_back(path.string() + ": not read: not a config of siamese");
  }
}

// The layout whose keys a config.json has that does not say what it is.
Layout hf_layout(Layout from, Layout to) {
  if (formats::is_hugging_face(from)) return from;
  return formats::is_hugging_face(to) ? to : Layout::hf_siamese;
}

void add_given_hf(const fs::path& path, Layout from, Layout to, Said& said) {
  const std::string text = io::read_file(path);
  const bool known = formats::is_hugging_face(from);  // then its config.json has to be of that architecture
  said.add_hf(known ? from : formats::layout_of_hf_config(text, path.string(), hf_layout(from, to)), path);
}

void add_given(const std::string& given, Layout from, Layout to, Said& said) {
  const fs::path path(given);
  if (is_folder(path)) {
    if (!is_there(path / io::kConfigFile) && is_there(path / kHfConfigFile)) {
      return add_given_hf(path / kHfConfigFile, from, to, said);
    }
    const fs::path file = (is_there(path / io::kConfigFile) ? path : io::resolve_checkpoint(path)) / io::kConfigFile;
    return said.add_stored(config::parse_yaml(io::read_file(file), file.string()));
  }
  if (path.extension() == ".json") return add_given_hf(path, from, to, said);
  const Value tree = config::load(given, {}, config_folders());
  if (is_sweep(tree)) throw UsageError("--config " + given + ": is a sweep, not one run");
  config::merge(said.root, tree);
}

}  // namespace

ConvertConfig convert_config(const io::TensorFiles& files, const formats::StoredTensors& stored, Layout to,
                             const std::string& given, const std::vector<std::string>& overrides) {
  const Layout from = stored.layout();
  const fs::path folder = files.path().parent_path();
  Said said;
  said.add_model(formats::said_by_metadata(files));
  if (formats::is_hugging_face(from) && is_file(folder / kHfConfigFile)) {
    said.add_hf(from, folder / kHfConfigFile);
  }
  add_beside(files, from, folder / io::kConfigFile, said);
  if (!given.empty()) add_given(given, from, to, said);
  for (const auto& assignment : overrides) config::apply_override(said.root, assignment);

  // Whoever evaluates names the data; a config has to have some.
  if (said.root.find("data") == nullptr) config::set_path(said.root, "data.source", Value::scalar("random"));
  Value& model = said.root["model"];
  if (model.kind == Value::Kind::null) model = Value::map();
  if (!model.is_map()) config::wrong_type(model, "model", "a map of keys");
  auto settings = formats::model_settings(stored, model, said.defaults);
  model = settings.model;
  train::RunConfig config = train::read_config(said.root);
  // As in weights_config_text, but for somebody who says it here.
  const auto keys = train::given_keys(said.root);
  if (std::find(keys.begin(), keys.end(), "train.micro_batch") == keys.end()) config.train.micro_batch = 0;
  if (said.window > 0 && config.model.context > said.window) {
    throw UsageError(
        fmt::format("model.context: expected at most {} (sliding_window of {}): attention to a window of a "
                    "longer context is not known here, got {}",
                    said.window, said.window_file, config.model.context));
  }
  return {std::move(config), std::move(settings.assumed), std::move(said.notes)};
}

}  // namespace siamese::cli

// Tensors that Python read from somebody's file, as a checkpoint of ours.
#include <filesystem>

#include "python/binding/binding.h"
#include "python/binding/engine_model.h"

#include "siamese/base/check.h"
#include "siamese/config/fields.h"
#include "siamese/config/load.h"
#include "siamese/formats/convert.h"
#include "siamese/formats/settings.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/run_dir.h"
#include "siamese/models/weights.h"
#include "siamese/train/checkpoint.h"

namespace siamese::python {
namespace {

namespace fs = std::filesystem;
using config::Value;

void save_tensors(const std::string& path, const TensorsByName& tensors) {
  std::vector<models::NamedTensor> list;
  for (const auto& [name, value] : tensors) {
    if (!value.defined() || !value.device().is_cpu() || !value.is_contiguous()) {
      throw UsageError(name + ": expected a contiguous tensor on the CPU");
    }
    list.push_back({name, value});
  }
  models::save_tensors(path, list, {});
}

// What is said of the model: `given` (a recipe or file, "" for none), then the overrides.
Value said_of(const std::string& given, const std::vector<std::string>& overrides,
              const std::vector<std::string>& folders) {
  Value said = Value::map();
  if (!given.empty()) said = config::load(given, {}, std::vector<fs::path>(folders.begin(), folders.end()));
  for (const auto& assignment : overrides) config::apply_override(said, assignment);
  // Whoever evaluates names the data; a config has to have some.
  if (said.find("data") == nullptr) config::set_path(said, "data.source", Value::scalar("random"));
  Value& model = said["model"];
  if (model.kind == Value::Kind::null) model = Value::map();
  if (!model.is_map()) config::wrong_type(model, "model", "a map of keys");
  return said;
}

// The lines that are worth telling: what nobody said and was assumed, what was left out.
std::vector<std::string> convert(const std::string& source, const std::string& layout, const std::string& folder,
                                 const std::string& given, const std::vector<std::string>& overrides,
                                 const std::vector<std::string>& folders, bool overwrite) {
  const formats::Layout from = formats::layout_from_text("--layout", layout);
  const io::TensorFiles files = io::TensorFiles::open(source);
  const formats::StoredTensors stored(files, from);
  Value said = said_of(given, overrides, folders);
  auto settings = formats::model_settings(stored, said["model"]);
  said["model"] = settings.model;
  const train::RunConfig config = train::read_config(said);
  const formats::Converted converted = formats::convert(stored, formats::Layout::siamese, config.model);
  io::make_directory(fs::absolute(fs::path(folder) / "..").lexically_normal());
  io::AtomicDirectory aside(folder);
  io::write_file_atomic(aside.path() / io::kConfigFile, train::config_text(config));
  io::write_tensor_files(aside.path(), converted.tensors, formats::metadata_of(formats::Layout::siamese, config.model),
                         0, converted.make);
  aside.commit(train::check_free_for_weights(folder, overwrite));
  std::vector<std::string> lines;
  for (const auto& [key, value, why] : settings.assumed) lines.push_back(key + " " + value + ": " + why);
  lines.insert(lines.end(), converted.notes.begin(), converted.notes.end());
  for (const auto& difference : formats::differences(from, config.model)) lines.push_back("note: " + difference);
  return lines;
}

}  // namespace

void add_conversion(py::module_& module) {
  using no_gil = py::call_guard<py::gil_scoped_release>;
  module.def("save_tensors", &save_tensors, py::arg("path"), py::arg("tensors"), no_gil());
  module.def("convert", &convert, py::arg("source"), py::arg("layout"), py::arg("folder"), py::arg("config"),
             py::arg("overrides"), py::arg("folders"), py::arg("overwrite"), no_gil());
}

}  // namespace siamese::python

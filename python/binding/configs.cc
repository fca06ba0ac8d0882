#include "python/binding/configs.h"

#include <charconv>
#include <filesystem>

#include "python/binding/binding.h"

#include "siamese/base/check.h"
#include "siamese/config/fields.h"
#include "siamese/config/load.h"
#include "siamese/config/yaml.h"

namespace siamese::python {
namespace {

using config::Value;

py::object scalar(const std::string& text) {
  if (text == "true" || text == "false") return py::bool_(text == "true");
  const char* const end = text.data() + text.size();
  int64_t whole = 0;
  if (const auto read = std::from_chars(text.data(), end, whole); read.ec == std::errc{} && read.ptr == end) {
    return py::int_(whole);
  }
  double number = 0;
  if (const auto read = std::from_chars(text.data(), end, number); read.ec == std::errc{} && read.ptr == end) {
    return py::float_(number);
  }
  return py::str(text);
}

py::object as_python(const Value& value) {
  if (value.kind == Value::Kind::scalar) return scalar(value.text);
  if (value.kind == Value::Kind::list) {
    py::list list;
    for (const auto& item : value.items) list.append(as_python(item));
    return list;
  }
  py::dict dict;
  for (const auto& [key, child] : value.entries) dict[py::str(key)] = as_python(child);
  return dict;
}

std::string resolve_config(const std::string& source, bool is_text, const std::vector<std::string>& overrides,
                           const std::vector<std::string>& folders) {
  return train::config_text(asked_config(source, is_text, overrides, folders));
}

py::object config_dict(const std::string& text) { return as_python(config::print(stored_config(text))); }

}  // namespace

train::RunConfig stored_config(const std::string& text) {
  const Value value = config::parse_yaml(text, "config");
  if (!value.is_map()) throw UsageError("config: expected a map of sections, got " + value.kind_text());
  return train::read_config(config::in_layer(value, config::kStoredLayer));
}

train::RunConfig asked_config(const std::string& source, bool is_text, const std::vector<std::string>& overrides,
                              const std::vector<std::string>& folders) {
  Value value;
  if (is_text) {
    value = config::parse_yaml(source, "config");
    for (const auto& assignment : overrides) config::apply_override(value, assignment);
  } else {
    value = config::load(source, overrides, std::vector<std::filesystem::path>(folders.begin(), folders.end()));
  }
  for (const char* key : {"variants", "grid", "sweep"}) {
    if (value.is_map() && value.find(key) != nullptr) {
      throw UsageError((is_text ? "config" : source) +
                       ": is a sweep, not one run: siamesenorm.sweep and `siamese sweep` train it");
    }
  }
  return train::read_config(value);
}

void add_configs(py::module_& module) {
  module.def("resolve_config", &resolve_config, py::arg("source"), py::arg("is_text"), py::arg("overrides"),
             py::arg("folders"));
  module.def("config_dict", &config_dict, py::arg("text"));
}

}  // namespace siamese::python

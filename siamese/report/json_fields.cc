#include "siamese/report/json_fields.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/json_lines.h"
#include "siamese/io/strict_json.h"
#include "siamese/report/measures.h"

namespace siamese::report {

using nlohmann::json;

double number_or(const json& object, const char* key, double fallback) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : fallback;
}

int64_t integer_or(const json& object, const char* key, int64_t fallback) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : fallback;
}

std::string text_or(const json& object, const char* key, const std::string& fallback) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : fallback;
}

const json& array_or_empty(const json& object, const char* key) {
  static const json kEmpty = json::array();
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : kEmpty;
}

const json& object_or_empty(const json& object, const char* key) {
  static const json kEmpty = json::object();
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? *found : kEmpty;
}

void read_accuracy(const json& object, EvalRow& row) {
  const json& accuracy = object_or_empty(object, "accuracy");
  row.correct = integer_or(accuracy, "correct", 0);
  row.count = integer_or(accuracy, "count", 0);
  for (const json& group : array_or_empty(accuracy, "groups")) {
    if (!group.is_object()) continue;
    row.groups.push_back({text_or(group, "operation"), integer_or(group, "digits", 0), integer_or(group, "correct", 0),
                          integer_or(group, "count", 0)});
  }
}

Measures read_measures(const json& measures) {
  Measures read;
  for (const auto& [name, value] : measures.items()) {
    if (is_measure(name) && value.is_number() && std::isfinite(value.get<double>())) read[name] = value.get<double>();
  }
  return read;
}

void for_each_object(const std::filesystem::path& path, std::vector<std::string>& notes,
                     const std::function<void(const json&)>& use) {
  try {
    if (!is_there(path)) return;
    int64_t number = 0;
    for (const std::string& line : io::read_json_lines(path)) {
      use(io::read_json(line, fmt::format("{}: line {}", path.string(), ++number)));
    }
  } catch (const Error& error) {
    notes.push_back(error.what());
  }
}

}  // namespace siamese::report

#include "siamese/report/json_fields.h"

#include <nlohmann/json.hpp>

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

}  // namespace siamese::report

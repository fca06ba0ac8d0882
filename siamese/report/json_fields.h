// Forgiving access to the fields of a JSON object: a missing key, a null or a value of another type gives the fallback.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "siamese/report/run_record.h"

namespace siamese::report {

double number_or(const nlohmann::json& object, const char* key, double fallback = kMissing);
int64_t integer_or(const nlohmann::json& object, const char* key, int64_t fallback);
std::string text_or(const nlohmann::json& object, const char* key, const std::string& fallback = "");
const nlohmann::json& array_or_empty(const nlohmann::json& object, const char* key);
const nlohmann::json& object_or_empty(const nlohmann::json& object, const char* key);

// `correct`, `count` and `groups` of the `accuracy` of an evaluation or a record line; nothing when it has none.
void read_accuracy(const nlohmann::json& object, EvalRow& row);

// The values of `measures` that have a name of measures.h and are finite.
Measures read_measures(const nlohmann::json& measures);

// Calls `use` with each object of a JSON Lines file, up to one that cannot be read: then there is a note. Of a file
// with lines that are no JSON there are none. A missing file has none.
void for_each_object(const std::filesystem::path& path, std::vector<std::string>& notes,
                     const std::function<void(const nlohmann::json&)>& use);

}  // namespace siamese::report

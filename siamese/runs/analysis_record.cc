#include "siamese/runs/analysis_record.h"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/checksum.h"
#include "siamese/io/message.h"
#include "siamese/io/strict_json.h"
#include "siamese/runs/fields.h"

namespace siamese::runs {
namespace analysis_detail {

using Json = nlohmann::ordered_json;

constexpr const char* kKind = "analysis";
constexpr std::string_view kChecksumMark = "\"checksum\": \"";  // as the printer spaces it

// A struct that lists its fields, lists and optionals of such, and what these are made of in the end: all declared
// before the first is used.
Json written(double value) { return value; }
Json written(int64_t value) { return value; }
Json written(const std::string& value) { return value; }
template <class T>
Json written(const std::vector<T>& values);
template <class T>
Json written(const std::optional<T>& value);

template <class T>
Json written(const T& value) {
  Json object = Json::object();
  T::fields(value, [&](const char* key, const auto& field) { object[key] = written(field); });
  return object;
}
template <class T>
Json written(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(written(value));
  return list;
}
template <class T>
Json written(const std::optional<T>& value) {
  return value ? written(*value) : Json(nullptr);
}

void take(const Fields& fields, const char* key, double& out) { out = fields.number(key); }
void take(const Fields& fields, const char* key, int64_t& out) { out = fields.whole(key); }
void take(const Fields& fields, const char* key, std::string& out) { out = fields.text(key); }

template <class T>
void read(const Json& object, const std::string& where, T& out);

template <class T>
void take(const Fields& fields, const char* key, std::vector<T>& out);
template <class T>
void take(const Fields& fields, const char* key, std::optional<T>& out);

template <class T>
void take(const Fields& fields, const char* key, T& out) {
  read(fields.at(key), fields.where() + ": " + key, out);
}
template <class T>
void take(const Fields& fields, const char* key, std::vector<T>& out) {
  for (const Json& item : fields.list(key)) {
    const std::string where = fmt::format("{}: {}[{}]", fields.where(), key, out.size());
    read(item, where, out.emplace_back());
  }
}
template <class T>
void take(const Fields& fields, const char* key, std::optional<T>& out) {
  if (!fields.at(key).is_null()) read(fields.at(key), fields.where() + ": " + key, out.emplace());
}

template <class T>
void read(const Json& object, const std::string& where, T& out) {
  const Fields fields(object, where);
  std::set<std::string> known;
  T::fields(out, [&](const char* key, auto& field) {
    known.insert(key);
    take(fields, key, field);
  });
  for (const auto& entry : object.items()) {
    if (!known.contains(entry.key())) {
      throw DataError(fmt::format("{}: unknown key {}", where, io::in_quotes(entry.key())));
    }
  }
}

// use(item) of every object in a list of objects, where there is one: whatever else stands there is refused when it is
// read.
template <class Use>
void each_of(Json& object, const char* key, const Use& use) {
  const auto list = object.find(key);
  if (list == object.end() || !list->is_array()) return;
  for (Json& item : *list) {
    if (item.is_object()) use(item);
  }
}

// What an earlier schema did not have, as not known.
void complete(Json& object, int64_t schema) {
  if (schema < 2) object.emplace("made_by", nullptr);
  if (schema >= 3) return;
  object.emplace("effective_depth", nullptr);
  each_of(object, "peaks", [](Json& peak) { peak.emplace("text", ""); });
  each_of(object, "places", [](Json& place) {
    each_of(place, "streams", [](Json& stream) { stream.emplace("branch_cosine", nullptr); });
  });
}

}  // namespace analysis_detail

std::string to_json(const AnalysisRecord& record) {
  analysis_detail::Json object = {
      {"schema", kAnalysisSchema}, {"kind", analysis_detail::kKind}, {"checksum", std::string(16, '0')}};
  object.update(analysis_detail::written(record));
  std::string text = io::json_text(object, 1) + "\n";
  io::seal(text, analysis_detail::kChecksumMark);
  return text;
}

AnalysisRecord read_analysis(std::string_view text, const std::string& where) {
  analysis_detail::Json object = io::read_ordered_json(text, where);
  const Fields fields(object, where);
  if (fields.text("kind") != analysis_detail::kKind) fields.wrong("kind", "'analysis'");
  const int64_t schema = fields.whole("schema");
  if (schema < 1 || schema > kAnalysisSchema) {
    fields.wrong("schema", fmt::format("1 to {}, those of this version of siamese", kAnalysisSchema));
  }
  if (object.contains("checksum")) {
    if (const auto error = io::seal_error(text, analysis_detail::kChecksumMark)) {
      throw DataError(where + ": checksum: " + *error + ": the file was damaged or changed");
    }
  }
  analysis_detail::complete(object, schema);
  for (const char* const key : {"schema", "kind", "checksum"}) object.erase(key);
  AnalysisRecord record;
  analysis_detail::read(object, where, record);
  return record;
}

AnalysisRecord read_analysis_file(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kAnalysisFile;
  return read_analysis(io::read_file(file), file.string());
}

}  // namespace siamese::runs

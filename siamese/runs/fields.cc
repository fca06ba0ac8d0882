#include "siamese/runs/fields.h"

#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/io/message.h"
#include "siamese/io/strict_json.h"
#include "siamese/runs/numbers.h"

namespace siamese::runs {
namespace {

bool fits_int64(const Fields::Json& value) {
  return value.is_number_unsigned() ? value.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()}
                                    : value.is_number_integer();
}

}  // namespace

Fields::Fields(const Json& object, std::string where, Notes* notes)
    : object_(object), where_(std::move(where)), notes_(notes) {
  if (!object.is_object()) {
    throw DataError(where_ + ": expected a JSON object, got " + io::in_quotes(io::json_text(object)));
  }
}

void Fields::wrong(const char* key, const std::string& expected) const {
  const auto found = object_.find(key);
  throw DataError(fmt::format("{}: {}: expected {}, got {}", where_, key, expected,
                              found == object_.end() ? "nothing" : io::in_quotes(io::json_text(*found))));
}

bool Fields::has(const char* key) const { return object_.contains(key); }

const Fields::Json& Fields::at(const char* key) const {
  const auto found = object_.find(key);
  if (found == object_.end()) wrong(key, "a value");
  return *found;
}

std::string Fields::text(const char* key) const {
  if (!has(key) || !at(key).is_string()) wrong(key, "text");
  return at(key).get<std::string>();
}

double Fields::number(const char* key) const {
  if (!has(key) || !(at(key).is_number() || at(key).is_null())) wrong(key, "a number or null");
  return at(key).is_number() ? at(key).get<double>() : kNone;
}

int64_t Fields::whole(const char* key) const {
  if (!has(key) || !fits_int64(at(key))) wrong(key, "a whole number");
  return at(key).get<int64_t>();
}

int64_t Fields::count(const char* key) const {
  if (!has(key) || !fits_int64(at(key)) || at(key).get<int64_t>() < 0) wrong(key, "a whole number >= 0");
  return at(key).get<int64_t>();
}

uint64_t Fields::unsigned_whole(const char* key) const {
  if (!has(key) || !at(key).is_number_unsigned()) wrong(key, "a whole number >= 0");
  return at(key).get<uint64_t>();
}

bool Fields::boolean(const char* key) const {
  if (!has(key) || !at(key).is_boolean()) wrong(key, "true or false");
  return at(key).get<bool>();
}

const Fields::Json& Fields::list(const char* key) const {
  if (!has(key) || !at(key).is_array()) wrong(key, "a list");
  return at(key);
}

std::vector<double> Fields::numbers(const char* key) const {
  std::vector<double> values;
  if (!has(key) || !at(key).is_array()) wrong(key, "a list of numbers");
  for (const Json& item : at(key)) {
    if (!item.is_number() && !item.is_null()) wrong(key, "a list of numbers");
    values.push_back(item.is_number() ? item.get<double>() : kNone);
  }
  return values;
}

std::vector<std::string> Fields::texts(const char* key) const {
  std::vector<std::string> values;
  if (!has(key) || !at(key).is_array()) wrong(key, "a list of texts");
  for (const Json& item : at(key)) {
    if (!item.is_string()) wrong(key, "a list of texts");
    values.push_back(item.get<std::string>());
  }
  return values;
}

Fields Fields::object(const char* key) const {
  if (!has(key) || !at(key).is_object()) wrong(key, "an object");
  return Fields(at(key), where_ + ": " + key, notes_);
}

void Fields::guarded(const std::function<void()>& read) const {
  if (notes_ == nullptr) return read();
  try {
    read();
  } catch (const DataError& error) {
    notes_->push_back(error.what());
  }
}

void Fields::take(const char* key, std::string& out) const {
  attempt(key, [&] { out = text(key); });
}

void Fields::take(const char* key, double& out) const {
  attempt(key, [&] { out = number(key); });
}

void Fields::take(const char* key, int64_t& out) const {
  attempt(key, [&] { out = whole(key); });
}

void Fields::take(const char* key, bool& out) const {
  attempt(key, [&] { out = boolean(key); });
}

}  // namespace siamese::runs

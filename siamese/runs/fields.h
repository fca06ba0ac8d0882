// Typed access to the fields of a JSON object; what is missing or of another type is a DataError that names it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "siamese/runs/notes.h"

namespace siamese::runs {

class Fields {
 public:
  using Json = nlohmann::ordered_json;

  // DataError unless `object` is one. `where` comes before the key in errors; `notes`: see `attempt`.
  Fields(const Json& object, std::string where, Notes* notes = nullptr);

  bool has(const char* key) const;
  const Json& at(const char* key) const;  // of any type
  std::string text(const char* key) const;
  double number(const char* key) const;  // null: NaN
  int64_t whole(const char* key) const;
  int64_t count(const char* key) const;  // whole, >= 0
  uint64_t unsigned_whole(const char* key) const;
  bool boolean(const char* key) const;
  const Json& list(const char* key) const;
  std::vector<double> numbers(const char* key) const;
  std::vector<std::string> texts(const char* key) const;
  Fields object(const char* key) const;

  // Reads a field that may be missing, and then stays as it is. With notes a wrong one does, too, and is noted.
  template <class Read>
  void attempt(const char* key, Read read) const {
    if (!has(key)) return;
    guarded([&] { read(); });
  }
  void take(const char* key, std::string& out) const;
  void take(const char* key, double& out) const;
  void take(const char* key, int64_t& out) const;
  void take(const char* key, bool& out) const;

  [[noreturn]] void wrong(const char* key, const std::string& expected) const;
  const std::string& where() const { return where_; }
  Notes* notes() const { return notes_; }
  const Json& json() const { return object_; }

 private:
  void guarded(const std::function<void()>& read) const;

  const Json& object_;
  std::string where_;
  Notes* notes_;
};

}  // namespace siamese::runs

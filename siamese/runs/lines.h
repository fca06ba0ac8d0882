// The JSON Lines of a run directory: every line says its schema and kind and carries a checksum of itself.
//   {"schema":2,"kind":"step","checksum":"9f86d081884c7d65","step":1,...}
// Schema 1 has neither kind nor checksum.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "siamese/runs/notes.h"

namespace siamese::runs {

inline constexpr int kSchema = 2;

// `fields` behind schema, kind and checksum, as one line without '\n'.
std::string sealed_line(std::string_view kind, const nlohmann::ordered_json& fields);

// The object of a line. DataError naming `where` unless it is JSON of schema 1 or 2, of this kind, and its checksum
// holds. A line without a schema is taken for schema 1.
nlohmann::ordered_json open_line(std::string_view line, std::string_view kind, const std::string& where);

// Gets a line, "FILE: line 3" for its errors, and what the readers of this room take as their notes.
using UseLine = std::function<void(std::string_view line, const std::string& where, Notes* notes)>;

// For each line of a file, none when it is missing. Without notes a DataError of `use` goes through, and a torn last
// line is passed over, as a kill leaves one. With notes every damaged or torn line is left out; one note says what
// is wrong with the first of them, another how many more there are. A file that cannot be read is an error in
// either case: it is not a file without lines.
void for_each_line(const std::filesystem::path& file, const UseLine& use, Notes* notes = nullptr);

}  // namespace siamese::runs

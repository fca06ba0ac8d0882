#include "siamese/runs/lines.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/checksum.h"
#include "siamese/io/message.h"
#include "siamese/io/strict_json.h"
#include "siamese/runs/fields.h"
#include "siamese/runs/line_seal.h"

namespace siamese::runs {
namespace {

using Json = nlohmann::ordered_json;

// As the reader of a whole line judges it (io/json_lines.h): a NUL is what a power cut leaves.
bool is_json(std::string_view line) { return line.find('\0') == std::string_view::npos && Json::accept(line); }

// Calls use(line, where, torn) for each line that is not empty; only the last can be torn.
template <class Use>
void walk(const std::string& text, const std::filesystem::path& file, Use use) {
  size_t number = 0;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    const std::string_view line(text.data() + from, end - from);
    const std::string where = fmt::format("{}: line {}", file.string(), ++number);
    from = end + 1;
    if (line.find_first_not_of(" \r") == std::string_view::npos) continue;  // left by an editor
    use(line, where, end == text.size() && !is_json(line));
  }
}

void read_tolerantly(const std::filesystem::path& file, const UseLine& use, Notes& notes) {
  Notes wrong;
  walk(io::read_file(file), file, [&](std::string_view line, const std::string& where, bool torn) {
    if (torn) return wrong.push_back(where + ": half-written: its writer is at work or was killed");
    try {
      use(line, where, &wrong);
    } catch (const DataError& error) {
      wrong.push_back(error.what());
    }
  });
  if (!wrong.empty()) notes.push_back(wrong.front());
  if (wrong.size() > 1) notes.push_back(fmt::format("{}: and {} more such places", file.string(), wrong.size() - 1));
}

}  // namespace

std::string sealed_line(std::string_view kind, const Json& fields) {
  Json line = {{"schema", kSchema}, {"kind", kind}, {"checksum", std::string(16, '0')}};
  line.update(fields);
  std::string text = io::json_text(line);
  io::seal(text, kChecksumMark);
  return text;
}

Json open_line(std::string_view line, std::string_view kind, const std::string& where) {
  while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);  // an editor of another system
  Json object = io::read_ordered_json(line, where);
  const Fields fields(object, where);
  const int64_t schema = fields.has("schema") ? fields.whole("schema") : 1;
  if (schema != 1 && schema != kSchema) fields.wrong("schema", fmt::format("1 or {}", kSchema));
  // Schema 1 had neither: whoever has one of them and says 1, or nothing, was damaged.
  if (schema == 1 && !fields.has("kind") && !fields.has("checksum")) return object;
  if (fields.text("kind") != kind) fields.wrong("kind", io::in_quotes(kind));
  if (const auto error = io::seal_error(line, kChecksumMark)) {
    throw DataError(where + ": checksum: " + *error + ": the line was damaged or changed");
  }
  return object;
}

void for_each_line(const std::filesystem::path& file, const UseLine& use, Notes* notes) {
  if (!is_there(file)) return;
  if (notes != nullptr) return read_tolerantly(file, use, *notes);
  walk(io::read_file(file), file, [&](std::string_view line, const std::string& where, bool torn) {
    if (!torn) use(line, where, nullptr);
  });
}

}  // namespace siamese::runs

#include "siamese/data/documents.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/base/utf8.h"
#include "siamese/io/strict_json.h"

namespace siamese::data {
namespace {

bool is_jsonl(std::filesystem::path path, DocumentFormat format) {
  if (format != DocumentFormat::auto_) return format == DocumentFormat::jsonl;
  if (path.extension() == ".gz" || path.extension() == ".zst") path.replace_extension();
  return path.extension() == ".jsonl" || path.extension() == ".ndjson" || path.extension() == ".json";
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

void expect_utf8(std::string_view text) {
  if (const auto wrong = first_invalid_utf8(std::as_bytes(std::span(text)))) {
    throw DataError(fmt::format("expected UTF-8 text, got byte 0x{:02x} at offset {}",
                                static_cast<unsigned char>(text[*wrong]), *wrong));
  }
}

}  // namespace

DocumentReader::DocumentReader(const std::filesystem::path& path, const DocumentOptions& options)
    : stream_(io::open_bytes(path)),
      reader_(*stream_, kLongestDocument),
      jsonl_(is_jsonl(path, options.format)),
      lines_(options.lines),
      separator_(options.separator) {}

bool DocumentReader::next(RawDocument& document) {
  document.jsonl = jsonl_;
  document.too_long = false;
  return jsonl_ || lines_ ? next_line(document) : next_between(document);
}

bool DocumentReader::next_line(RawDocument& document) {
  while (true) {
    const io::LineKind kind = reader_.next(document.bytes);
    if (kind == io::LineKind::end) return false;
    document.line = reader_.lines();
    document.too_long = kind == io::LineKind::too_long;
    if (!is_blank(document.bytes)) return true;
  }
}

bool DocumentReader::next_between(RawDocument& document) {
  document.bytes.clear();
  document.line = reader_.lines() + 1;
  std::string line;
  bool any = false;
  while (true) {
    const io::LineKind kind = reader_.next(line);
    if (kind == io::LineKind::end) return any;
    if (!separator_.empty() && line == separator_) {
      if (any) return true;
      document.line = reader_.lines() + 1;
      continue;
    }
    any = true;
    if (reader_.had_break()) line += '\n';
    const size_t kept = std::min(line.size(), kLongestDocument - document.bytes.size());
    document.bytes.append(line, 0, kept);
    document.too_long = document.too_long || kept < line.size() || kind == io::LineKind::too_long;
  }
}

std::string text_of(const RawDocument& document, const std::string& field) {
  if (document.too_long) throw DataError(fmt::format("longer than {} bytes", kLongestDocument));
  if (!document.jsonl) {
    expect_utf8(document.bytes);
    return document.bytes;
  }
  expect_utf8(document.bytes);
  const nlohmann::json value = io::read_json(document.bytes, "the line");
  if (!value.is_object()) throw DataError("expected a JSON object");
  const auto found = value.find(field);
  if (found == value.end()) throw DataError("the object has no field '" + field + "'");
  if (!found->is_string()) throw DataError("the field '" + field + "' is no string");
  return found->get<std::string>();
}

}  // namespace siamese::data

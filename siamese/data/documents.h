// The documents of a file of text: of JSON Lines one a line, of other text the whole file, its lines, or what stands
// between lines of a given text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "siamese/base/enum_text.h"
#include "siamese/io/byte_stream.h"
#include "siamese/io/line_reader.h"

namespace siamese::data {

enum class DocumentFormat { auto_, text, jsonl };

struct DocumentOptions {
  DocumentFormat format = DocumentFormat::auto_;  // auto: JSON Lines by the names .jsonl, .ndjson, .json (+ .gz, .zst)
  std::string field = "text";                     // of a JSON line
  bool lines = false;                             // every line of other text is a document
  std::string separator;                          // a line of other text that stands between documents; "": none
};

// A document as it lies in the file.
struct RawDocument {
  std::string bytes;
  uint64_t line = 0;  // on which it begins, from 1
  bool jsonl = false;
  bool too_long = false;  // past kLongestDocument; the bytes are only its beginning
};

inline constexpr size_t kLongestDocument = size_t{256} << 20;

class DocumentReader {
 public:
  DocumentReader(const std::filesystem::path& path, const DocumentOptions& options);

  // False at the end. Empty lines are no documents. DataError when the file cannot be read or decompressed.
  bool next(RawDocument& document);

  uint64_t consumed() const { return stream_->consumed(); }  // bytes of the file

 private:
  bool next_line(RawDocument& document);
  bool next_between(RawDocument& document);

  std::unique_ptr<io::ByteStream> stream_;
  io::LineReader reader_;
  bool jsonl_;
  bool lines_;
  std::string separator_;
};

// Its text; DataError with the reason alone when it has none: no JSON, no such field, not UTF-8, too long.
std::string text_of(const RawDocument& document, const std::string& field);

}  // namespace siamese::data

namespace siamese {

template <>
struct EnumText<data::DocumentFormat> {
  static constexpr EnumNames<data::DocumentFormat, 3> names{{{data::DocumentFormat::auto_, "auto"},
                                                             {data::DocumentFormat::text, "text"},
                                                             {data::DocumentFormat::jsonl, "jsonl"}}};
};

}  // namespace siamese

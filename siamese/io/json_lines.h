// JSON Lines that survive a kill: each line goes to the file in one write(), so at most the last line is torn, and a
// torn line never ends in '\n'.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/io/appended_file.h"

namespace siamese::io {

class JsonLinesWriter {
 public:
  enum class Mode { replace, append };  // append first mends a torn last line

  static JsonLinesWriter open(const std::filesystem::path& path, Mode mode);

  // One JSON value without line breaks; the '\n' is added here. As AppendedFile::write.
  void write(std::string_view one_line_json);
  void flush() { file_.flush(); }  // to the disk itself

 private:
  explicit JsonLinesWriter(const std::filesystem::path& path) : file_(path) {}

  AppendedFile file_;
};

// Rewrites the file atomically with only its complete, valid objects whose integer `key` is at most `last`; objects
// without `key` belong to no step and stay. A missing file is left missing.
void truncate_json_lines(const std::filesystem::path& path, const std::string& key, int64_t last);

// The lines, without '\n'. A torn last line is dropped; any other line that is not a JSON object is a DataError.
std::vector<std::string> read_json_lines(const std::filesystem::path& path);

}  // namespace siamese::io

// Lines of a byte stream, one at a time: memory for one line, whatever the size of the file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "siamese/io/byte_stream.h"

namespace siamese::io {

enum class LineKind { line, too_long, end };

class LineReader {
 public:
  // A line of more than `longest` bytes is passed over.
  LineReader(ByteStream& stream, size_t longest) : stream_(stream), longest_(longest), block_(size_t{256} << 10) {}

  // The next line without its '\n'. Of one that is too long, the first `longest` bytes. A last line may lack its '\n'.
  LineKind next(std::string& line);

  uint64_t lines() const { return lines_; }      // read so far
  bool had_break() const { return had_break_; }  // the last one ended with '\n'

 private:
  ByteStream& stream_;
  size_t longest_;
  std::vector<char> block_;
  size_t at_ = 0;
  size_t filled_ = 0;
  uint64_t lines_ = 0;
  bool had_break_ = false;
};

// All that a stream holds; DataError naming `name` past `longest` bytes.
std::string read_all(ByteStream& stream, size_t longest, const std::string& name);

}  // namespace siamese::io

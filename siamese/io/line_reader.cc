#include "siamese/io/line_reader.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "siamese/base/check.h"

namespace siamese::io {

LineKind LineReader::next(std::string& line) {
  line.clear();
  bool any = false;
  bool cut = false;
  had_break_ = false;
  while (true) {
    if (at_ == filled_) {
      at_ = 0;
      filled_ = stream_.read(block_);
      if (filled_ == 0) break;
    }
    any = true;
    const char* const begin = block_.data() + at_;
    const auto* const stop = static_cast<const char*>(std::memchr(begin, '\n', filled_ - at_));
    const size_t bytes = stop != nullptr ? static_cast<size_t>(stop - begin) : filled_ - at_;
    const size_t kept = std::min(bytes, longest_ - line.size());
    line.append(begin, kept);
    cut = cut || kept < bytes;
    at_ += bytes + (stop != nullptr ? 1 : 0);
    if (stop != nullptr) {
      had_break_ = true;
      break;
    }
  }
  if (!any) return LineKind::end;
  ++lines_;
  return cut ? LineKind::too_long : LineKind::line;
}

std::string read_all(ByteStream& stream, size_t longest, const std::string& name) {
  std::string all;
  std::vector<char> block(size_t{256} << 10);
  for (size_t got; (got = stream.read(block)) > 0;) {
    if (got > longest - all.size())
      throw DataError(fmt::format("{}: expected at most {} bytes at once", name, longest));
    all.append(block.data(), got);
  }
  return all;
}

}  // namespace siamese::io

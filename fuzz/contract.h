// The contract of every reader: success, or a UsageError or DataError of one short line.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "fuzz/properties.h"

#include "siamese/base/check.h"

namespace siamese::fuzz {

inline void require(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error("does not hold: " + what);
}

inline std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Runs `read`; a refusal is as good as success. Texts of the user's own may be quoted with their line breaks (the
// command line escapes them); names out of a file may not.
template <class Read>
void reads_or_refuses(Read read, bool one_line = true) {
  try {
    read();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    require(error.code() == Exit::usage || error.code() == Exit::bad_data, "a refusal is exit code 2 or 3");
    require(!message.empty() && message.size() <= 2000, "a refusal is a short sentence");
    require(!one_line || message.find('\n') == std::string_view::npos, "a refusal is one line");
  }
}

// For reading back what we wrote ourselves: here a refusal is a finding.
template <class Read>
auto reads(Read read) {
  try {
    return read();
  } catch (const Error& error) {
    throw std::logic_error(std::string("what was written is refused: ") + error.what());
  }
}

// [data, data + size) lies inside `bytes`.
inline void require_inside(const std::byte* data, size_t size, Bytes bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const auto first = reinterpret_cast<uintptr_t>(data);
  require(size == 0 || (first >= begin && size <= bytes.size() && first - begin <= bytes.size() - size),
          "what is returned lies inside what was given");
}

}  // namespace siamese::fuzz

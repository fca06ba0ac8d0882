#include "siamese/serve/bearer.h"

#include <cstddef>

namespace siamese::serve {

bool bears(std::string_view header, std::string_view token) {
  constexpr std::string_view kScheme = "Bearer ";
  if (!header.starts_with(kScheme) || token.empty()) return false;
  header.remove_prefix(kScheme.size());
  // Every byte is looked at, also after the first that is wrong.
  volatile unsigned char difference = header.size() == token.size() ? 0 : 1;
  for (size_t i = 0; i < header.size(); ++i) {
    const auto given = static_cast<unsigned char>(header[i]);
    const auto right = static_cast<unsigned char>(token[i % token.size()]);
    difference = static_cast<unsigned char>(difference | (given ^ right));
  }
  return difference == 0;
}

}  // namespace siamese::serve

#include "siamese/report/base64.h"

#include <cstddef>
#include <cstdint>

namespace siamese::report {

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t here = bytes.size() - at < 3 ? bytes.size() - at : 3;
    uint32_t three = 0;
    for (size_t i = 0; i < 3; ++i) three = three << 8 | (i < here ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (size_t digit = 0; digit < 4; ++digit) {
      text += digit <= here ? kDigits[three >> (18 - 6 * digit) & 63] : '=';
    }
  }
  return text;
}

}  // namespace siamese::report

#include "siamese/text/byte_level.h"

#include <array>

#include "siamese/text/characters.h"

namespace siamese::text {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr unsigned kLast = 0x100 + 68;

struct Alphabet {
  std::array<uint16_t, 256> characters{};
  std::array<int16_t, kLast> bytes{};

  constexpr Alphabet() {
    for (auto& byte : bytes) byte = -1;
    unsigned next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const unsigned character = stands_for_itself(byte) ? byte : next++;
      characters[byte] = static_cast<uint16_t>(character);
      bytes[character] = static_cast<int16_t>(byte);
    }
  }
};

constexpr Alphabet kAlphabet;

}  // namespace

uint32_t character_of_byte(unsigned char byte) { return kAlphabet.characters[byte]; }

std::optional<unsigned char> byte_of_character(uint32_t character) {
  if (character >= kLast || kAlphabet.bytes[character] < 0) return std::nullopt;
  return static_cast<unsigned char>(kAlphabet.bytes[character]);
}

std::optional<std::string> bytes_of_token(std::string_view token) {
  std::string bytes;
  for (const char* at = token.data(); at < token.data() + token.size();) {
    const auto byte = byte_of_character(next_character(at));
    if (!byte) return std::nullopt;
    bytes += static_cast<char>(*byte);
  }
  return bytes;
}

std::string token_of_bytes(std::string_view bytes) {
  std::string token;
  for (const char byte : bytes) append_character(token, character_of_byte(static_cast<unsigned char>(byte)));
  return token;
}

}  // namespace siamese::text

// GPT-2's alphabet: every byte as a visible character. Printable Latin-1 stands for itself, the other 68 bytes for
// U+0100 and on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace siamese::text {

uint32_t character_of_byte(unsigned char byte);
std::optional<unsigned char> byte_of_character(uint32_t character);

// The bytes that a token's characters stand for; nothing when one of them stands for none.
std::optional<std::string> bytes_of_token(std::string_view token);
std::string token_of_bytes(std::string_view bytes);

}  // namespace siamese::text

// Shared wording of this room's errors: one line each, whatever bytes a hostile file puts into its names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace siamese::io {

// 'text' as `printable` shows it, anything past 80 bytes cut.
std::string in_quotes(std::string_view text);

// "[2, 3]"; of more than 16 dimensions only the first.
std::string shape_text(const std::vector<int64_t>& shape);

// SystemError: "cannot <action> '<path>': <what errno says>".
[[noreturn]] void throw_system_error(std::string_view action, const std::filesystem::path& path, int error);

// DataError: "cannot read '<path>': <what errno says>".
[[noreturn]] void throw_read_error(const std::filesystem::path& path, int error);

}  // namespace siamese::io

// A file that the user named for a result (--out, --csv, ...): an earlier result of the same kind may be replaced,
// somebody's file of that name may not.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace siamese::io {

using IsResult = std::function<bool(const std::filesystem::path& file)>;

// UsageError unless nothing stands there, or a file that `is_result` knows. `what`: "page of a report".
void check_result_file(const std::filesystem::path& path, std::string_view what, const IsResult& is_result);

// A file with this text in its first `within` bytes.
IsResult holds_text(std::string text, size_t within = static_cast<size_t>(-1));
// A safetensors file with a tensor of this name.
IsResult holds_tensor(std::string name);

// Whether two paths name one place, also where nothing stands yet. What the system would not say counts as written.
bool same_place(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace siamese::io

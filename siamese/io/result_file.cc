#include "siamese/io/result_file.h"

#include <fstream>
#include <utility>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/tensor_files.h"

namespace siamese::io {

void check_result_file(const std::filesystem::path& path, std::string_view what, const IsResult& is_result) {
  if (is_folder(path)) throw UsageError(path.string() + ": expected a file to write, got a folder");
  if (!is_taken(path) || (is_file(path) && is_result(path))) return;
  throw UsageError(path.string() + ": exists already and is no " + std::string(what) + "; choose another file");
}

IsResult holds_text(std::string text, size_t within) {
  return [text = std::move(text), within](const std::filesystem::path& file) {
    if (within == static_cast<size_t>(-1)) return read_file(file).find(text) != std::string::npos;
    std::string beginning(within, '\0');
    std::ifstream stream(file, std::ios::binary);
    stream.read(beginning.data(), static_cast<std::streamsize>(within));
    return std::string_view(beginning).substr(0, static_cast<size_t>(stream.gcount())).find(text) != std::string::npos;
  };
}

IsResult holds_tensor(std::string name) {
  return [name = std::move(name)](const std::filesystem::path& file) {
    try {
      return TensorFiles::open(file).find(name) != nullptr;
    } catch (const DataError&) {  // no safetensors file
      return false;
    }
  };
}

bool same_place(const std::filesystem::path& a, const std::filesystem::path& b) {
  const auto place = [](const std::filesystem::path& path) {
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(path, error);
    const std::filesystem::path real = std::filesystem::weakly_canonical(absolute, error);
    const std::filesystem::path named = error ? absolute.lexically_normal() : real;
    return named.has_filename() ? named : named.parent_path();
  };
  return place(a) == place(b);
}

}  // namespace siamese::io

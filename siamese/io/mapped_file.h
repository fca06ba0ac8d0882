// A whole file mapped read-only. An empty file has size 0 and no data; a missing one, or one that is not a regular
// file, is a DataError. The file must not be shortened by others while it is mapped.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace siamese::io {

class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace siamese::io

#include "siamese/io/mapped_file.h"

#include <cerrno>
#include <utility>

#include <sys/mman.h>

#include "siamese/io/file_handle.h"
#include "siamese/io/message.h"

namespace siamese::io {

MappedFile::MappedFile(const std::filesystem::path& path) {
  size_t bytes = 0;
  const FileHandle file = open_regular_file(path, bytes);
  if (bytes == 0) return;  // the system maps no empty range
  void* address = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED) throw_read_error(path, errno);
  data_ = static_cast<const std::byte*>(address);
  size_ = bytes;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace siamese::io

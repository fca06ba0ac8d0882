#include "siamese/io/growing_array.h"

#include <cerrno>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/io/message.h"

namespace siamese::io {
namespace {

constexpr size_t kArrayHeaderBytes = 128;

std::string_view descr(DType dtype) {
  switch (dtype) {
    case DType::u16:
      return "<u2";
    case DType::u32:
      return "<u4";
    case DType::u64:
      return "<u8";
    default:
      SIAMESE_INVARIANT(!"a type of tokens or offsets");
      return {};
  }
}

std::string header(DType dtype, uint64_t count) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}", descr(dtype), count);
  std::string out("\x93NUMPY\x01\x00\x76\x00", 10);  // version 1.0, 118 bytes follow
  text.resize(kArrayHeaderBytes - out.size() - 1, ' ');
  return out + text + "\n";
}

}  // namespace

GrowingArray::GrowingArray(std::filesystem::path path, DType dtype, uint64_t count)
    : path_(std::move(path)), partial_(path_.string() + ".partial"), dtype_(dtype), count_(count) {
  // It was finished, and the process was killed before it could note so.
  if (::access(partial_.c_str(), F_OK) != 0) ::rename(path_.c_str(), partial_.c_str());
  file_ = FileHandle(::open(partial_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file_.valid()) throw_system_error("write", partial_, errno);
  const auto bytes = static_cast<off_t>(kArrayHeaderBytes + count * dtype_size(dtype));
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) throw_system_error("write", partial_, errno);
  if (count > 0 && status.st_size < bytes) {
    throw DataError(fmt::format("{}: expected at least {} bytes of an earlier run, got {}", partial_.string(), bytes,
                                status.st_size));
  }
  if (::ftruncate(file_.get(), bytes) != 0 || ::lseek(file_.get(), bytes, SEEK_SET) < 0) {
    throw_system_error("write", partial_, errno);
  }
}

void GrowingArray::append(std::span<const std::byte> elements) {
  SIAMESE_INVARIANT(elements.size() % dtype_size(dtype_) == 0);
  constexpr size_t kTogether = size_t{1} << 20;
  waiting_.append(reinterpret_cast<const char*>(elements.data()), elements.size());
  if (waiting_.size() >= kTogether) flush();
  count_ += elements.size() / dtype_size(dtype_);
}

void GrowingArray::flush() {
  if (const int error = write_all(file_.get(), waiting_.data(), waiting_.size())) {
    throw_system_error("write", partial_, error);
  }
  waiting_.clear();
}

void GrowingArray::sync() {
  flush();
  if (const int error = sync_to_disk(file_.get())) throw_system_error("write", partial_, error);
}

void GrowingArray::finish() {
  flush();
  const std::string text = header(dtype_, count_);
  if (::lseek(file_.get(), 0, SEEK_SET) < 0) throw_system_error("write", partial_, errno);
  if (const int error = write_all(file_.get(), text.data(), text.size())) throw_system_error("write", partial_, error);
  sync();
  if (const int error = file_.close()) throw_system_error("write", partial_, error);
  if (::rename(partial_.c_str(), path_.c_str()) != 0) throw_system_error("write", path_, errno);
  if (const int error = sync_to_disk(folder_of(path_))) throw_system_error("write", path_, error);
}

}  // namespace siamese::io

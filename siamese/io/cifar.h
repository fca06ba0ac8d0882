// The binary CIFAR files, mapped: records of one label byte (CIFAR-100: a coarse and a fine one) and 3 x 32 x 32
// pixels, channel after channel. Nothing in the file says which of the two it is: whoever opens it does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "siamese/io/image.h"
#include "siamese/io/mapped_file.h"

namespace siamese::io {

enum class CifarKind { cifar10, cifar100 };

class CifarFile {
 public:
  // DataError when the size is not a multiple of a record.
  static CifarFile open(const std::filesystem::path& path, CifarKind kind);

  int64_t size() const { return static_cast<int64_t>(file_.size() / record_); }
  // The fine one; DataError when it is not below 10 (100).
  int64_t label(int64_t index) const;
  Image image(int64_t index) const;

 private:
  CifarFile(MappedFile file, std::string name, size_t record)
      : file_(std::move(file)), name_(std::move(name)), record_(record) {}

  MappedFile file_;
  std::string name_;
  size_t record_;  // bytes
};

}  // namespace siamese::io

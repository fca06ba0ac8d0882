// A file that grows by whole pieces, each in one write(): a kill tears at most the last, and a full disk none. A file
// with more than one name (`cp -al`, a backup) is copied before it is changed: the other name keeps what it had.
#pragma once

#include <filesystem>
#include <string_view>
#include <utility>

#include "siamese/io/file_handle.h"

namespace siamese::io {

class AppendedFile {
 public:
  // Made if it is not there. SystemError when it cannot be opened.
  explicit AppendedFile(std::filesystem::path path);

  // SystemError (disk full) leaves earlier pieces whole.
  void write(std::string_view piece);
  void flush();  // to the disk itself
  // What `write` does first; for who changes the file otherwise.
  void keep_other_names_as_they_are();

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return file_.get(); }

 private:
  void open();

  std::filesystem::path path_;
  FileHandle file_;
};

}  // namespace siamese::io

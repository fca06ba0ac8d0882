#include "siamese/io/appended_file.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "siamese/io/atomic_file.h"
#include "siamese/io/message.h"

namespace siamese::io {

AppendedFile::AppendedFile(std::filesystem::path path) : path_(std::move(path)) { open(); }

void AppendedFile::open() {
  file_ = FileHandle(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file_.valid()) throw_system_error("write", path_, errno);
}

// Looked at before every piece: a copy by links may be made while the run goes on.
void AppendedFile::keep_other_names_as_they_are() {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) throw_system_error("write", path_, errno);
  if (!S_ISREG(status.st_mode) || status.st_nlink <= 1) return;
  write_file_atomic(path_, read_file(path_));
  open();
}

void AppendedFile::write(std::string_view piece) {
  keep_other_names_as_they_are();
  const off_t before = ::lseek(file_.get(), 0, SEEK_END);
  const int error = write_all(file_.get(), piece.data(), piece.size());
  if (error == 0) return;
  // A full disk may have taken part of the piece: the next one must not be glued to it.
  if (before >= 0 && ::ftruncate(file_.get(), before) != 0) {
    // Nothing more can be done here; who appends later and the readers mend a torn piece.
  }
  throw_system_error("write", path_, error);
}

void AppendedFile::flush() {
  if (const int error = sync_to_disk(file_.get())) throw_system_error("write", path_, error);
}

}  // namespace siamese::io

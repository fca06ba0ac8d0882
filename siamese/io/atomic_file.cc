#include "siamese/io/atomic_file.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/message.h"

namespace siamese::io {

namespace fs = std::filesystem;

namespace {

void sync_tree(const fs::path& folder) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code unknown;
    const fs::file_status status = entry->symlink_status(unknown);
    if (!fs::is_regular_file(status) && !fs::is_directory(status)) continue;
    if (const int failed = sync_to_disk(entry->path())) throw_system_error("write", entry->path(), failed);
  }
  if (error) throw_system_error("write", folder, error.value());
  if (const int failed = sync_to_disk(folder)) throw_system_error("write", folder, failed);
}

[[noreturn]] void refuse(const fs::path& path) {
  throw UsageError(path.string() + ": exists already: somebody made it meanwhile; --overwrite replaces it");
}

// Where nothing stands; 0, EEXIST or another errno. Without the system's help somebody may come in between.
int rename_to_nothing(const fs::path& from, const fs::path& to) {
#ifdef RENAME_NOREPLACE
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
#endif
  if (is_taken(to)) return EEXIST;
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

// Swaps two paths in one step; false where the system or the file system cannot.
bool exchange(const fs::path& a, const fs::path& b) {
#ifdef RENAME_EXCHANGE
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
#else
  (void)a, (void)b;
  return false;
#endif
}

}  // namespace

std::string read_file(const fs::path& path) {
  size_t bytes = 0;
  const FileHandle file = open_regular_file(path, bytes);
  std::string content(bytes, '\0');
  size_t filled = 0;
  // To the end rather than to the size: files below /proc claim 0, and a growing file has more by now.
  while (true) {
    if (filled == content.size()) content.resize(filled + 4096);
    const ssize_t got = ::read(file.get(), content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_read_error(path, errno);
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  content.resize(filled);
  return content;
}

void make_directory(const fs::path& dir) {
  std::error_code error, none;
  fs::create_directories(dir, error);
  if (error || !fs::is_directory(dir, none)) {
    throw SystemError(dir.string() + ": cannot be made: " + (error ? error.message() : "a file stands there"));
  }
}

void write_file_atomic(const fs::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

AtomicFile::AtomicFile(fs::path final_path, Standing standing) : final_(std::move(final_path)), standing_(standing) {
  std::error_code error;
  const fs::file_status found = fs::status(final_, error);
  // A rename would put a file in the place of /dev/null.
  if (fs::exists(found) && !fs::is_regular_file(found) && !fs::is_directory(found)) {
    throw UsageError(fmt::format("{}: expected a file to write, got a device or a pipe", final_.string()));
  }
  remove_leftovers(folder_of(final_), final_.filename().string());
  aside_ = create_aside_file(final_);
}

AtomicFile::~AtomicFile() {
  if (aside_.handle.valid()) ::unlink(aside_.path.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (const int error = write_all(aside_.handle.get(), bytes.data(), bytes.size())) {
    throw_system_error("write", final_, error);
  }
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void AtomicFile::rewrite(uint64_t offset, std::string_view text) {
  if (::lseek(aside_.handle.get(), static_cast<off_t>(offset), SEEK_SET) < 0)
    throw_system_error("write", final_, errno);
  write(text);
  if (::lseek(aside_.handle.get(), 0, SEEK_END) < 0) throw_system_error("write", final_, errno);
}

void AtomicFile::commit() {
  if (const int error = sync_to_disk(aside_.handle.get())) throw_system_error("write", final_, error);
  const int failed = standing_ == Standing::refused                       ? rename_to_nothing(aside_.path, final_)
                     : ::rename(aside_.path.c_str(), final_.c_str()) == 0 ? 0
                                                                          : errno;
  if (standing_ == Standing::refused && failed == EEXIST) refuse(final_);
  if (failed != 0) throw_system_error("write", final_, failed);
  // From here on the file stands; only the folder's own entry may still fail to reach the disk.
  const int close_error = aside_.handle.close();
  const int sync_error = sync_to_disk(folder_of(final_));
  if (close_error) throw_system_error("write", final_, close_error);
  if (sync_error) throw_system_error("sync the folder of", final_, sync_error);
}

AtomicDirectory::AtomicDirectory(fs::path final_path) : final_(std::move(final_path)) {
  if (!final_.has_filename()) final_ = final_.parent_path();  // "run/step5/" means "run/step5"
  remove_leftovers(folder_of(final_), final_.filename().string());
  aside_ = create_aside_folder(final_);
}

AtomicDirectory::~AtomicDirectory() {
  if (committed_) return;
  std::error_code ignored;
  fs::remove_all(aside_.path, ignored);
}

void AtomicDirectory::commit(Standing standing) {
  SIAMESE_INVARIANT(!committed_);
  sync_tree(aside_.path);
  const fs::path replaced = put_in_place(standing);
  committed_ = true;
  const int failed = sync_to_disk(folder_of(final_));
  std::error_code error;
  if (!replaced.empty()) fs::remove_all(replaced, error);
  if (failed) throw_system_error("sync the folder of", final_, failed);
}

fs::path AtomicDirectory::put_in_place(Standing standing) {
  std::error_code error;
  const fs::file_status existing = fs::symlink_status(final_, error);
  if (fs::exists(existing) && !fs::is_directory(existing)) throw_system_error("replace", final_, ENOTDIR);
  // A rename takes the place of an empty folder and of no other.
  if (::rename(aside_.path.c_str(), final_.c_str()) == 0) return {};
  if (errno != ENOTEMPTY && errno != EEXIST) throw_system_error("create", final_, errno);
  if (standing == Standing::refused) {
    refuse(final_);
  }
  if (exchange(aside_.path, final_)) return aside_.path;
  const fs::path replaced = aside_name(final_, Aside::moved_away);
  const FileHandle old(::open(final_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (old.valid()) (void)try_lock(old.get());  // nobody puts it back meanwhile
  if (::rename(final_.c_str(), replaced.c_str()) != 0) throw_system_error("replace", final_, errno);
  if (::rename(aside_.path.c_str(), final_.c_str()) == 0) return replaced;
  const int failed = errno;
  fs::rename(replaced, final_, error);
  throw_system_error("create", final_, failed);
}

void remove_folder(const fs::path& folder) {
  remove_leftovers(folder_of(folder), folder.filename().string());
  const fs::path aside = aside_name(folder, Aside::writing);
  std::error_code error;
  if (::rename(folder.c_str(), aside.c_str()) != 0) throw_system_error("remove", folder, errno);
  // A power cut must not bring the name back to a folder that has lost some of its files.
  const int failed = sync_to_disk(folder_of(folder));
  fs::remove_all(aside, error);
  if (error) throw_system_error("remove", folder, error.value());
  if (failed) throw_system_error("sync the folder of", folder, failed);
}

}  // namespace siamese::io

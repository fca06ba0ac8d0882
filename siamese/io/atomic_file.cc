#include "siamese/io/atomic_file.h"

#include <cerrno>
#include <charconv>
#include <optional>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/io/message.h"

namespace siamese::io {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kTemporaryMark = ".tmp-";
constexpr std::string_view kMovedAwayMark = ".old-";

fs::path marked(fs::path path, std::string_view mark) { return path += fmt::format("{}{}", mark, ::getpid()); }

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

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

// Swaps two paths in one step; false where the system or the file system cannot.
bool exchange(const fs::path& a, const fs::path& b) {
#ifdef RENAME_EXCHANGE
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
#else
  (void)a, (void)b;
  return false;
#endif
}

// "step5.tmp-123" with mark ".tmp-" -> {"step5", 123}.
struct Leftover {
  std::string name;
  pid_t writer;
};
std::optional<Leftover> parse_leftover(const std::string& name, std::string_view mark) {
  const size_t at = name.rfind(mark);
  if (at == std::string::npos || at == 0) return std::nullopt;
  pid_t writer = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + at + mark.size(), end, writer);
  if (error != std::errc() || stop != end || writer <= 0) return std::nullopt;
  return Leftover{name.substr(0, at), writer};
}

bool is_another_living_process(pid_t pid) { return pid != ::getpid() && (::kill(pid, 0) == 0 || errno == EPERM); }

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

void write_file_atomic(const fs::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

AtomicFile::AtomicFile(fs::path final_path)
    : final_(std::move(final_path)), temporary_(marked(final_, kTemporaryMark)) {
  std::error_code error;
  const fs::file_status standing = fs::status(final_, error);
  // A rename would put a file in the place of /dev/null.
  if (fs::exists(standing) && !fs::is_regular_file(standing) && !fs::is_directory(standing)) {
    throw UsageError(fmt::format("{}: expected a file to write, got a device or a pipe", final_.string()));
  }
  file_ = FileHandle(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file_.valid()) throw_system_error("write", final_, errno);
}

AtomicFile::~AtomicFile() {
  if (!file_.valid()) return;
  file_.close();
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (const int error = write_all(file_.get(), bytes.data(), bytes.size())) throw_system_error("write", final_, error);
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void AtomicFile::commit() {
  if (const int error = sync_to_disk(file_.get())) throw_system_error("write", final_, error);
  if (::rename(temporary_.c_str(), final_.c_str()) != 0) throw_system_error("write", final_, errno);
  // From here on the file stands; only the folder's own entry may still fail to reach the disk.
  const int close_error = file_.close();
  const int sync_error = sync_to_disk(folder_of(final_));
  if (close_error) throw_system_error("write", final_, close_error);
  if (sync_error) throw_system_error("sync the folder of", final_, sync_error);
}

AtomicDirectory::AtomicDirectory(fs::path final_path) : final_(std::move(final_path)) {
  if (!final_.has_filename()) final_ = final_.parent_path();  // "run/step5/" means "run/step5"
  temporary_ = marked(final_, kTemporaryMark);
  std::error_code error;
  fs::remove_all(temporary_, error);  // of a killed process that had our id
  if (!fs::create_directory(temporary_, error)) throw_system_error("create", final_, error ? error.value() : EEXIST);
}

AtomicDirectory::~AtomicDirectory() {
  if (committed_) return;
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
}

void AtomicDirectory::commit() {
  SIAMESE_INVARIANT(!committed_);
  sync_tree(temporary_);
  std::error_code error;
  const fs::file_status existing = fs::symlink_status(final_, error);
  if (fs::exists(existing) && !fs::is_directory(existing)) throw_system_error("replace", final_, ENOTDIR);
  fs::path replaced;  // where the old folder went, if there was one
  if (fs::exists(existing) && exchange(temporary_, final_)) {
    replaced = temporary_;
  } else {
    if (fs::exists(existing)) {
      replaced = marked(final_, kMovedAwayMark);
      fs::remove_all(replaced, error);
      if (::rename(final_.c_str(), replaced.c_str()) != 0) throw_system_error("replace", final_, errno);
    }
    if (::rename(temporary_.c_str(), final_.c_str()) != 0) {
      const int failed = errno;
      if (!replaced.empty()) fs::rename(replaced, final_, error);
      throw_system_error("create", final_, failed);
    }
  }
  committed_ = true;
  const int failed = sync_to_disk(folder_of(final_));
  if (!replaced.empty()) fs::remove_all(replaced, error);
  if (failed) throw_system_error("sync the folder of", final_, failed);
}

void remove_folder(const fs::path& folder) {
  const fs::path aside = marked(folder, kTemporaryMark);
  std::error_code error;
  fs::remove_all(aside, error);  // of a killed process that had our id
  if (::rename(folder.c_str(), aside.c_str()) != 0) throw_system_error("remove", folder, errno);
  // A power cut must not bring the name back to a folder that has lost some of its files.
  const int failed = sync_to_disk(folder_of(folder));
  fs::remove_all(aside, error);
  if (error) throw_system_error("remove", folder, error.value());
  if (failed) throw_system_error("sync the folder of", folder, failed);
}

int remove_stale_temporaries(const fs::path& folder, std::string_view of) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  int tidied = 0;
  for (const fs::path& path : entries) {
    const std::string name = path.filename().string();
    const auto temporary = parse_leftover(name, kTemporaryMark);
    const auto moved_away = parse_leftover(name, kMovedAwayMark);
    if (!temporary && !moved_away) continue;
    if (!of.empty() && (temporary ? temporary->name : moved_away->name) != of) continue;
    if (is_another_living_process(temporary ? temporary->writer : moved_away->writer)) continue;
    if (moved_away && !fs::exists(fs::symlink_status(folder / moved_away->name, error))) {
      fs::rename(path, folder / moved_away->name, error);
    } else {
      fs::remove_all(path, error);
    }
    if (!error) ++tidied;
  }
  return tidied;
}

}  // namespace siamese::io

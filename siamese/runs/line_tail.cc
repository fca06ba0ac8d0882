#include "siamese/runs/line_tail.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "siamese/io/file_handle.h"

namespace siamese::runs {
namespace {

constexpr size_t kEndBytes = 256;  // enough for the step, the checksum and the times of a line

// Never waits, whatever stands there: a pipe is no file of a run.
io::FileHandle open_to_look(const std::filesystem::path& file) {
  return io::FileHandle(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

// Fewer bytes than asked for at the end of the file; -1 with errno.
ssize_t read_at(int descriptor, char* into, size_t bytes, uint64_t offset) {
  size_t got = 0;
  while (got < bytes) {
    const ssize_t part = ::pread(descriptor, into + got, bytes - got, static_cast<off_t>(offset + got));
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) return -1;
    if (part == 0) break;
    got += static_cast<size_t>(part);
  }
  return static_cast<ssize_t>(got);
}

}  // namespace

void LineTail::restart() {
  offset_ = lines_ = 0;
  end_.clear();
  passing_over_ = false;
}

bool LineTail::last_line_stands(int descriptor) const {
  std::string now(end_.size(), '\0');
  return read_at(descriptor, now.data(), now.size(), offset_ - end_.size()) == static_cast<ssize_t>(now.size()) &&
         now == end_;
}

void LineTail::remember_end(std::string_view before_offset) {
  end_ = before_offset.substr(before_offset.size() - std::min(before_offset.size(), kEndBytes));
}

TailChange LineTail::look() {
  struct stat now = {};
  const int failed = ::stat(file_.c_str(), &now) == 0 ? 0 : errno;
  obstacle_.clear();
  if (failed != 0 || !S_ISREG(now.st_mode)) {
    if (failed == 0) {
      const char* const what = S_ISDIR(now.st_mode) ? "a folder" : S_ISFIFO(now.st_mode) ? "a pipe" : "something else";
      obstacle_ = fmt::format("'{}': expected a file, got {}", file_.string(), what);
    } else if (failed != ENOENT && failed != ENOTDIR) {
      obstacle_ = fmt::format("cannot read '{}': {}", file_.string(), std::strerror(failed));
    }
    const bool was_there = inode_ != 0;
    restart();
    size_ = 0;
    inode_ = 0;
    seconds_ = 0;
    return was_there ? TailChange::gone : TailChange::none;
  }
  const auto size = static_cast<uint64_t>(now.st_size);
  const bool first = inode_ == 0;
  const bool other = !first && (now.st_ino != inode_ || now.st_dev != device_);
  const bool touched = size != size_ || now.st_mtim.tv_sec != seconds_ || now.st_mtim.tv_nsec != nanoseconds_;
  if (!first && !other && !touched) return TailChange::none;
  size_ = size;
  device_ = now.st_dev;
  inode_ = now.st_ino;
  seconds_ = now.st_mtim.tv_sec;
  nanoseconds_ = now.st_mtim.tv_nsec;
  if (first) return TailChange::grown;
  const auto begin_again = [this] {
    restart();
    return TailChange::restarted;
  };
  if (other || size < offset_) return begin_again();
  const io::FileHandle file = open_to_look(file_);
  return file.valid() && !last_line_stands(file.get()) ? begin_again() : TailChange::grown;
}

bool LineTail::read(const Use& use, Notes& notes) {
  const io::FileHandle file = open_to_look(file_);
  if (!file.valid()) {
    if (errno != ENOENT) notes.push_back(fmt::format("cannot read '{}': {}", file_.string(), std::strerror(errno)));
    return false;
  }
  std::string text(std::min<uint64_t>(kMostAtOnce, size_ > offset_ ? size_ - offset_ : 0), '\0');
  size_t filled = 0;
  for (;;) {
    const ssize_t got = read_at(file.get(), text.data() + filled, text.size() - filled, offset_ + filled);
    if (got < 0) {
      notes.push_back(fmt::format("cannot read '{}': {}", file_.string(), std::strerror(errno)));
      return false;
    }
    filled += static_cast<size_t>(got);
    const bool at_end = filled < text.size() || offset_ + filled >= size_;
    if (at_end || text.size() >= kLongestLine || std::memchr(text.data(), '\n', filled) != nullptr) break;
    text.resize(std::min<uint64_t>(kLongestLine, size_ - offset_));  // a line longer than one turn
  }
  const std::string_view whole(text.data(), filled);
  size_t from = 0;
  for (size_t end = 0; (end = whole.find('\n', from)) != std::string_view::npos; from = end + 1) {
    const std::string_view line = whole.substr(from, end - from);
    ++lines_;
    if (std::exchange(passing_over_, false) || line.find_first_not_of(" \r") == std::string_view::npos) continue;
    use(line, fmt::format("{}: line {}", file_.string(), lines_));
  }
  if (from == 0 && filled >= kLongestLine) {
    if (!passing_over_) {
      notes.push_back(fmt::format("{}: line {}: expected at most {} bytes, got more: passed over", file_.string(),
                                  lines_ + 1, kLongestLine));
    }
    passing_over_ = true;
    from = filled;
  }
  if (from > 0) {
    offset_ += from;
    remember_end(whole.substr(0, from));
  }
  return from > 0 && offset_ < size_;
}

}  // namespace siamese::runs

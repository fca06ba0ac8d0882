// The lines of a file that somebody else goes on writing: each is handed out once, when its '\n' is there.
// A file that was replaced, cut or written anew (a resumed run cuts metrics.jsonl) begins again at its first line: that
// is seen by another inode, by a size below what was read, or by other bytes where the last line read ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <sys/types.h>

#include "siamese/runs/notes.h"

namespace siamese::runs {

enum class TailChange {
  none,       // as it was
  grown,      // there may be new lines
  restarted,  // forget everything that it said: it is read from its beginning
  gone,       // the same, and there is no file now
};

class LineTail {
 public:
  static constexpr size_t kLongestLine = size_t{16} << 20;  // a longer one is passed over, with a note
  static constexpr size_t kMostAtOnce = size_t{1} << 20;    // bytes of one read(), so that many files take turns

  explicit LineTail(std::filesystem::path file) : file_(std::move(file)) {}

  // One stat() when nothing changed.
  TailChange look();

  // Hands out whole lines that are new, and where each stands ("FILE: line 3") for errors; empty ones are passed over.
  // True when there are more than fit into one call. What cannot be read, or is too long, is a note.
  using Use = std::function<void(std::string_view line, const std::string& where)>;
  bool read(const Use& use, Notes& notes);

  // Something stands behind the last '\n': its writer is at work or was killed.
  bool torn() const { return size_ > offset_; }
  // What stands in the place of the file that is none, or why the system would not say; empty: nothing does, or a file.
  const std::string& obstacle() const { return obstacle_; }
  std::time_t changed() const { return seconds_; }  // when the file was last written; 0: there is none

 private:
  void restart();
  bool last_line_stands(int descriptor) const;
  void remember_end(std::string_view before_offset);

  std::filesystem::path file_;
  std::string obstacle_;
  uint64_t offset_ = 0;  // of the first line that was not handed out
  uint64_t size_ = 0;    // when it was last looked at
  uint64_t lines_ = 0;   // handed out
  std::string end_;      // the last bytes before offset_
  bool passing_over_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::time_t seconds_ = 0;
  long nanoseconds_ = 0;
};

}  // namespace siamese::runs

#include "siamese/cli/progress_line.h"

#include <cstdio>

#include <unistd.h>

#include "siamese/base/utf8.h"

namespace siamese::cli {

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) == 1), start_(Clock::now()), shown_(start_) {}

void ProgressLine::restart() { start_ = shown_ = Clock::now(); }

double ProgressLine::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

bool ProgressLine::due() {
  const auto now = Clock::now();
  if (now - shown_ < (terminal_ ? std::chrono::milliseconds(500) : std::chrono::seconds(5))) return false;
  shown_ = now;
  return true;
}

void ProgressLine::show(const std::string& text) {
  std::fprintf(stderr, terminal_ ? "\r\033[K%s" : "%s\n", printable(text).c_str());
  drawn_ = terminal_;
}

void ProgressLine::clear() {
  if (drawn_) std::fprintf(stderr, "\r\033[K");
  drawn_ = false;
}

}  // namespace siamese::cli

// Errors. A user error throws `Error` with one sentence (what, expected, got) and the exit code the
// command line returns; a broken invariant of our own aborts, because no caller can mend it.
#pragma once

#include <stdexcept>
#include <string>

namespace siamese {

// The documented exit codes of the command line (128 + signal number is returned after a signal).
enum class Exit : int { ok = 0, failure = 1, usage = 2, bad_data = 3, diverged = 4, resumable = 75 };

class Error : public std::runtime_error {
 public:
  Error(Exit code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Exit code() const { return code_; }

 private:
  Exit code_;
};

// A wrong flag, key, value or shape: what the user wrote cannot be done (exit 2).
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(Exit::usage, message) {}
};

// A file that is missing, truncated or not what it claims to be (exit 3).
class DataError : public Error {
 public:
  explicit DataError(const std::string& message) : Error(Exit::bad_data, message) {}
};

// The machine said no: disk full, not writable (exit 1).
class SystemError : public Error {
 public:
  explicit SystemError(const std::string& message) : Error(Exit::failure, message) {}
};

// Training cannot go on: the loss or gradient stayed non-finite (exit 4).
class DivergedError : public Error {
 public:
  explicit DivergedError(const std::string& message) : Error(Exit::diverged, message) {}
};

[[noreturn]] void invariant_failed(const char* condition, const char* file, int line);

}  // namespace siamese

// For what only a bug of ours can break.
#define SIAMESE_INVARIANT(condition) \
  ((condition) ? (void)0 : ::siamese::invariant_failed(#condition, __FILE__, __LINE__))

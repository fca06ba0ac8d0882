// LD_PRELOAD library of tools/attack.py: counts the calls of a process that change (or read) files below one folder and,
// at the n-th of them, kills the process, lets the call fail, or holds it until told to go on. So a kill "at call 17"
// is the same moment every time, without ptrace and its privileges.
//
//   ATTACK_ROOT   the folder, absolute; calls about anything else are passed on
//   ATTACK_READS  set: calls that read are counted, not those that write
//   ATTACK_LOG    each counted call is appended to this file: "17 rename run/latest"
//   ATTACK_AT     n; 0 or unset: only count
//   ATTACK_DO     kill (before the call), half (a write: after half of its bytes), hold, or a number: that errno
//   ATTACK_STAYS  set: every later call fails too (only a number, and only calls that need room on the disk)
//   ATTACK_FIFO   hold: opens FIFO.here to say so, then waits until FIFO.go is opened
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))real(#name))

static void* real(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (!found) _exit(97);
  return found;
}

enum Kind { reads, changes, needs_room };  // the last is a change that a full disk refuses

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static long calls = 0;

static void append_to_log(const char* name, const char* path) {
  const char* const log = getenv("ATTACK_LOG");
  if (!log) return;
  const int file = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  char line[PATH_MAX + 64];
  const int length = snprintf(line, sizeof line, "%ld %s %s\n", calls, name, path);
  if (file >= 0 && REAL(write)(file, line, (size_t)length) != length) _exit(98);
  REAL(close)(file);
}

// Two FIFOs: opening one for writing waits for its reader, and the reader is the attack.
static void hold(void) {
  char name[PATH_MAX];
  snprintf(name, sizeof name, "%s.here", getenv("ATTACK_FIFO"));
  const long here = syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CLOEXEC, 0);
  if (here >= 0) REAL(close)((int)here);
  snprintf(name, sizeof name, "%s.go", getenv("ATTACK_FIFO"));
  const long go = syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC, 0);
  if (go >= 0) REAL(close)((int)go);
}

static int is_watched(const char* path) {
  const char* const root = getenv("ATTACK_ROOT");
  const size_t length = root ? strlen(root) : 0;
  return length > 0 && strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

// 0: go on; > 0: fail with it; -1: die after half of the bytes. Called with the absolute path.
static int judge(enum Kind kind, const char* name, const char* path) {
  const int wanted = getenv("ATTACK_READS") ? kind == reads : kind != reads;
  if (!wanted || !is_watched(path)) return 0;
  const char* const text = getenv("ATTACK_AT");
  const char* const what = getenv("ATTACK_DO");
  const long at = text ? atol(text) : 0;
  const int kept_errno = errno;
  pthread_mutex_lock(&guard);
  const long number = ++calls;
  append_to_log(name, path + strlen(getenv("ATTACK_ROOT")));
  pthread_mutex_unlock(&guard);
  errno = kept_errno;
  if (at == 0 || !what || number < at) return 0;
  if (number > at) return getenv("ATTACK_STAYS") && kind == needs_room ? atoi(what) : 0;
  if (strcmp(what, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(what, "half") == 0) return -1;
  if (strcmp(what, "hold") == 0) {
    hold();
    errno = kept_errno;
    return 0;
  }
  return atoi(what);
}

static int judge_at(enum Kind kind, const char* name, int folder, const char* path) {
  if (!path) return 0;
  char full[2 * PATH_MAX + 2] = "";
  if (path[0] != '/') {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    const long length = syscall(SYS_readlinkat, AT_FDCWD, folder == AT_FDCWD ? "/proc/self/cwd" : link, full, PATH_MAX);
    if (length <= 0) return 0;
    full[length] = '/';
    full[length + 1] = '\0';
    if (path[0] == '\0') full[length] = '\0';
  }
  strncat(full, path, PATH_MAX);
  return judge(kind, name, full);
}

static int judge_path(enum Kind kind, const char* name, const char* path) { return judge_at(kind, name, AT_FDCWD, path); }
static int judge_file(enum Kind kind, const char* name, int file) { return file < 0 ? 0 : judge_at(kind, name, file, ""); }

#define FAIL_OR(verdict, failure, call)          \
  const int said = (verdict);                    \
  if (said == -1) kill(getpid(), SIGKILL);       \
  if (said > 0) {                                \
    errno = said;                                \
    return failure;                              \
  }                                              \
  return call

static enum Kind kind_of_open(int flags) {
  if (flags & (O_CREAT | O_TRUNC)) return needs_room;
  return (flags & O_ACCMODE) == O_RDONLY ? reads : changes;
}

#define OPEN(name, parameters, folder, ...)                                    \
  int name parameters {                                                        \
    va_list list;                                                              \
    va_start(list, flags);                                                     \
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0; \
    va_end(list);                                                              \
    FAIL_OR(judge_at(kind_of_open(flags), "open", folder, path), -1, REAL(name)(__VA_ARGS__)); \
  }
OPEN(open, (const char* path, int flags, ...), AT_FDCWD, path, flags, mode)
OPEN(open64, (const char* path, int flags, ...), AT_FDCWD, path, flags, mode)
OPEN(openat, (int folder, const char* path, int flags, ...), folder, folder, path, flags, mode)
OPEN(openat64, (int folder, const char* path, int flags, ...), folder, folder, path, flags, mode)

#define CALL(result, name, parameters, verdict, failure, ...) \
  result name parameters { FAIL_OR(verdict, failure, REAL(name)(__VA_ARGS__)); }

CALL(FILE*, fopen, (const char* path, const char* mode), judge_path(mode[0] == 'r' ? reads : needs_room, "fopen", path),
     NULL, path, mode)
CALL(FILE*, fopen64, (const char* path, const char* mode),
     judge_path(mode[0] == 'r' ? reads : needs_room, "fopen", path), NULL, path, mode)
CALL(int, rename, (const char* from, const char* to), judge_path(changes, "rename", to), -1, from, to)
CALL(int, renameat, (int a, const char* from, int b, const char* to), judge_at(changes, "rename", b, to), -1, a, from, b,
     to)
CALL(int, renameat2, (int a, const char* from, int b, const char* to, unsigned flags),
     judge_at(changes, "rename", b, to), -1, a, from, b, to, flags)
CALL(int, unlink, (const char* path), judge_path(changes, "unlink", path), -1, path)
CALL(int, unlinkat, (int folder, const char* path, int flags), judge_at(changes, "unlink", folder, path), -1, folder,
     path, flags)
CALL(int, remove, (const char* path), judge_path(changes, "unlink", path), -1, path)
CALL(int, rmdir, (const char* path), judge_path(changes, "rmdir", path), -1, path)
CALL(int, mkdir, (const char* path, mode_t mode), judge_path(needs_room, "mkdir", path), -1, path, mode)
CALL(int, mkdirat, (int folder, const char* path, mode_t mode), judge_at(needs_room, "mkdir", folder, path), -1, folder,
     path, mode)
CALL(int, link, (const char* from, const char* to), judge_path(needs_room, "link", to), -1, from, to)
CALL(int, linkat, (int a, const char* from, int b, const char* to, int flags), judge_at(needs_room, "link", b, to), -1, a,
     from, b, to, flags)
CALL(int, symlink, (const char* text, const char* path), judge_path(needs_room, "symlink", path), -1, text, path)
CALL(int, truncate, (const char* path, off_t size), judge_path(changes, "truncate", path), -1, path, size)
CALL(int, ftruncate, (int file, off_t size), judge_file(changes, "truncate", file), -1, file, size)
CALL(int, ftruncate64, (int file, off64_t size), judge_file(changes, "truncate", file), -1, file, size)
CALL(int, fsync, (int file), judge_file(changes, "fsync", file), -1, file)
CALL(int, fdatasync, (int file), judge_file(changes, "fsync", file), -1, file)
CALL(int, flock, (int file, int operation), judge_file(changes, "flock", file), -1, file, operation)
CALL(int, fallocate, (int file, int mode, off_t at, off_t size), judge_file(needs_room, "fallocate", file), -1, file,
     mode, at, size)
CALL(ssize_t, sendfile, (int to, int from, off_t* at, size_t size), judge_file(needs_room, "sendfile", to), -1, to, from,
     at, size)
CALL(ssize_t, copy_file_range, (int from, off64_t* a, int to, off64_t* b, size_t size, unsigned flags),
     judge_file(needs_room, "copy", to), -1, from, a, to, b, size, flags)

CALL(ssize_t, read, (int file, void* to, size_t size), judge_file(reads, "read", file), -1, file, to, size)
CALL(ssize_t, pread, (int file, void* to, size_t size, off_t at), judge_file(reads, "read", file), -1, file, to, size, at)
CALL(ssize_t, pread64, (int file, void* to, size_t size, off64_t at), judge_file(reads, "read", file), -1, file, to, size,
     at)
CALL(void*, mmap, (void* to, size_t size, int access, int flags, int file, off_t at), judge_file(reads, "mmap", file),
     MAP_FAILED, to, size, access, flags, file, at)
CALL(int, stat, (const char* path, struct stat* to), judge_path(reads, "stat", path), -1, path, to)
CALL(int, lstat, (const char* path, struct stat* to), judge_path(reads, "stat", path), -1, path, to)

ssize_t write(int file, const void* bytes, size_t size) {
  const int said = judge_file(needs_room, "write", file);
  if (said == -1) {
    if (REAL(write)(file, bytes, size / 2) >= 0) kill(getpid(), SIGKILL);
  }
  if (said <= 0) return REAL(write)(file, bytes, size);
  errno = said;
  return -1;
}

ssize_t writev(int file, const struct iovec* parts, int count) {
  const int said = judge_file(needs_room, "write", file);
  if (said == -1 && count > 0) {
    if (REAL(write)(file, parts[0].iov_base, parts[0].iov_len / 2) >= 0) kill(getpid(), SIGKILL);
  }
  if (said <= 0) return REAL(writev)(file, parts, count);
  errno = said;
  return -1;
}

#include "siamese/io/aside.h"

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <optional>
#include <random>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "siamese/base/random.h"
#include "siamese/io/message.h"

namespace siamese::io {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kWritingMark = ".tmp-";
constexpr std::string_view kMovedAwayMark = ".old-";
constexpr size_t kPartDigits = 8;  // of boot, host and check
constexpr size_t kRandomDigits = 16;

std::string digits(uint64_t value) { return fmt::format("{:08x}", value & 0xffffffffU); }

struct Machine {
  std::string boot, host;
};

// The boot tells one kernel from another, also of containers, which have host names of their own. The host then tells a
// machine that was started again from another one.
const Machine& this_machine() {
  static const Machine machine = [] {
    std::string boot, machine_id;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    std::ifstream("/etc/machine-id") >> machine_id;
    char host[256] = {};
    if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    return Machine{digits(hash_text(boot)), digits(hash_text(host + (" " + machine_id)))};
  }();
  return machine;
}

std::string random_digits() {
  static thread_local std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

struct AsideName {
  std::string name;  // of what it stands aside of
  Aside aside;
  Machine machine;
};

// "step5.tmp-0123...": nullopt unless every part is there and the check holds.
std::optional<AsideName> parse(std::string_view name, std::string_view mark, Aside aside) {
  constexpr size_t kTail = 2 * kPartDigits + 1 + kRandomDigits + 1 + kPartDigits;
  if (name.size() <= mark.size() + kTail) return std::nullopt;
  const std::string_view of = name.substr(0, name.size() - kTail - mark.size());
  const std::string_view tail = name.substr(name.size() - kTail);
  if (name.substr(of.size(), mark.size()) != mark) return std::nullopt;
  const std::string_view checked = name.substr(0, name.size() - kPartDigits - 1);
  if (name.substr(checked.size()) != "-" + digits(hash_text(checked))) return std::nullopt;
  return AsideName{std::string(of),
                   aside,
                   {std::string(tail.substr(0, kPartDigits)), std::string(tail.substr(kPartDigits, kPartDigits))}};
}

std::optional<AsideName> parse(std::string_view name) {
  if (auto writing = parse(name, kWritingMark, Aside::writing)) return writing;
  return parse(name, kMovedAwayMark, Aside::moved_away);
}

// Locks on one kernel are seen by all of its processes; a host that was started again has none of its old ones left.
bool can_be_judged(const Machine& writer) {
  return writer.boot == this_machine().boot || writer.host == this_machine().host;
}

// A handle that proves nobody holds it; an invalid one when somebody does or it cannot be told.
FileHandle claim(const fs::path& path) {
  std::error_code error;
  const bool folder = fs::is_directory(fs::symlink_status(path, error));
  const int mode = folder ? O_RDONLY | O_DIRECTORY : O_RDWR;
  FileHandle handle(::open(path.c_str(), mode | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!handle.valid() || try_lock(handle.get()) != 0 || !is_at(handle.get(), path)) return FileHandle();
  return handle;
}

bool tidy(const fs::path& path, const AsideName& aside) {
  const FileHandle nobody_writes_it = claim(path);
  if (!nobody_writes_it.valid()) return false;
  std::error_code error;
  const fs::path place = path.parent_path() / aside.name;
  if (aside.aside == Aside::moved_away && !fs::exists(fs::symlink_status(place, error))) {
    fs::rename(path, place, error);
  } else {
    fs::remove_all(path, error);
  }
  return !error;
}

// Between the creation and the lock somebody may have taken it for a leftover: then once more, under another name.
template <class Create>
AsideEntry create_locked(const fs::path& path, std::string_view action, Create create) {
  constexpr int kMostTries = 16;
  for (int tries = 0; tries < kMostTries; ++tries) {
    AsideEntry entry{aside_name(path, Aside::writing), {}};
    entry.handle = create(entry.path);
    if (!entry.handle.valid()) {
      if (errno == ENOENT && fs::is_directory(folder_of(path))) continue;  // removed before it could be opened
      throw_system_error(action, path, errno);
    }
    // Somebody takes it for a leftover: then another. (A file system without locks: nobody tidies there.)
    if (try_lock(entry.handle.get()) == EWOULDBLOCK) continue;
    if (is_at(entry.handle.get(), entry.path)) return entry;
    std::error_code ignored;
    fs::remove(entry.path, ignored);  // the system may only have failed to say that it is there
  }
  throw_system_error(action, path, EBUSY);
}

}  // namespace

fs::path aside_name(const fs::path& path, Aside aside) {
  const Machine& machine = this_machine();
  const std::string checked =
      fmt::format("{}{}{}{}-{}", path.filename().string(), aside == Aside::writing ? kWritingMark : kMovedAwayMark,
                  machine.boot, machine.host, random_digits());
  return folder_of(path) / (checked + "-" + digits(hash_text(checked)));
}

bool is_aside_name(std::string_view name) { return parse(name).has_value(); }

AsideEntry create_aside_file(const fs::path& path) {
  return create_locked(path, "write", [](const fs::path& aside) {
    return FileHandle(::open(aside.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  });
}

AsideEntry create_aside_folder(const fs::path& path) {
  return create_locked(path, "create", [](const fs::path& aside) {
    if (::mkdir(aside.c_str(), 0777) != 0) return FileHandle();
    return FileHandle(::open(aside.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  });
}

int remove_leftovers(const fs::path& folder, std::string_view of) {
  std::vector<fs::path> entries;  // first all names: what is removed below must not disturb the walk
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (is_aside_name(entry->path().filename().string())) entries.push_back(entry->path());
  }
  int tidied = 0;
  for (const fs::path& path : entries) {
    const auto aside = parse(path.filename().string());
    if (!of.empty() && aside->name != of) continue;
    if (can_be_judged(aside->machine) && tidy(path, *aside)) ++tidied;
  }
  return tidied;
}

}  // namespace siamese::io

// What is written aside, before it is renamed, and what was moved away, before it is removed: its name, and who may
// tidy it up when its writer was killed.
//   step5.tmp-<machine>-<random>-<check>     being written
//   step5.old-<machine>-<random>-<check>     was `step5`, on its way out
// Machine: 8 hexadecimal digits of this boot, 8 of the host. Check: a hash of the rest of the name, so that no
// file of anybody else bears such a name by chance: only names that pass it are ever touched.
// While it lives, the writer holds a lock on what it writes. A lock does not depend on process ids, so it also tells
// the living from the dead when containers share a folder.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "siamese/io/file_handle.h"

namespace siamese::io {

enum class Aside { writing, moved_away };

// A new name beside `path`, different at every call.
std::filesystem::path aside_name(const std::filesystem::path& path, Aside aside);

// Whether a name in a folder is one that aside_name gave.
bool is_aside_name(std::string_view name);

// Creates a file or folder under an aside name and locks it, for as long as the handle lives. SystemError naming
// `path`.
struct AsideEntry {
  std::filesystem::path path;
  FileHandle handle;
};
AsideEntry create_aside_file(const std::filesystem::path& path);
AsideEntry create_aside_folder(const std::filesystem::path& path);

// Removes what killed writers left aside directly in `folder`, and puts back a folder that was moved away but never
// replaced. What a living writer holds stays, and what another machine wrote that is not known to be dead. Returns how
// many were tidied. `of`: only those of the file or folder of this name.
int remove_leftovers(const std::filesystem::path& folder, std::string_view of = "");

}  // namespace siamese::io

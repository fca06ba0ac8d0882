// What stands at a path. "It is not there" and "the system would not say" are two answers: a folder that may not be
// entered must not look like one that is empty.
#pragma once

#include <filesystem>
#include <vector>

namespace siamese {

enum class PathKind { missing, file, folder, other };

// Follows links. DataError with the path and the system's reason when it cannot tell: permission denied, a circle of
// links, a name too long, a file where a folder should be on the way there, an error of the disk.
PathKind path_kind(const std::filesystem::path& path);

inline bool is_there(const std::filesystem::path& path) { return path_kind(path) != PathKind::missing; }
inline bool is_file(const std::filesystem::path& path) { return path_kind(path) == PathKind::file; }
inline bool is_folder(const std::filesystem::path& path) { return path_kind(path) == PathKind::folder; }

// Whether something stands where we are to write: a link that leads nowhere too. Below a file nothing does; whoever
// makes the path hears of that. Otherwise DataError as above.
bool is_taken(const std::filesystem::path& path);

// Everything directly in a folder, in the order of names. DataError as above, also when it is missing.
std::vector<std::filesystem::path> folder_entries(const std::filesystem::path& folder);

}  // namespace siamese

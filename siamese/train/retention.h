// Which checkpoints of a run stay (train.keep_last = k, train.keep_every = n): the newest k up to the one that `latest`
// names, that one in any case, and for ever every one whose step is a multiple of n.
#pragma once

#include <cstdint>
#include <filesystem>

namespace siamese::train {

// Removes the others; k = 0 keeps all. Those past `latest` (left by a resume from an older one) are not looked at:
// they are written anew. SystemError when a folder cannot be removed.
void remove_old_checkpoints(const std::filesystem::path& run_dir, int64_t keep_last, int64_t keep_every);

}  // namespace siamese::train

#include "siamese/train/retention.h"

#include <algorithm>
#include <iterator>

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/run_dir.h"
#include "siamese/train/run_folder.h"

namespace siamese::train {

void remove_old_checkpoints(const std::filesystem::path& run_dir, int64_t keep_last, int64_t keep_every) {
  const auto latest = io::read_latest(run_dir);
  if (keep_last == 0 || !latest) return;
  const std::vector<int64_t> all = io::list_checkpoints(run_dir);
  const auto after_latest = std::upper_bound(all.begin(), all.end(), *io::checkpoint_step(*latest));
  const std::ptrdiff_t older = std::distance(all.begin(), after_latest) - static_cast<std::ptrdiff_t>(keep_last);
  std::string failed;  // one that stays is no reason to keep the others
  for (std::ptrdiff_t i = 0; i < older; ++i) {
    const int64_t step = all[static_cast<size_t>(i)];
    if (keep_every > 0 && step % keep_every == 0) continue;
    try {
      check_only_checkpoint(run_dir / io::checkpoint_name(step));
      io::remove_folder(run_dir / io::checkpoint_name(step));
    } catch (const SystemError& error) {
      failed = error.what();
    }
  }
  if (!failed.empty()) throw SystemError(failed);
}

}  // namespace siamese::train

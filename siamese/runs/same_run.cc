#include "siamese/runs/same_run.h"

#include "siamese/base/check.h"
#include "siamese/io/run_dir.h"
#include "siamese/runs/run_info.h"

namespace siamese::runs {
namespace fs = std::filesystem;
namespace {

// "": no run, or one of version 0.1.0. Whether every field can be read is not the question here.
std::string id_of(const fs::path& run) {
  Notes notes;
  const auto info = read_run_file(run, &notes);
  return info ? info->id : "";
}

}  // namespace

SameRun::SameRun(const fs::path& checkpoint) {
  const fs::path whole = fs::absolute(checkpoint).lexically_normal();
  run_ = (whole.has_filename() ? whole : whole.parent_path()).parent_path();
  id_ = id_of(run_);
}

void SameRun::check(const fs::path& made) const {
  if (id_.empty() || id_of(run_) == id_) return;
  std::error_code ignored;
  if (!made.empty() && fs::remove(made, ignored)) fs::remove(made.parent_path(), ignored);
  throw DataError(run_.string() + ": another run was put there meanwhile: nothing about the one before is kept in it");
}

}  // namespace siamese::runs

#include "siamese/data/bytes_per_token.h"

#include <limits>
#include <set>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/data/files.h"
#include "siamese/data/prepared.h"

namespace siamese::data {
namespace {

namespace fs = std::filesystem;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Which side of a prepared corpus a folder is; -1: none.
int side_of(const fs::path& folder) {
  for (size_t i = 0; i < kSideNames.size(); ++i) {
    if (folder.filename() == kSideNames[i]) return static_cast<int>(i);
  }
  return -1;
}

double of_prepared(const std::vector<fs::path>& files) {
  std::set<fs::path> folders;
  for (const fs::path& file : files) folders.insert(fs::weakly_canonical(file).parent_path());
  uint64_t bytes = 0, tokens = 0;
  for (const fs::path& folder : folders) {
    const int side = side_of(folder);
    const fs::path manifest = folder.parent_path() / "manifest.json";
    if (side < 0 || !is_file(manifest)) return kUnknown;
    const SideCounts counts = read_manifest(manifest).sides[static_cast<size_t>(side)];
    bytes += counts.bytes;
    tokens += counts.tokens;
  }
  return tokens > 0 && bytes > 0 ? static_cast<double>(bytes) / static_cast<double>(tokens) : kUnknown;
}

}  // namespace

double bytes_per_token(const DataConfig& asked) {
  if (asked.source == Source::text) return 1;
  if (asked.source != Source::tokens) return kUnknown;
  const DataConfig config = located(asked);
  try {
    return config.val.empty() ? of_prepared(expand_files("data.train", config.train, config.base))
                              : of_prepared(expand_files("data.val", config.val, config.base));
  } catch (const DataError&) {
    return kUnknown;  // a manifest of somebody else's program
  }
}

}  // namespace siamese::data

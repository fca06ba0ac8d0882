#include "siamese/data/document_index.h"

#include <cstring>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"

namespace siamese::data {
namespace {

namespace fs = std::filesystem;

fs::path index_of(const fs::path& token_file) {
  const fs::path file = fs::absolute(token_file).lexically_normal();
  const fs::path side = file.parent_path();
  const fs::path index = side.parent_path() / "documents" / side.filename() / file.filename();
  if (!is_file(index)) {
    throw DataError(
        fmt::format("data.pack: {}: expected where its documents begin in {}, as `siamese prepare` writes "
                    "it, got nothing",
                    token_file.string(), index.string()));
  }
  return index;
}

}  // namespace

DocumentIndex::DocumentIndex(const fs::path& token_file, int64_t tokens)
    : file_(io::NpyFile::open(index_of(token_file))), name_(index_of(token_file).string()), count_(0) {
  const io::NpyView& view = file_.view();
  if (view.dtype != io::DType::u64 || view.shape.size() != 1 || view.shape[0] < 2) {
    throw DataError(name_ + ": expected one dimension of at least 2 uint64");
  }
  count_ = view.shape[0];
  if (at(0) != 0 || at(count_ - 1) != static_cast<uint64_t>(tokens)) {
    throw DataError(fmt::format("{}: expected documents from token 0 to {}, got {} to {}: not the index of {}", name_,
                                tokens, at(0), at(count_ - 1), token_file.string()));
  }
}

uint64_t DocumentIndex::at(int64_t i) const {
  uint64_t value = 0;
  std::memcpy(&value, file_.view().data.data() + static_cast<size_t>(i) * sizeof value, sizeof value);
  return value;
}

std::vector<int64_t> DocumentIndex::begins_between(int64_t begin, int64_t end) const {
  int64_t low = 0, high = count_;  // the first entry past `begin` is in [low, high]
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (at(middle) > static_cast<uint64_t>(begin)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  std::vector<int64_t> begins;
  auto last = static_cast<uint64_t>(begin);
  for (; low < count_ && at(low) < static_cast<uint64_t>(end); ++low) {
    if (at(low) <= last) throw DataError(fmt::format("{}: entry {} is not past the one before it", name_, low));
    last = at(low);
    begins.push_back(static_cast<int64_t>(last));
  }
  return begins;
}

}  // namespace siamese::data

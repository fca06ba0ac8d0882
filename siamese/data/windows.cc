#include "siamese/data/windows.h"

#include <algorithm>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/random.h"
#include "siamese/data/files.h"

namespace siamese::data {
namespace fs = std::filesystem;
namespace {

int64_t window_count(const Part& part, int64_t context) {
  return part.end > part.begin ? (part.end - part.begin - 1) / context : 0;
}

// [begin, end) of a file of `size` tokens that belongs to `split`.
std::pair<int64_t, int64_t> range_of(const DataConfig& config, Split split, int64_t size) {
  if (!config.val.empty()) return {0, size};
  const int64_t border = size - static_cast<int64_t>(static_cast<double>(size) * config.val_fraction);
  return split == Split::train ? std::pair<int64_t, int64_t>{0, border} : std::pair<int64_t, int64_t>{border, size};
}

[[noreturn]] void throw_too_short(const DataConfig& config, Split split, int64_t context, const std::string& unit,
                                  const fs::path& longest, int64_t length) {
  const bool tail = config.val.empty() && split == Split::test;
  throw DataError(fmt::format("{}: {} for one window: expected at least {} {} (model.context {} + 1), got {}{}",
                              longest.string(), tail ? "the held-out tail is too short" : "too short", context + 1,
                              unit, context, length, tail ? "; raise data.val_fraction or give data.val" : ""));
}

}  // namespace

Windows::Windows(std::vector<Part> parts, Order order, int64_t context, int64_t vocab, uint64_t seed, std::string title)
    : parts_(std::move(parts)),
      order_(order),
      context_(context),
      vocab_(vocab),
      seed_(seed ^ hash_text("data.windows")),
      title_(std::move(title)) {
  first_window_.push_back(0);
  for (const auto& part : parts_) first_window_.push_back(first_window_.back() + window_count(part, context_));
  SIAMESE_INVARIANT(samples() > 0);
}

void Windows::sample(uint64_t position, std::span<int64_t> tokens, std::span<float> weights) const {
  SIAMESE_INVARIANT(std::ssize(tokens) == context_ + 1 && std::ssize(weights) == context_);
  const auto [part, begin] = place_of(position);
  part->source->read(begin, tokens);
  std::fill(weights.begin(), weights.end(), 1.0F);
}

std::pair<const Part*, int64_t> Windows::place_of(uint64_t position) const {
  const auto window = static_cast<int64_t>(IndexOrder(samples(), order_, seed_)(position));
  const auto after = std::upper_bound(first_window_.begin(), first_window_.end(), window);
  const auto at = static_cast<size_t>(after - first_window_.begin()) - 1;
  return {&parts_[at], parts_[at].begin + (window - first_window_[at]) * context_};
}

std::optional<std::vector<int64_t>> Windows::borders(uint64_t position) const {
  const auto [part, begin] = place_of(position);
  auto borders = part->source->documents_between(begin, begin + context_ + 1);
  if (!borders) return borders;
  for (int64_t& border : *borders) border -= begin;
  return borders;
}

std::string Windows::describe() const {
  const auto unused =
      std::count_if(parts_.begin(), parts_.end(), [&](const Part& part) { return window_count(part, context_) == 0; });
  std::string text = fmt::format("{}, {} windows of {}, {}", title_, samples(), context_,
                                 order_ == Order::shuffled ? "shuffled each epoch" : "in order");
  if (unused > 0) text += fmt::format(" ({} of {} files too short for one)", unused, parts_.size());
  return text;
}

std::unique_ptr<Dataset> open_windows(const DataConfig& config, Split split, int64_t context, uint64_t seed,
                                      const FileKind& kind) {
  const auto train = expand_files("data.train", config.train, config.base);
  const auto val = expand_files("data.val", config.val, config.base);
  check_disjoint(train, val);
  if (split == Split::train && train.empty()) {
    throw UsageError(fmt::format("data.train: expected files for data.source={}, got none", enum_text(config.source)));
  }
  if (split == Split::test && val.empty() && config.val_fraction == 0) {
    throw UsageError("data.val: nothing is held out: expected files, or data.val_fraction above 0");
  }
  std::vector<Part> parts;
  int64_t total = 0;
  int64_t longest = -1;
  fs::path longest_path;
  for (const auto& path : split == Split::test && !val.empty() ? val : train) {
    Part part{kind.open(path)};
    std::tie(part.begin, part.end) = range_of(config, split, part.source->size());
    const int64_t length = part.end - part.begin;
    total += length;
    if (length > longest) {
      longest = length;
      longest_path = path;
    }
    parts.push_back(std::move(part));
  }
  if (longest <= context) throw_too_short(config, split, context, kind.unit, longest_path, longest);
  const std::string title =
      fmt::format("{} {}: {} {}, {} {}", enum_text(config.source), split == Split::train ? "train" : "test",
                  parts.size(), parts.size() == 1 ? "file" : "files", total, kind.unit);
  return std::make_unique<Windows>(std::move(parts), split == Split::train ? Order::shuffled : Order::plain, context,
                                   kind.vocab, seed, title);
}

}  // namespace siamese::data

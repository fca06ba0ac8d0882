#include "siamese/base/nearest.h"

#include <algorithm>
#include <numeric>

namespace siamese {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// The longest candidate, of three letters or more, that the text begins with.
std::string beginning(std::string_view text, const std::vector<std::string>& candidates) {
  std::string best;
  for (const auto& candidate : candidates) {
    if (candidate.size() >= 3 && candidate.size() > best.size() && text.starts_with(candidate)) best = candidate;
  }
  return best;
}

}  // namespace

std::string nearest_match(std::string_view text, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, text.size() / 2) + 1;
  for (const auto& candidate : candidates) {
    // No less than the lengths differ by: a stranger's name of a megabyte is not worth the letters.
    if (std::max(text.size(), candidate.size()) - std::min(text.size(), candidate.size()) >= best_distance) continue;
    const size_t distance = edit_distance(text, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  constexpr size_t kSlip = 2;
  if (best_distance <= kSlip) return best;
  const std::string begun = beginning(text, candidates);
  return begun.empty() ? best : begun;
}

std::string did_you_mean(std::string_view text, const std::vector<std::string>& candidates) {
  const std::string match = nearest_match(text, candidates);
  return match.empty() ? "" : " (did you mean '" + match + "'?)";
}

}  // namespace siamese

#include "siamese/text/stop_finder.h"

#include <algorithm>
#include <utility>

namespace siamese::text {
namespace {

// How many of the last bytes of `text` are the beginning of `stop`, which is not in it.
size_t begun(std::string_view text, std::string_view stop) {
  for (size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.ends_with(stop.substr(0, length))) return length;
  }
  return 0;
}

}  // namespace

StopFinder::StopFinder(std::vector<std::string> stops) : stops_(std::move(stops)) { std::erase(stops_, std::string()); }

std::string StopFinder::add(std::string_view piece) {
  if (found_) return "";
  held_ += piece;
  size_t first = std::string::npos;
  size_t keep = 0;
  for (const std::string& stop : stops_) {
    first = std::min(first, held_.find(stop));
    keep = std::max(keep, begun(held_, stop));
  }
  found_ = first != std::string::npos;
  const size_t certain = found_ ? first : held_.size() - keep;
  std::string out = held_.substr(0, certain);
  held_.erase(0, certain);
  return out;
}

std::string StopFinder::finish() { return found_ ? "" : std::exchange(held_, ""); }

}  // namespace siamese::text

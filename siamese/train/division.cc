#include "siamese/train/division.h"

#include <algorithm>
#include <charconv>

#include <ATen/ATen.h>

#include "siamese/train/row_segments.h"

namespace siamese::train {

at::Tensor Piece::of(const at::Tensor& tensor) const {
  return is_whole(tensor) ? tensor : tensor.view({-1}).narrow(0, begin, size());
}

std::string piece_name(const std::string& tensor, const Piece& piece, int64_t elements) {
  if (piece.size() == elements) return tensor;
  return tensor + "[" + std::to_string(piece.begin) + ":" + std::to_string(piece.end) + "]";
}

NamedPiece parse_piece_name(const std::string& text) {
  const size_t open = text.rfind('['), colon = text.rfind(':');
  if (open == std::string::npos || colon == std::string::npos || colon < open || !text.ends_with(']'))
    return {text, {}};
  NamedPiece named{text.substr(0, open), {}, false};
  const auto read = [](std::string_view digits, int64_t& number) {
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return error == std::errc() && stop == digits.data() + digits.size() && number >= 0;
  };
  const std::string_view all = text;
  if (!read(all.substr(open + 1, colon - open - 1), named.piece.begin) ||
      !read(all.substr(colon + 1, all.size() - colon - 2), named.piece.end) || named.piece.size() <= 0) {
    return {text, {}};
  }
  return named;
}

namespace division_detail {

constexpr int64_t kCacheLine = 16;  // floats: two ranks' parts of the row share none

std::vector<int64_t> even_cuts(int64_t begin, int64_t end, int ranks) {
  std::vector<int64_t> cuts;
  for (int part = 0; part < ranks; ++part)
    cuts.push_back(begin + (end - begin) / kCacheLine * part / ranks * kCacheLine);
  cuts.push_back(end);
  return cuts;
}

int64_t nearest_of(const std::vector<int64_t>& places, int64_t cut) {
  const auto above = std::lower_bound(places.begin(), places.end(), cut);
  const bool lower = above != places.begin() && cut - *(above - 1) < *above - cut;
  return lower ? *(above - 1) : *above;
}

}  // namespace division_detail

Division::Division(const nn::GradientBuffer& gradients, const std::vector<int64_t>& blocks, int rank, int ranks,
                   bool cuts_tensors)
    : begins_(gradients.begins()), by_segments_(cuts_tensors), rank_(rank) {
  using namespace division_detail;
  if (cuts_tensors) {
    for (const RowSegment& segment : row_segments(gradients, blocks, ranks)) {
      parts_.push_back(even_cuts(segment.begin, segment.end, ranks));
    }
    return;
  }
  const int64_t total = gradients.whole().numel();
  std::vector<int64_t> between = begins_;
  between.push_back(total);
  parts_.push_back(even_cuts(0, total, ranks));
  for (int64_t& cut : parts_.back()) cut = nearest_of(between, cut);
}

Piece Division::piece_of(size_t parameter, int64_t elements) const {
  if (!divided()) return {0, elements};
  const auto rank = static_cast<size_t>(rank_);
  const int64_t at = begins_[parameter];
  for (const std::vector<int64_t>& cuts : parts_) {
    if (at < cuts.front() || at >= cuts.back()) continue;
    const int64_t begin = std::clamp<int64_t>(cuts[rank] - at, 0, elements);
    return {begin, std::clamp<int64_t>(cuts[rank + 1] - at, begin, elements)};
  }
  return {0, 0};  // it has no gradient
}

}  // namespace siamese::train

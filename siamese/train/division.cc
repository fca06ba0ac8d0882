#include "siamese/train/division.h"

#include <algorithm>
#include <charconv>

#include <ATen/ATen.h>

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

Division::Division(const nn::GradientBuffer& gradients, int rank, int ranks, bool cuts_tensors)
    : begins_(gradients.begins()), rank_(rank) {
  constexpr int64_t kCacheLine = 16;  // floats: two ranks' parts of the row share none
  const int64_t total = gradients.whole().numel();
  std::vector<int64_t> between = begins_;
  between.push_back(total);
  for (int part = 0; part <= ranks; ++part) {
    int64_t border = total / kCacheLine * part / ranks * kCacheLine;
    if (part == ranks) border = total;
    if (!cuts_tensors) {
      const auto above = std::lower_bound(between.begin(), between.end(), border);
      const bool lower = above != between.begin() && border - *(above - 1) < *above - border;
      border = lower ? *(above - 1) : *above;
    }
    borders_.push_back(border);
  }
}

Piece Division::piece_of(size_t parameter, int64_t elements) const {
  if (!divided()) return {0, elements};
  const auto rank = static_cast<size_t>(rank_);
  const int64_t begin = std::clamp<int64_t>(borders_[rank] - begins_[parameter], 0, elements);
  return {begin, std::clamp<int64_t>(borders_[rank + 1] - begins_[parameter], begin, elements)};
}

}  // namespace siamese::train

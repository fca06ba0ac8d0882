// What becomes of the matches (delimiters) when a text is split at them.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "siamese/base/enum_text.h"

namespace siamese::text {

enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

// A part of a text; the parts follow one another without a gap.
struct Span {
  size_t begin;
  size_t end;
  bool is_match;
};

// The pieces, in place of the parts. `is_match` has no meaning afterwards.
void join_spans(SplitBehavior behavior, std::vector<Span>& spans);

}  // namespace siamese::text

namespace siamese {

template <>
struct EnumText<text::SplitBehavior> {
  static constexpr EnumNames<text::SplitBehavior, 5> names{{
      {text::SplitBehavior::removed, "Removed"},
      {text::SplitBehavior::isolated, "Isolated"},
      {text::SplitBehavior::merged_with_previous, "MergedWithPrevious"},
      {text::SplitBehavior::merged_with_next, "MergedWithNext"},
      {text::SplitBehavior::contiguous, "Contiguous"},
  }};
};

}  // namespace siamese

#include "siamese/text/split_behavior.h"

#include <algorithm>

namespace siamese::text {
namespace {

// Joins a span to the one before it where `joined(is_match, whether the one before was a match)` says so.
template <class Joined>
void join_to_previous(std::vector<Span>& spans, Joined joined) {
  std::vector<Span> out;
  bool previous = false;
  for (const Span& span : spans) {
    if (!out.empty() && joined(span.is_match, previous)) {
      out.back().end = span.end;
    } else {
      out.push_back(span);
    }
    previous = span.is_match;
  }
  spans = std::move(out);
}

}  // namespace

void join_spans(SplitBehavior behavior, std::vector<Span>& spans) {
  switch (behavior) {
    case SplitBehavior::isolated:
      return;
    case SplitBehavior::removed:
      std::erase_if(spans, [](const Span& span) { return span.is_match; });
      return;
    case SplitBehavior::contiguous:
      join_to_previous(spans, [](bool match, bool previous) { return match == previous; });
      return;
    case SplitBehavior::merged_with_previous:
      join_to_previous(spans, [](bool match, bool previous) { return match && !previous; });
      return;
    case SplitBehavior::merged_with_next: {
      std::vector<Span> out;
      bool previous = false;
      for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
        if (!out.empty() && span->is_match && !previous) {
          out.back().begin = span->begin;
        } else {
          out.push_back(*span);
        }
        previous = span->is_match;
      }
      std::reverse(out.begin(), out.end());
      spans = std::move(out);
      return;
    }
  }
}

}  // namespace siamese::text

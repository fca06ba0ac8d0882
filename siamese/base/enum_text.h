// One table per enum: its names in config, log, checkpoint and report.
//   template <> struct EnumText<Color> { static constexpr EnumNames<Color, 2> names{{{Color::red, "red"}, ...}}; };
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "siamese/base/check.h"

namespace siamese {

template <class E, size_t kCount>
using EnumNames = std::array<std::pair<E, std::string_view>, kCount>;

template <class E>
struct EnumText;

template <class E>
concept NamedEnum = requires {
  EnumText<E>::names;
};

template <NamedEnum E>
std::string_view enum_text(E value) {
  for (const auto& [candidate, name] : EnumText<E>::names) {
    if (candidate == value) return name;
  }
  SIAMESE_INVARIANT(!"enum value without a name");
  return {};
}

template <NamedEnum E>
std::optional<E> enum_from_text(std::string_view text) {
  for (const auto& [value, name] : EnumText<E>::names) {
    if (name == text) return value;
  }
  return std::nullopt;
}

template <NamedEnum E>
std::vector<std::string> enum_choices() {
  std::vector<std::string> choices;
  for (const auto& entry : EnumText<E>::names) choices.emplace_back(entry.second);
  return choices;
}

}  // namespace siamese

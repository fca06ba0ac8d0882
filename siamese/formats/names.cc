#include "siamese/formats/names.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

#include "siamese/base/join.h"

namespace siamese::formats {
namespace {

// One part of a dotted name, taken off its front.
std::string_view next_part(std::string_view& rest) {
  const size_t dot = std::min(rest.find('.'), rest.size());
  const std::string_view part = rest.substr(0, dot);
  rest.remove_prefix(std::min(dot + 1, rest.size()));
  return part;
}

constexpr int64_t kLargestNumber = 1'000'000'000;  // far beyond any model

std::optional<int64_t> block_number(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  if (number > kLargestNumber || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  return number;
}

// Where the first number between dots stands: begin and length; length 0 when there is none.
std::pair<size_t, size_t> number_place(const std::string& name) {
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    if (end > begin &&
        std::all_of(name.begin() + static_cast<std::ptrdiff_t>(begin), name.begin() + static_cast<std::ptrdiff_t>(end),
                    [](unsigned char c) { return std::isdigit(c) != 0; })) {
      return {begin, end - begin};
    }
    begin = end + 1;
  }
  return {0, 0};
}

std::vector<std::string> grouped_names(const std::vector<std::string>& names) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> numbers;
  for (const std::string& name : names) {
    const auto [begin, length] = number_place(name);
    std::string pattern = name;
    if (length > 0) pattern.replace(begin, length, "*");
    auto& of_pattern = numbers[pattern];
    if (of_pattern.empty()) order.push_back(pattern);
    of_pattern.push_back(length > 0 ? name.substr(begin, length) : "");
  }
  for (std::string& pattern : order) {
    const auto& found = numbers[pattern];
    const size_t star = pattern.find('*');
    if (star == std::string::npos || found.front().empty()) continue;
    pattern.replace(star, 1, found.size() > 1 ? "{" + join(found, ",") + "}" : found.front());
  }
  return order;
}

}  // namespace

std::optional<NameParts> match_name(std::string_view pattern, std::string_view name) {
  NameParts parts;
  if (name.empty() || name.back() == '.') return std::nullopt;
  while (!pattern.empty() && !name.empty()) {
    const std::string_view wanted = next_part(pattern);
    const std::string_view got = next_part(name);
    if (wanted == "*") {
      const auto number = block_number(got);
      if (!number) return std::nullopt;
      parts.number = *number;
    } else if (wanted == "+") {
      if (got != "weight" && got != "bias") return std::nullopt;
      parts.role = got;
    } else if (wanted != got) {
      return std::nullopt;
    }
  }
  return pattern.empty() && name.empty() ? std::optional(parts) : std::nullopt;
}

std::string fill_name(std::string_view pattern, const NameParts& parts) {
  std::string name;
  for (const char c : pattern) {
    if (c == '*') {
      name += std::to_string(parts.number);
    } else if (c == '+') {
      name += parts.role;
    } else {
      name += c;
    }
  }
  return name;
}

std::string listed_names(const std::vector<std::string>& names, size_t longest) {
  std::string all = join(names);
  if (all.size() <= longest) return all;
  const auto groups = grouped_names(names);
  std::string text;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (i > 0 && text.size() + groups[i].size() > longest) {
      return text + " and " + std::to_string(groups.size() - i) + " more";
    }
    text += (i > 0 ? ", " : "") + groups[i];
  }
  return text;
}

}  // namespace siamese::formats

#include "siamese/formats/stored.h"

#include <algorithm>
#include <array>

#include "siamese/base/check.h"
#include "siamese/formats/names.h"

namespace siamese::formats {
namespace {

constexpr std::array<std::string_view, 3> kPrefixes = {"grad/", "m.", "v."};

std::string_view prefix_of(std::string_view name) {
  const auto* const found = std::find_if(kPrefixes.begin(), kPrefixes.end(),
                                         [&](std::string_view prefix) { return name.starts_with(prefix); });
  return found != kPrefixes.end() ? *found : std::string_view();
}

bool is_passed(std::string_view name) {
  return name == "output" || name == "loss" || name.starts_with("aux/") || name.starts_with("site/");
}

bool is_left_out(const LayoutTable& table, std::string_view name) {
  return std::any_of(table.ignored.begin(), table.ignored.end(),
                     [&](std::string_view pattern) { return match_name(pattern, name).has_value(); });
}

bool is_named(const LayoutTable& table, std::string_view name) {
  const auto names = [&](const Rule& rule) {
    return std::any_of(rule.theirs.begin(), rule.theirs.end(), [&](std::string_view pattern) {
      return !pattern.empty() && match_name(pattern, name).has_value();
    });
  };
  return is_left_out(table, name) || std::any_of(table.rules.begin(), table.rules.end(), names);
}

}  // namespace

StoredTensors::StoredTensors(const io::TensorFiles& files, Layout layout)
    : layout_(layout), file_(files.path().string()) {
  const auto& views = files.tensors();
  const bool grouped =
      std::any_of(views.begin(), views.end(), [](const auto& view) { return !prefix_of(view.name).empty(); }) ||
      (!views.empty() &&
       std::all_of(views.begin(), views.end(), [](const auto& view) { return is_passed(view.name); }));
  if (!grouped) groups_[""];
  std::vector<std::string> strays;
  for (const io::TensorView& view : views) {
    const std::string prefix(prefix_of(view.name));
    if (!grouped) {
      groups_[""].emplace(view.name, &view);
    } else if (!prefix.empty()) {
      groups_[prefix].emplace(view.name.substr(prefix.size()), &view);
    } else if (is_passed(view.name)) {
      passed_.push_back(&view);
    } else {
      strays.push_back(view.name);
    }
  }
  if (!strays.empty()) {
    throw DataError(file_ +
                    ": expected weights, or gradients (grad/NAME) or moments (m.NAME, v.NAME) only, got both: " +
                    listed_names(strays));
  }
  for (auto& [prefix, group] : groups_) complete_names(prefix, group);
}

// Full names, and without the tables that nobody needs.
void StoredTensors::complete_names(const std::string& prefix, Group& group) {
  const LayoutTable& table = table_of(layout_);
  const std::string full(table.optional_prefix);
  const bool is_short = !full.empty() && std::none_of(group.begin(), group.end(),
                                                      [&](const auto& entry) { return entry.first.starts_with(full); });
  Group named;
  for (const auto& [name, view] : group) {
    const std::string complete = is_short && is_named(table, full + name) ? full + name : name;
    if (is_left_out(table, complete)) {
      left_out_.push_back(view->name);
    } else {
      named.emplace(complete, view);
    }
  }
  if (is_short) short_groups_.insert(prefix);
  group = std::move(named);
}

std::string StoredTensors::spelled(const std::string& prefix, const std::string& name) const {
  const std::string_view full = table_of(layout_).optional_prefix;
  const bool cut = short_groups_.contains(prefix) && name.starts_with(full);
  return prefix + (cut ? name.substr(full.size()) : name);
}

std::optional<Layout> layout_by_names(const io::TensorFiles& files) {
  const auto fits = [&](const LayoutTable& table) {
    return !files.tensors().empty() &&
           std::all_of(files.tensors().begin(), files.tensors().end(), [&](const io::TensorView& view) {
             const std::string name = view.name.substr(prefix_of(view.name).size());
             return is_passed(name) || is_named(table, name) ||
                    (!table.optional_prefix.empty() && is_named(table, std::string(table.optional_prefix) + name));
           });
  };
  for (const auto& [layout, text] : EnumText<Layout>::names) {
    if (layout != Layout::siamese && fits(table_of(layout))) return layout;
  }
  return std::nullopt;
}

}  // namespace siamese::formats

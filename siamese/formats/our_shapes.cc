#include "siamese/formats/our_shapes.h"

#include <algorithm>

#include "siamese/formats/names.h"

namespace siamese::formats {
namespace {

// A sum or product of sizes that a file claims; too large stays impossible instead of wrapping round.
constexpr int64_t kTooLarge = int64_t{1} << 40;

int64_t bounded_product(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kTooLarge : std::min(product, kTooLarge);
}

void add_filters(const std::vector<int64_t>& theirs, OurShapes& all, std::vector<int64_t>& ours) {
  if (theirs.size() != 4) return;
  all.channels = theirs[1];
  if (theirs[2] == theirs[3]) all.patch = theirs[2];
  ours = {theirs[0], bounded_product(theirs[1], bounded_product(theirs[2], theirs[3]))};
}

void add_part(Form form, const std::vector<int64_t>& theirs, OurShapes& all, std::vector<int64_t>& ours) {
  switch (form) {
    case Form::qkv:
    case Form::qkv_pairs:
    case Form::up_gate: {
      if (theirs.empty()) return;
      const int64_t before = ours.empty() ? 0 : ours.front();
      ours = theirs;
      ours.front() = std::min(ours.front(), kTooLarge) + before;
      return;
    }
    case Form::transposed:
      ours.assign(theirs.rbegin(), theirs.rend());
      return;
    case Form::filters:
      if (theirs.size() == 1) {
        ours = theirs;
      } else {
        add_filters(theirs, all, ours);
      }
      return;
    case Form::token:
      if (theirs.size() == 3) ours = {theirs[2]};
      return;
    case Form::table:
      if (theirs.size() == 3) ours = {theirs[1], theirs[2]};
      return;
    case Form::same:
      break;
  }
  ours = theirs;
}

void add_by_rules(const LayoutTable& table, std::string_view name, const std::vector<int64_t>& shape, OurShapes& all) {
  for (const Rule& rule : table.rules) {
    for (const std::string_view pattern : rule.theirs) {
      const auto matched = pattern.empty() ? std::nullopt : match_name(pattern, name);
      if (!matched) continue;
      all.blocks = std::max(all.blocks, matched->number + 1);
      add_part(rule.form, shape, all, all.shapes[fill_name(rule.ours, *matched)]);
      return;
    }
  }
}

void add_ours(std::string_view name, const std::vector<int64_t>& shape, OurShapes& all) {
  all.shapes[std::string(name)] = shape;
  constexpr std::string_view kBlocks = "blocks.";
  if (!name.starts_with(kBlocks)) return;
  const std::string_view number = name.substr(kBlocks.size(), name.find('.', kBlocks.size()) - kBlocks.size());
  if (const auto matched = match_name("*", number)) all.blocks = std::max(all.blocks, matched->number + 1);
}

}  // namespace

int64_t OurShapes::size(std::string_view name, size_t dimension) const {
  const auto found = shapes.find(name);
  return found != shapes.end() && dimension < found->second.size() ? found->second[dimension] : 0;
}

OurShapes our_shapes(const StoredTensors& stored) {
  OurShapes all;
  if (stored.groups().empty()) return all;
  const LayoutTable& table = table_of(stored.layout());
  for (const auto& [name, view] : stored.groups().begin()->second) {
    if (table.rules.empty()) {
      add_ours(name, view->shape, all);
    } else {
      add_by_rules(table, name, view->shape, all);
    }
  }
  return all;
}

}  // namespace siamese::formats

#include "siamese/formats/fit.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/formats/names.h"
#include "siamese/io/message.h"

namespace siamese::formats {
namespace {

struct Misfits {
  std::vector<std::string> missing;
  std::vector<std::string> unknown;
  std::vector<std::string> misshapen;
  std::vector<std::string> mixed;
};

bool is_float(io::DType dtype) {
  return dtype == io::DType::f16 || dtype == io::DType::bf16 || dtype == io::DType::f32 || dtype == io::DType::f64;
}

std::string with_dtype(const io::TensorView& view) {
  return io::in_quotes(view.name) + " " + std::string(enum_text(view.dtype));
}

// Of one tensor of ours.
void look_at(const Mapping& mapping, const std::string& prefix, const StoredTensors& stored, Misfits& misfits) {
  const StoredTensors::Group& group = stored.groups().at(prefix);
  const io::TensorView* first = nullptr;
  for (const TensorPart& part : mapping.parts) {
    const auto found = group.find(part.name);
    if (found == group.end()) {
      if (!mapping.optional) misfits.missing.push_back(stored.spelled(prefix, part.name));
      continue;
    }
    const io::TensorView& view = *found->second;
    if (view.shape != part.shape) {
      misfits.misshapen.push_back(view.name + ": expected " + io::shape_text(part.shape) + ", got " +
                                  io::shape_text(view.shape));
    } else if (!is_float(view.dtype)) {
      misfits.mixed.push_back(with_dtype(view) + ", not of a floating-point type");
    } else if (first != nullptr && first->dtype != view.dtype) {
      misfits.mixed.push_back(with_dtype(*first) + " and " + with_dtype(view) + ", parts of one tensor of ours");
    }
    if (first == nullptr) first = &view;
  }
}

// The layout's name of a tensor of ours that a model may lack.
std::string their_name(Layout layout, std::string_view ours) {
  for (const Rule& rule : table_of(layout).rules) {
    if (rule.ours == ours) return std::string(rule.theirs.front());
  }
  return std::string(ours);
}

bool same_bytes(const io::TensorView& a, const io::TensorView& b) {
  return a.dtype == b.dtype && a.shape == b.shape && (a.bytes == 0 || std::memcmp(a.data, b.data, a.bytes) == 0);
}

// Whether a head that is stored although the model is tied says the same as the embedding.
bool repeats_embedding(const StoredTensors& stored, const StoredTensors::Group& group, const io::TensorView& view) {
  const auto embedding = group.find(their_name(stored.layout(), "embedding.weight"));
  return embedding != group.end() && same_bytes(view, *embedding->second);
}

std::string text_of(const StoredTensors& stored, const Misfits& misfits) {
  std::vector<std::string> texts;
  const std::pair<const char*, const std::vector<std::string>*> kinds[] = {{"missing ", &misfits.missing},
                                                                           {"unknown ", &misfits.unknown},
                                                                           {"misshapen ", &misfits.misshapen},
                                                                           {"dtypes ", &misfits.mixed}};
  const auto count =
      std::count_if(std::begin(kinds), std::end(kinds), [](const auto& kind) { return !kind.second->empty(); });
  for (const auto& [word, names] : kinds) {
    // All of it fits into the one line that a terminal gets.
    if (!names->empty()) texts.push_back(word + listed_names(*names, 1500 / static_cast<size_t>(count)));
  }
  return stored.file() + ": does not fit the model in layout " + std::string(enum_text(stored.layout())) + ": " +
         join(texts, "; ");
}

}  // namespace

std::vector<std::string> check_fit(const StoredTensors& stored, const std::vector<Mapping>& mappings) {
  std::set<std::string> wanted;
  for (const Mapping& mapping : mappings) {
    for (const TensorPart& part : mapping.parts) wanted.insert(part.name);
  }
  Misfits misfits;
  std::vector<std::string> notes;
  for (const auto& [prefix, group] : stored.groups()) {
    for (const Mapping& mapping : mappings) look_at(mapping, prefix, stored, misfits);
    for (const auto& [name, view] : group) {
      if (wanted.contains(name)) continue;
      if (name != their_name(stored.layout(), "head.weight")) {
        misfits.unknown.push_back(view->name);
      } else if (repeats_embedding(stored, group, *view)) {
        notes.push_back(view->name + ": equal to the embedding, tied: not stored twice");
      } else {
        misfits.unknown.push_back(view->name + " (model.tied is true, and it differs from the embedding)");
      }
    }
  }
  if (!misfits.missing.empty() || !misfits.unknown.empty() || !misfits.misshapen.empty() || !misfits.mixed.empty()) {
    throw DataError(text_of(stored, misfits));
  }
  for (const Mapping& mapping : mappings) {
    const std::string& name = mapping.parts.front().name;
    if (mapping.optional && stored.holds_weights() && !stored.groups().at("").contains(name)) {
      notes.push_back(name + ": a fixed table, not stored; what is written lacks it, too");
    }
  }
  if (!stored.left_out().empty()) notes.push_back("left out, fixed tables: " + listed_names(stored.left_out(), 400));
  return notes;
}

}  // namespace siamese::formats

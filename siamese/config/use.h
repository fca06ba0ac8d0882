// Where a key has an effect. The struct that owns a key says so in its list of fields, once:
//
//   visit("experts", self.experts, {"experts of a block", for_values("model.family", {Family::moe})});
//   visit("skip_window", self.skip_window, {"steps that it looks back on", with({"train.skip_outliers"})});
//
// A key that says nothing has an effect everywhere. Of one that has none in a config, the user may give only the value
// that it has anyway; any other is refused, by `read_used`. "Anyway" is what stands there when the key is not given:
// its default, or what a config.yaml was resolved to. What a run stored is never refused.
//
// A later choice may leave an earlier key without effect: `train deit-tiny data.source=random` has no more use for the
// recipe's data.train. Such a key is dropped, not refused: nobody who gave it could know.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "siamese/base/enum_text.h"
#include "siamese/config/value.h"

namespace siamese::config {

// One condition: one of `keys` has one of `values`, or with `excluded` one has none of them.
struct Use {
  std::vector<std::string> keys;
  std::vector<std::string> values;
  bool excluded = false;
  std::vector<std::string> decided_by = {};  // further keys or sections: a later choice of one drops the key, too
  std::string lacking = {};                  // what is said when it does not hold, instead of naming keys and values

  bool holds(const Texts& texts) const;  // a key that `texts` does not have holds
  std::string why_not(const Texts& texts) const;
  std::string prefix() const;  // "moe: ", "with train.skip_outliers: ": opens the help of the key
};

Use for_values(std::string key, std::vector<std::string> values);

template <NamedEnum E>
Use for_values(std::string key, std::initializer_list<E> values) {
  std::vector<std::string> texts;
  for (const E value : values) texts.emplace_back(enum_text(value));
  return for_values(std::move(key), std::move(texts));
}

// One of the keys is on: not 0, false or empty.
Use with(std::vector<std::string> keys);
// The key is off.
Use without(std::string key);

// What a list of fields says of a field; a section's uses are those of all its keys.
struct About {
  template <class... Uses>
  About(const char* text, Uses... conditions) : help(text), uses{std::move(conditions)...} {}

  std::string_view help;
  std::vector<Use> uses;  // all have to hold
};

struct KeyUse {
  std::string path;
  std::vector<Use> uses;

  const Use* broken(const Texts& texts) const;  // the first that does not hold, or null
};

// Whether anything of it was given, and not stored.
bool given_by_user(const Value& given);

// Of the keys that a user gave, those without an effect.
std::vector<const KeyUse*> unused_keys(const std::vector<KeyUse>& keys, const Value& given, const Texts& texts);

// UsageError naming the first of `unused` whose value, in `given`, is not the one it has without it and was not left
// over by a later choice. `as_read`: the given values, printed; `anyway`: those of the config without the unused keys.
void refuse_unused(const std::vector<const KeyUse*>& unused, const Value& given, const Texts& texts,
                   const Texts& as_read, const Texts& anyway);

}  // namespace siamese::config

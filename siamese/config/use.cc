#include "siamese/config/use.h"

#include <algorithm>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/config/text.h"

namespace siamese::config {
namespace {

// What a switched-off key says, whatever its type.
const std::vector<std::string>& off() {
  static const std::vector<std::string> texts = {"0", "false", "\"\"", "[]"};
  return texts;
}

// The layer of the latest choice in a value; that of nothing lies below all.
int latest(const Value* value) {
  if (value == nullptr) return kStoredLayer - 1;
  int layer = value->is_map() ? kStoredLayer - 1 : value->layer;
  for (const auto& entry : value->entries) layer = std::max(layer, latest(&entry.second));
  return layer;
}

int latest_of(const Value& given, const Use& use) {
  int layer = kStoredLayer - 1;
  for (const auto* keys : {&use.keys, &use.decided_by}) {
    for (const auto& key : *keys) layer = std::max(layer, latest(find_path(given, key)));
  }
  return layer;
}

}  // namespace

bool Use::holds(const Texts& texts) const {
  return std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
    const std::string* const text = find_text(texts, key);
    return text == nullptr || (std::find(values.begin(), values.end(), *text) == values.end()) == excluded;
  });
}

std::string Use::why_not(const Texts& texts) const {
  if (!lacking.empty()) return lacking;
  std::vector<std::string> now;
  for (const auto& key : keys) {
    const std::string* const text = find_text(texts, key);
    now.push_back(key + " is " + (text != nullptr ? shown(*text) : "unknown"));
  }
  const std::string named = join(keys, " or ");
  const std::string uses = excluded          ? "it is used with " + named
                           : values == off() ? "it is used without " + named
                                             : "it is used by " + named + " " + join(values, ", ");
  return uses + ", and " + join(now, ", ");
}

std::string Use::prefix() const {
  if (!lacking.empty()) return "";
  if (excluded) return "with " + join(keys, " or ") + ": ";
  return values == off() ? "without " + join(keys, " or ") + ": " : join(values) + ": ";
}

Use for_values(std::string key, std::vector<std::string> values) {
  return {.keys = {std::move(key)}, .values = std::move(values)};
}

Use with(std::vector<std::string> keys) { return {.keys = std::move(keys), .values = off(), .excluded = true}; }

Use without(std::string key) { return {.keys = {std::move(key)}, .values = off()}; }

const Use* KeyUse::broken(const Texts& texts) const {
  const auto found = std::find_if(uses.begin(), uses.end(), [&](const Use& use) { return !use.holds(texts); });
  return found != uses.end() ? &*found : nullptr;
}

bool given_by_user(const Value& given) { return latest(&given) > kStoredLayer; }

std::vector<const KeyUse*> unused_keys(const std::vector<KeyUse>& keys, const Value& given, const Texts& texts) {
  std::vector<const KeyUse*> unused;
  for (const KeyUse& key : keys) {
    const Value* const value = find_path(given, key.path);
    if (value != nullptr && given_by_user(*value) && key.broken(texts) != nullptr) unused.push_back(&key);
  }
  return unused;
}

void refuse_unused(const std::vector<const KeyUse*>& unused, const Value& given, const Texts& texts,
                   const Texts& as_read, const Texts& anyway) {
  for (const KeyUse* const key : unused) {
    const Use& broken = *key->broken(texts);
    const Value* const value = find_path(given, key->path);
    if (*find_text(as_read, key->path) == *find_text(anyway, key->path)) continue;
    if (latest(value) < latest_of(given, broken)) continue;
    throw UsageError((value->where.empty() ? "" : value->where + ": ") + key->path +
                     ": has no effect: " + broken.why_not(texts));
  }
}

}  // namespace siamese::config

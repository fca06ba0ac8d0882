#include "siamese/train/freeze.h"

#include <algorithm>

#include <fnmatch.h>

#include "siamese/base/check.h"
#include "siamese/base/nearest.h"

namespace siamese::train {
namespace freeze_detail {

[[noreturn]] void refuse(const std::string& entry, const nn::Parameters& parameters) {
  std::vector<std::string> choices;
  for (const auto& parameter : parameters.list()) {
    choices.emplace_back(enum_text(parameter.kind));
    choices.push_back(parameter.name);
  }
  throw UsageError("optim.freeze: expected a kind or a pattern of names that some parameter of this model has, got '" +
                   entry + "'" + did_you_mean(entry.starts_with('!') ? entry.substr(1) : entry, choices));
}

bool means(const std::string& entry, const nn::Parameter& parameter) {
  if (const auto kind = enum_from_text<nn::ParameterKind>(entry)) return *kind == parameter.kind;
  return fnmatch(entry.c_str(), parameter.name.c_str(), 0) == 0;
}

}  // namespace freeze_detail

std::vector<bool> frozen(const std::vector<std::string>& entries, const nn::Parameters& parameters) {
  const auto& list = parameters.list();
  std::vector<bool> result(list.size(), false);
  for (const std::string& entry : entries) {
    const bool trains = entry.starts_with('!');
    bool any = false;
    for (size_t i = 0; i < list.size(); ++i) {
      if (!freeze_detail::means(trains ? entry.substr(1) : entry, list[i])) continue;
      any = true;
      result[i] = !trains;
    }
    if (!any) freeze_detail::refuse(entry, parameters);
  }
  if (!list.empty() && std::find(result.begin(), result.end(), false) == result.end()) {
    throw UsageError("optim.freeze: expected parameters that are left to train, got all " +
                     std::to_string(list.size()) + " frozen");
  }
  return result;
}

void freeze(const std::vector<std::string>& entries, const nn::Parameters& parameters) {
  const std::vector<bool> still = frozen(entries, parameters);
  for (size_t i = 0; i < still.size(); ++i) {
    if (still[i]) parameters.list()[i].value.set_requires_grad(false);
  }
}

}  // namespace siamese::train

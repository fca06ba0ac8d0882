// Configs between Python and the engine, as YAML text.
#pragma once

#include <string>
#include <vector>

#include "siamese/train/config.h"

namespace siamese::python {

// A config that was resolved before.
train::RunConfig stored_config(const std::string& text);

// `source`: the name of a recipe or a path, or with `is_text` YAML itself. UsageError for a sweep.
train::RunConfig asked_config(const std::string& source, bool is_text, const std::vector<std::string>& overrides,
                              const std::vector<std::string>& folders);

}  // namespace siamese::python

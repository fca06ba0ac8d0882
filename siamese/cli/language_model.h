// A language model as the verbs that speak with one load it.
#pragma once

#include <string>
#include <vector>

#include "siamese/models/lm.h"
#include "siamese/train/checkpoint.h"

namespace siamese::cli {

struct LoadedLanguageModel {
  train::LoadedModel loaded;
  const models::LanguageModel* model;  // of `loaded`
};

// The latest of a run directory, or a checkpoint, on the device and the threads that its config and `overrides` (keys
// of engine) say. UsageError naming `verb` for a model of another family.
LoadedLanguageModel load_language_model(const std::string& verb, const std::string& run,
                                        const std::vector<std::string>& overrides);

}  // namespace siamese::cli

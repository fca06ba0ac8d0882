#include "siamese/cli/language_model.h"

#include "siamese/base/check.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/version.h"
#include "siamese/train/device.h"

namespace siamese::cli {

LoadedLanguageModel load_language_model(const std::string& verb, const std::string& run,
                                        const std::vector<std::string>& overrides) {
  const train::EngineConfig engine = load_stored_config(run, overrides).engine;
  train::apply_engine(engine);
  warn_of_slow_precision(engine);
  LoadedLanguageModel made{train::load_model(run, train::Weights::trained, at::kFloat, 0, train::device_of(engine)),
                           nullptr};
  made.model = dynamic_cast<const models::LanguageModel*>(made.loaded.model.get());
  if (made.model == nullptr) {
    throw UsageError(run + ": " + verb + " needs a language model, got family " +
                     std::string(enum_text(made.loaded.config.model.family)));
  }
  return made;
}

}  // namespace siamese::cli

// trainer.json: everything of a run that is neither weights nor moments. Randomness is counter-based, so there is no
// generator state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "siamese/data/identity.h"
#include "siamese/train/config_keys.h"
#include "siamese/train/spike_guard.h"

namespace siamese::train {

struct TrainerState {
  int64_t step = 0;            // steps done
  uint64_t position = 0;       // samples consumed
  int64_t applied_steps = 0;   // steps that were not skipped
  int64_t skipped_steps = 0;   // in all
  int64_t skips_in_a_row = 0;  // non-finite ones
  SpikeWindow window;          // empty without train.skip_outliers
  // Of a fork (init.optimizer): where the run that it came from stood. Its own samples and steps come on top in
  // `position` and `applied_steps`.
  uint64_t forked_position = 0;
  int64_t forked_steps = 0;
  // The line of the last step when metrics.jsonl or eval.jsonl could not take it: whoever resumes records that step
  // before the next. "" otherwise.
  std::string unrecorded;
  // fixed_config of the run (config_keys.h); empty when an older version saved the state.
  ConfigTexts config;
  // What the run reads; empty, too, when an older version saved the state.
  data::DataIdentity data;
  // Of the run's tokenizer.json, 16 digits; "" when it has none.
  std::string tokenizer;
  // One line for each time that the run went on although its data had changed.
  std::vector<std::string> accepted_data;
  // One line for each key under another value of which the run went on and which may show in its results: what may be
  // edited, such as train.steps, and of fixed keys (config_keys.h) such as engine.precision.
  std::vector<std::string> accepted_config;
};

// `files`: what the checkpoint holds beside the files that all have (io/run_dir.h).
std::string to_json(const TrainerState& state, const std::vector<std::string>& files);

// DataError naming the key, or the checksum that the file carries of itself. Keys that older versions did not write may
// be missing: window, forked, files, unrecorded, checksum, config, data, tokenizer, accepted_data, accepted_config.
TrainerState read_trainer_state(const std::filesystem::path& path);

}  // namespace siamese::train

// What the keys of a config mean to a run that exists already: one place for the two questions.
//
// Which keys decide a result? All but engine.* (the same up to rounding; engine.precision rounds more and does decide),
// and of train: max_hours, keep_last, keep_every, checkpoint_every, record_every. Two runs that agree in the others are
// the same run to a sweep and its record.
//
// Which keys may be edited in RUN/config.yaml between a stop and a resume? Those that change neither what a step
// computes nor what it is computed from: engine.* but for precision, eval.*, and of train: steps, eval_every,
// checkpoint_every, record_every, keep_last, keep_every, max_hours, max_skips. train.steps moves the end; a schedule
// that depends on the end then takes other learning rates from there on. data.train and data.val may name another place
// when the state knows what the data hold (data/identity.h). All that was edited is said when the run goes on.
//
// The rest is fixed: trainer.json keeps it beside the state, so that a changed config.yaml, of the run or of a
// checkpoint, is known by key and value. Whoever means a change of a fixed key makes it in both config.yaml; the state
// then keeps a line about it for good (accepted_config).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/train/config.h"

namespace siamese::train {

using ConfigTexts = config::Texts;

bool decides_result(std::string_view key);
bool may_be_edited(std::string_view key);
// The first of the overrides ("optim.lr=1e-3") that makes another result; "" when none does.
std::string deciding_override(const std::vector<std::string>& overrides);
bool tells_where(std::string_view key);  // the data are; that is no part of what they are

// The resolved config without the keys that decide no result, also because they have no effect in it; flattened.
ConfigTexts result_config(const RunConfig& config);

// The keys that may not be edited, flattened, without those that say where the data are; text that is not UTF-8 is made
// so, as JSON needs it.
ConfigTexts fixed_config(const RunConfig& config);

// "KEY: was A, is B" for every fixed key in which `config` is not what `state` was saved under. States of older
// versions do not say.
struct TrainerState;
std::vector<std::string> fixed_changes(const RunConfig& config, const TrainerState& state);

// DataError naming the first keys in which a checkpoint's `config`, read from `file`, is not what its state was saved
// under.
void check_unchanged(const RunConfig& config, const TrainerState& state, const std::filesystem::path& file);

// Before a run goes on: DataError naming the first keys that differ between RUN/config.yaml (`now`) and the config of
// the checkpoint (`then`), both values, and what to do, unless they may be edited; or that differ between `then` alone
// and what the state was saved under. Returns what the user should hear about all edits that stand, or "".
std::string check_edits(const RunConfig& now, const RunConfig& then, const TrainerState& state,
                        const std::filesystem::path& run_dir, const std::filesystem::path& checkpoint);

// The config of a run that goes on with `overrides` ("train.steps=2000"). UsageError naming the first key that may not
// be edited, what may, and how a new run is made of this one instead.
RunConfig edited_config(const RunConfig& run, const std::vector<std::string>& overrides);

// "KEY: was A, is B" for every key that may be edited, decides results, and was.
std::vector<std::string> result_edits(const RunConfig& now, const RunConfig& then);

}  // namespace siamese::train

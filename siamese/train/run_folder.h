// A folder that is to become a run, and what is known to belong to one. Nothing that a run did not write is ever
// removed: a run is known by its run.json, and every entry by its name and place.
#pragma once

#include <filesystem>
#include <string>

namespace siamese::train {

// UsageError unless a run may start there: nothing is there, or nothing but what a run leaves that was killed before it
// began; or with `overwrite` an earlier run and nothing else. Changes nothing.
void check_free(const std::filesystem::path& dir, bool overwrite);

// Empties a folder that check_free(dir, true) let pass, but for run.json, which still tells what the folder is should
// this be interrupted. The caller holds its lock.
void clear_for_run(const std::filesystem::path& dir);

// Whether its run.json is one of ours.
bool is_run(const std::filesystem::path& dir);

// SystemError when a folder that is to be replaced or removed holds what no checkpoint does; a missing one is fine.
void check_only_checkpoint(const std::filesystem::path& folder);

// What tells one run from every other, whatever folder it is moved to.
std::string new_run_id();

}  // namespace siamese::train

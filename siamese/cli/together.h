// A verb under mpirun or srun: several processes, one run (train/ranks.h).
#pragma once

#include <functional>
#include <string>

#include "siamese/comm/group.h"
#include "siamese/train/run.h"

namespace siamese::cli {

// Calls `lead` with the hooks of a run: alone; or, in a job of several processes, on rank 0, while the others follow
// it. Returns the exit code, on ranks that followed 0. A failure of one rank inside a step ends them all, with a
// line that names it.
int together(const std::function<int(train::RunHooks)>& lead);

// The same for a verb whose ranks each do work of their own: every one calls `run`, with null when there is one
// process.
int side_by_side(const std::function<int(comm::Group*)>& run);

// UsageError when this process is one of several and the verb, with what stands behind it, is not for that.
void check_alone(const std::string& verb, const std::string& next);

// Whether errors that all ranks meet alike are this one's to tell: it is alone, or rank 0.
bool speaks_for_all();

}  // namespace siamese::cli

// Whether all runs of a collection were made by one build: numbers of two programs may differ for that reason alone.
#pragma once

#include <string>

#include "siamese/report/reader.h"

namespace siamese::report {

// Marks (RunRecord::other_build) the runs that were not made by the build that made most of them. A run that several
// builds made counts as made by another. Runs that have not started have no build yet.
void mark_builds(Collection& collection);

// One line when there was more than one build, naming each with its number of runs; "" otherwise.
std::string builds_note(const Collection& collection);

}  // namespace siamese::report

// What a reader of the results has to know beside them, a line each: that they were not all judged on the same targets,
// are not all by one build or not all from the same data, or that something of a run could not be read.
#pragma once

#include <string>
#include <vector>

#include "siamese/report/reader.h"

namespace siamese::report {

// Where runs of one family were judged on different held-out targets; "" otherwise.
std::string targets_note(const Collection& collection);

// Of runs whose configs name the same data: which were made from other files than most. "" when none was.
std::string data_note(const Collection& collection);

std::vector<std::string> remarks(const Collection& collection);

}  // namespace siamese::report

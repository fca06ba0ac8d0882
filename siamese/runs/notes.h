// How the readers of this room treat what is wrong. Without notes they are strict: the first field of another type than
// docs/run-directory.md says is a DataError naming file, line and field. With notes a wrong field is one note and
// counts as not written; only what makes the whole object unreadable (no JSON, another kind, no step) still throws.
#pragma once

#include <string>
#include <vector>

namespace siamese::runs {

using Notes = std::vector<std::string>;

}  // namespace siamese::runs

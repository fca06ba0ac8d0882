// The command line: one binary, one file per verb.
#pragma once

namespace siamese::cli {

// Returns the exit code; errors are one line on stderr.
int run(int argc, char** argv);

}  // namespace siamese::cli

// Which sources this program was built from. The values are written at build time (cmake/source_version.cmake) into a
// file of their own, so that a new commit compiles that file and nothing else.
#pragma once

namespace siamese::runs {

extern const char* const kSourceVersion;  // of the project: "0.2.0"
extern const char* const kSourceCommit;   // "" when neither git nor an archive tells
extern const char* const kSourceDirty;    // "": the sources are those of the commit

}  // namespace siamese::runs

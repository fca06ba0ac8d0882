// JSON of strangers. A parser alone would keep the last of two equal keys, take a NUL for the end, and nest at will.
#pragma once

#include <string_view>

namespace siamese::io {

// DataError unless `text` is one JSON value of at most 100 MB, without a NUL, each key once in its object, and values
// nested at most `deepest` deep. `file` is what errors call it.
void require_strict_json(std::string_view text, std::string_view file, int deepest);

}  // namespace siamese::io

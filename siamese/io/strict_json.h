// JSON of strangers, and JSON for strangers. A parser alone would keep the last of two equal keys, take a NUL for the
// end, and build a tree so deep that destroying it overflows the stack; a writer alone throws at a name that is not
// UTF-8. All JSON that we read into a tree or write from one goes through here.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace siamese::io {

// DataError unless `text` is one JSON value of at most 100 MB, without a NUL, each key once in its object, and values
// nested at most `deepest` deep. `file` is what errors call it.
nlohmann::json read_json(std::string_view text, std::string_view file, int deepest = 32);
// The same with the order of keys kept; an object then has at most 4096 of them, because each is sought among all
// before.
nlohmann::ordered_json read_ordered_json(std::string_view text, std::string_view file, int deepest = 32);

// Bytes that are not UTF-8, as in the name of a file, become U+FFFD. Without `indent` all on one line.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace siamese::io

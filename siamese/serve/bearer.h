// "Authorization: Bearer TOKEN".
#pragma once

#include <string_view>

namespace siamese::serve {

// Whether a header says the token. How long it takes depends on the length of the header alone, not on how much of it
// is right.
bool bears(std::string_view header, std::string_view token);

}  // namespace siamese::serve

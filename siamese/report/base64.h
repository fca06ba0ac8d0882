// RFC 4648 base64 with padding: how bytes stand inside a data: address.
#pragma once

#include <string>
#include <string_view>

namespace siamese::report {

std::string base64(std::string_view bytes);

}  // namespace siamese::report

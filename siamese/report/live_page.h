// The live page of `siamese watch`: the charts of a report over what the server tells it (assets/watch*.js).
#pragma once

#include <string>
#include <string_view>

namespace siamese::report {

std::string live_page(std::string_view title);

}  // namespace siamese::report

// The files of assets/, compiled in (cmake/embed_texts.cmake): the stylesheets and the scripts, each joined in order.
#pragma once

#include <string_view>

namespace siamese::report {

std::string_view style_text();
std::string_view script_text();           // of a report
std::string_view analysis_script_text();  // of the page of an analysis
std::string_view watch_script_text();     // of the live page

}  // namespace siamese::report

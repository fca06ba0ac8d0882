// The files that let transformers load a model of layout hf without this project, compiled in
// (cmake/embed_texts.cmake): python/siamesenorm/hf/.
#pragma once

#include <string_view>

namespace siamese::formats {

inline constexpr std::string_view kConfigurationFile = "configuration_siamese.py";
inline constexpr std::string_view kModelingFile = "modeling_siamese.py";

std::string_view configuration_text();
std::string_view modeling_text();

}  // namespace siamese::formats

// model.rope_scaling as text: none, llama3(factor=8, context=8192), yarn(factor=8, context=8192, beta_fast=32). Of
// the other arguments only those that differ from the default are printed (nn/rope_scaling.h says what they are).
#pragma once

#include <string>

#include "siamese/nn/rope_scaling.h"

namespace siamese::models {

// UsageError naming model.rope_scaling, what was expected and what came.
nn::RopeScaling rope_scaling_of(const std::string& text);
std::string rope_scaling_text(const nn::RopeScaling& scaling);

}  // namespace siamese::models

// The canonical text of a scheme: `pre`, `mixln(post=0.5)`, `siamese(x=hybrid)`. Only arguments that differ from the
// default are printed, in the order of the scheme's option list; parse and print round-trip.
#pragma once

#include <string>
#include <string_view>

#include "siamese/config/value.h"

namespace siamese::residual {

struct SchemeText {
  std::string name;
  config::Value arguments = config::Value::map();  // name -> scalar, as written
};

// UsageError saying what is wrong with the text.
SchemeText parse_scheme_text(std::string_view text);
std::string print_scheme_text(const SchemeText& text);

}  // namespace siamese::residual

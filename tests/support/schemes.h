// Every registered scheme, and the options that change its structure.
#pragma once

#include <string>
#include <vector>

#include "siamese/residual/registry.h"

namespace siamese::testing {

inline std::vector<std::string> all_schemes() {
  std::vector<std::string> texts;
  for (const auto& scheme : residual::schemes()) texts.push_back(scheme.doc.name);
  texts.insert(texts.end(), {"post(final_norm=false)", "mixln(post=0.5)", "hybrid(first=pre)", "span(reading=c)",
                             "keel(variant=b)", "hc(streams=2, dynamic=false)", "mhc(streams=2, init=xavier)",
                             "attn_res(block=1)", "attn_res(block=2)", "siamese(x=hybrid)", "siamese(form=write)",
                             "siamese(form=write, input_norm=false, depth_scale=none)", "siamese(input_norm=false)"});
  return texts;
}

}  // namespace siamese::testing

// Every registered scheme, and the options that change its structure.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "siamese/residual/registry.h"

namespace siamese::testing {

inline std::vector<std::string> all_schemes() {
  std::vector<std::string> texts;
  for (const auto& scheme : residual::schemes()) texts.push_back(scheme.doc.name);
  texts.insert(texts.end(),
               {"post(final_norm=false)", "mixln(post=0.5)", "hybrid(first=pre)", "span(reading=c)", "keel(variant=b)",
                "hc(streams=2, dynamic=false)", "mhc(streams=2, init=xavier)", "attn_res(block=1)", "attn_res(block=2)",
                "siamese(x=hybrid)", "siamese(form=write)", "siamese(form=write, input_norm=false, depth_scale=none)",
                "siamese(input_norm=false)", "mhc(res=identity)", "mhc(streams=3, res=permutations)",
                "lambda(x0=false, backout=none, embed_norm=false)", "denseformer(dilation=2, period=2)",
                "orthogonal(over=sample)", "mv_split(norm=pre)"});
  return texts;
}

// Whether it looks across the tokens of a sample; asked of the scheme itself. Causal models refuse it then.
inline bool mixes_tokens(const std::string& text) {
  const nn::Parameters shapes(0, at::kFloat, at::kMeta);
  return residual::make_topology(text, nn::Scope(shapes), {.width = 4, .blocks = 2, .norm = {}})->mixes_tokens();
}

// Of all_schemes(), those that a causal model takes.
inline std::vector<std::string> causal_schemes() {
  std::vector<std::string> texts = all_schemes();
  texts.erase(std::remove_if(texts.begin(), texts.end(), mixes_tokens), texts.end());
  return texts;
}

}  // namespace siamese::testing

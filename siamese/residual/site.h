// A site: where a branch meets the streams.
#pragma once

#include <cstdint>
#include <string>

#include "siamese/base/enum_text.h"

namespace siamese::residual {

enum class SiteKind { attention, ffn };

struct Site {
  int64_t block = 0;  // 0-based block index
  SiteKind kind = SiteKind::attention;
  int64_t index = 0;   // running index over all sites
  int64_t blocks = 0;  // total number of blocks
};

// The sites of a model of `blocks` blocks are numbered attention, ffn, attention, ffn, ...
inline Site site_at(int64_t index, int64_t blocks) {
  return {index / 2, index % 2 == 0 ? SiteKind::attention : SiteKind::ffn, index, blocks};
}

// Where the parameters of a site's junction lie in a model: "blocks.3.ffn_junction".
inline std::string junction_name(const Site& site) {
  return "blocks." + std::to_string(site.block) + (site.kind == SiteKind::attention ? ".attention" : ".ffn") +
         "_junction";
}

}  // namespace siamese::residual

template <>
struct siamese::EnumText<siamese::residual::SiteKind> {
  static constexpr EnumNames<residual::SiteKind, 2> names{
      {{residual::SiteKind::attention, "attention"}, {residual::SiteKind::ffn, "ffn"}}};
};

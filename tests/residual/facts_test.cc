#include "siamese/residual/facts.h"

#include <gtest/gtest.h>

namespace siamese::residual {
namespace {

struct Wanted {
  const char* scheme;
  int64_t streams, norms, at_ends, per_width, constant;
  int64_t most_streams = 0;  // between blocks; 0: as many as at the open
};

// Counted by hand from the equations.
constexpr Wanted kWanted[] = {
    {"pre", 1, 2, 1, 0, 0},
    {"post", 1, 2, 1, 0, 0},
    {"embed", 1, 2, 2, 0, 0},
    {"peri", 1, 4, 2, 2, 0},
    {"sandwich", 1, 4, 1, 2, 0},
    {"olmo2", 1, 2, 1, 0, 0},
    {"deepnorm", 1, 2, 0, 0, 0},
    {"mixln", 1, 2, 1, 0, 0},
    {"lns", 1, 2, 1, 0, 0},
    {"hybrid", 1, 1, 1, -1, 0},
    {"resi_dual", 2, 2, 1, 0, 0},
    {"span", 1, 2, 0, 0, 0},
    {"keel", 1, 4, 1, 2, 0},
    {"hc(streams=2, dynamic=false)", 2, 2, 1, 0, 2 * 2 * (2 + 2)},
    {"hc", 4, 4, 1, 2 * (1 + 4 + 2), 2 * (4 * (4 + 2) + 2)},
    {"mhc", 4, 2, 1, 2 * 4 * 24, 2 * (24 + 3)},
    {"mhc(res=identity)", 4, 2, 1, 2 * 4 * 8, 2 * (8 + 2)},
    {"mhc(res=permutations)", 4, 2, 1, 2 * 4 * 32, 2 * (8 + 24 + 3)},
    {"lambda", 2, 2, 2, 0, 2, 3},
    {"lambda(x0=false, backout=none, embed_norm=false)", 1, 2, 1, 0, 1},
    {"denseformer", 2, 2, 1, 0, 7, 9},                        // h and y0 ... y7
    {"denseformer(dilation=2, period=2)", 2, 2, 1, 0, 4, 5},  // h, y0, y2, y4, y6
    {"orthogonal", 1, 2, 1, 0, 0},
    {"mv_split", 1, 2, 1, 4, 0},
    {"mv_split(norm=pre)", 1, 2, 1, 4, 0},
    {"attn_res", 1, 4, 2, 4, 0, 1 + 2 * 8},
    {"attn_res(block=1)", 1, 4, 2, 4, 0, 1 + 8},
    {"attn_res(block=3)", 1, 4, 2, 4, 0, 1 + 3},
    {"siamese", 2, 6, 3, 4, 0},
    {"siamese(x=hybrid)", 2, 4, 3, 3, 0},
    {"siamese(form=write, input_norm=false)", 2, 4, 1, 2, 0},
};

TEST(Facts, AreWhatTheEquationsSay) {
  for (const auto& wanted : kWanted) {
    const SchemeFacts facts = scheme_facts(wanted.scheme);
    EXPECT_EQ(facts.streams, wanted.streams) << wanted.scheme;
    EXPECT_EQ(facts.most_streams, wanted.most_streams == 0 ? wanted.streams : wanted.most_streams) << wanted.scheme;
    EXPECT_EQ(facts.norms_per_block, wanted.norms) << wanted.scheme;
    EXPECT_EQ(facts.norms_at_ends, wanted.at_ends) << wanted.scheme;
    EXPECT_EQ(facts.extra_per_width, wanted.per_width) << wanted.scheme;
    EXPECT_EQ(facts.extra_constant, wanted.constant) << wanted.scheme;
  }
}

TEST(Facts, Text) {
  EXPECT_EQ(streams_text(scheme_facts("siamese")), "2");
  EXPECT_EQ(streams_text({.streams = 1, .most_streams = 9}), "1 to 9 in 8 blocks");
  EXPECT_EQ(extra_parameters_text(scheme_facts("pre")), "0");
  EXPECT_EQ(extra_parameters_text(scheme_facts("hybrid")), "-1 d");
  EXPECT_EQ(extra_parameters_text(scheme_facts("hc")), "14 d + 52");
}

}  // namespace
}  // namespace siamese::residual

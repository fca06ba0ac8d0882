#include "siamese/residual/registry.h"

#include <gtest/gtest.h>

#include "siamese/base/check.h"

namespace siamese::residual {
namespace {

TEST(Registry, CanonicalTextsRoundTrip) {
  const std::pair<const char*, const char*> texts[] = {
      {"pre", "pre"},
      {"post(final_norm=true)", "post"},
      {"post(final_norm=false)", "post(final_norm=false)"},
      {"hybrid( first = pre )", "hybrid(first=pre)"},
      {"siamese(x=post)", "siamese"},
      {"siamese(final_norm=false, x=hybrid)", "siamese(x=hybrid, final_norm=false)"},
      {"siamese(depth_scale=none,input_norm=no)", "siamese(input_norm=false, depth_scale=none)"},
      {"siamese(gain_y=1.0, gain_x=0.50)", "siamese(gain_x=0.5)"},
      {"siamese(gain_y=2, form=write, final_norm=true)", "siamese(form=write, final_norm=true, gain_y=2)"},
      {"lambda(backout=0.50)", "lambda"},
      {"lambda(embed_norm=no, backout=none)", "lambda(backout=none, embed_norm=false)"},
      {"lambda(backout=0.25, x0=true)", "lambda(backout=0.25)"},
      {"denseformer(period=5,dilation=4)", "denseformer(dilation=4, period=5)"},
      {"mhc(res=sinkhorn)", "mhc"},
      {"mhc(init=xavier, res=permutations, streams=4)", "mhc(res=permutations, init=xavier)"},
      {"orthogonal(over=feature)", "orthogonal"},
      {"mv_split(norm=post)", "mv_split"},
  };
  for (const auto& [given, canonical] : texts) {
    EXPECT_EQ(canonical_scheme(given), canonical);
    EXPECT_EQ(canonical_scheme(canonical), canonical);
  }
}

std::string message_of(const std::string& text) {
  try {
    canonical_scheme(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Registry, UnknownNamesAndOptionsNameTheNearest) {
  EXPECT_NE(message_of("siamse").find("did you mean 'siamese'"), std::string::npos) << message_of("siamse");
  EXPECT_NE(message_of("siamese(input_nrm=false)").find("(did you mean 'input_norm'?)"), std::string::npos);
  EXPECT_NE(message_of("siamese(x=hybird)").find("did you mean 'hybrid'"), std::string::npos);
  EXPECT_NE(message_of("siamese(input_norm=2)").find("true or false"), std::string::npos);
}

TEST(Registry, ValuesThatCannotBeAreRefusedWithTheReason) {
  const std::pair<const char*, const char*> wrong[] = {
      {"lambda(backout=1)", "lambda.backout: expected none or a fraction of the depth from 0 to below 1, got 1"},
      {"lambda(backout=never)", "lambda.backout: expected a number"},
      {"denseformer(dilation=0)", "denseformer.dilation: expected a number of blocks from 1 to 1000000, got 0"},
      {"denseformer(period=-2)", "denseformer.period: expected a number of blocks from 1 to 1000000, got -2"},
      {"mhc(streams=6, res=permutations)", "mhc.streams: expected 5 or fewer with res=permutations, got 6"},
      {"mhc(res=identity, iterations=3)", "mhc.iterations: has no effect: it is used with res=sinkhorn"},
      {"siamese(gain_x=-1)", "siamese.gain_x: expected a factor from 1e-6 to 1e6, got -1"},
      {"siamese(gain_x=0, gain_y=0)", "no branch would see anything"},
  };
  for (const auto& [text, words] : wrong) {
    EXPECT_NE(message_of(text).find(words), std::string::npos) << text << ": " << message_of(text);
  }
}

TEST(Registry, AProgramMayAddAScheme) {
  Scheme own = schemes().front();
  own.doc.name = "own_scheme";
  register_scheme(own);
  EXPECT_EQ(canonical_scheme("own_scheme"), "own_scheme");
  EXPECT_THROW(register_scheme(own), UsageError);
}

TEST(Registry, EverySchemeDocumentsItself) {
  for (const auto& scheme : schemes()) {
    EXPECT_FALSE(scheme.doc.equation.empty()) << scheme.doc.name;
    EXPECT_FALSE(scheme.doc.paper.empty()) << scheme.doc.name;
    for (const auto& option : scheme.options())
      EXPECT_FALSE(option.help.empty()) << scheme.doc.name << " " << option.path;
  }
}

}  // namespace
}  // namespace siamese::residual

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
  EXPECT_NE(message_of("siamese(input_nrm=false)").find("did you mean 'input_norm'"), std::string::npos);
  EXPECT_NE(message_of("siamese(x=hybird)").find("did you mean 'hybrid'"), std::string::npos);
  EXPECT_NE(message_of("siamese(input_norm=2)").find("true or false"), std::string::npos);
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

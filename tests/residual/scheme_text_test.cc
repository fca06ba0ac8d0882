#include "siamese/residual/scheme_text.h"

#include <gtest/gtest.h>

#include "siamese/base/check.h"

namespace siamese::residual {
namespace {

TEST(SchemeText, ParsesNameAndArguments) {
  const SchemeText plain = parse_scheme_text(" pre ");
  EXPECT_EQ(plain.name, "pre");
  EXPECT_TRUE(plain.arguments.entries.empty());
  const SchemeText full = parse_scheme_text("siamese( x = hybrid ,input_norm=false)");
  EXPECT_EQ(full.name, "siamese");
  EXPECT_EQ(full.arguments.find("x")->text, "hybrid");
  EXPECT_EQ(print_scheme_text(full), "siamese(x=hybrid, input_norm=false)");
  EXPECT_EQ(parse_scheme_text("post()").name, "post");
}

TEST(SchemeText, RefusesWhatIsNotOne) {
  for (const char* text :
       {"", "()", "a(b", "a(b)", "a(b=)", "a(=b)", "a(b=1,b=2)", "a(b=1,)", "a)(", "a(b=1) c", "a b", "a(b=(c))"}) {
    EXPECT_THROW(parse_scheme_text(text), UsageError) << text;
  }
}

}  // namespace
}  // namespace siamese::residual

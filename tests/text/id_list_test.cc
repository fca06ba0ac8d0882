#include "siamese/text/id_list.h"

#include "tests/text/support.h"

namespace siamese::text {
namespace {

TEST(IdList, ThereAndBack) {
  for (const auto& ids : {std::vector<TokenId>{}, {0}, {1, 22, 4294967295U}}) {
    std::string text;
    append_ids(text, ids);
    EXPECT_EQ(parse_ids(text, "test"), ids);
  }
  EXPECT_EQ(parse_ids(" [ 1,2 ,3] \r\n", "test"), (std::vector<TokenId>{1, 2, 3}));
}

TEST(IdList, Refused) {
  for (const char* const text :
       {"", "1", "[1", "[1,]", "[-1]", "[1.5]", "[4294967296]", "[1] 2", "[a]", "{}", "[\"1\"]"}) {
    EXPECT_THROW(parse_ids(text, "test"), DataError) << text;
  }
}

}  // namespace
}  // namespace siamese::text

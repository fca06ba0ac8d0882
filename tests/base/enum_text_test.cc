#include "siamese/base/enum_text.h"

#include <gtest/gtest.h>

namespace siamese {

enum class Color { red, green };

template <>
struct EnumText<Color> {
  static constexpr EnumNames<Color, 2> names{{{Color::red, "red"}, {Color::green, "green"}}};
};

namespace {

enum class Nameless { a };

TEST(EnumText, NamesReadBack) {
  for (const Color color : {Color::red, Color::green}) EXPECT_EQ(enum_from_text<Color>(enum_text(color)), color);
  EXPECT_EQ(enum_text(Color::green), "green");
}

TEST(EnumText, OnlyTheExactNameIsRead) {
  for (const char* text : {"", "Red", "re", "redd", "blue"}) EXPECT_FALSE(enum_from_text<Color>(text)) << text;
}

TEST(EnumText, ChoicesKeepTheOrderOfTheTable) {
  EXPECT_EQ(enum_choices<Color>(), (std::vector<std::string>{"red", "green"}));
}

TEST(EnumText, AnEnumWithoutATableIsNoNamedEnum) {
  static_assert(NamedEnum<Color>);
  static_assert(!NamedEnum<Nameless>);
  static_assert(!NamedEnum<int>);
}

TEST(EnumTextDeathTest, AValueOutsideTheTableIsOurOwnBug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(enum_text(static_cast<Color>(7)), "enum value without a name");
}

}  // namespace
}  // namespace siamese

#include "siamese/config/use.h"

#include "tests/config/sample_config.h"
#include <gtest/gtest.h>

#include "siamese/config/fields.h"
#include "siamese/config/yaml.h"

namespace siamese::config {
namespace use_test {

using sample::Shade;
using sample::usage_error;

struct Lamp {
  double power = 0;
  double warm = 0.5;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("power", self.power, "0 = off");
    visit("warm", self.warm, {"share of red", with({"lamp.power"})});
  }
};

struct Room {
  Shade shade = Shade::light;
  Lamp lamp;
  std::vector<std::string> paint;
  int64_t coats = 1;
  int64_t area = 0;  // derived in the dark

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("shade", self.shade, "");
    visit("lamp", self.lamp, {"", for_values("shade", {Shade::dark})});
    visit("paint", self.paint, "");
    visit("coats", self.coats, {"how often", without("paint")});
    visit("area", self.area, {"", for_values("shade", {Shade::light})});
  }
};

void resolve(Room& room) {
  if (room.shade == Shade::dark) room.area = 7;
}

Room read_room(const Value& given) {
  return read_used<Room>(given, resolve, [](const Room& room) { return flatten(print(room)); });
}

Value room(const std::string& file, const std::vector<std::string>& overrides = {}) {
  Value value = parse_yaml(file, "room.yaml");
  for (const auto& assignment : overrides) apply_override(value, assignment);
  return value;
}

std::string refusal(const std::string& file, const std::vector<std::string>& overrides = {}) {
  return usage_error([&] { read_room(room(file, overrides)); });
}

TEST(Use, AKeyWithoutEffectIsRefusedWithTheReason) {
  EXPECT_EQ(refusal("lamp: {power: 3}"),
            "room.yaml:1: lamp.power: has no effect: it is used by shade dark, and shade is light");
  EXPECT_EQ(refusal("shade: dark\nlamp: {warm: 1}"),
            "room.yaml:2: lamp.warm: has no effect: it is used with lamp.power, and lamp.power is 0");
  EXPECT_EQ(refusal("{paint: [red], coats: 2}"),
            "room.yaml:1: coats: has no effect: it is used without paint, and paint is [red]");
  EXPECT_EQ(refusal("shade: dark", {"area=5"}),
            "command line: area: has no effect: it is used by shade light, and shade is dark");
  EXPECT_EQ(refusal("{shade: dark, lamp: {power: 3, warm: 1}}"), "nothing thrown");
}

TEST(Use, WhatAKeyHasAnywayMayBeSaid) {
  EXPECT_EQ(refusal("{lamp: {power: 0, warm: 5e-1}}"), "nothing thrown");
  EXPECT_EQ(refusal("{shade: dark, area: 7}"), "nothing thrown");  // what it was resolved to
  for (const char* const file : {"{}", "shade: dark", "{paint: [red]}"}) {
    const Value resolved = print(read_room(room(file)));
    EXPECT_EQ(to_yaml(print(read_room(room(to_yaml(resolved))))), to_yaml(resolved)) << file;
  }
}

TEST(Use, WhatALaterChoiceLeavesWithoutEffectIsDropped) {
  const Room light = read_room(room("{shade: dark, lamp: {power: 3, warm: 1}}", {"shade=light"}));
  EXPECT_EQ(light.lamp.power, 0);
  EXPECT_EQ(light.lamp.warm, 0.5);
  EXPECT_EQ(refusal("{shade: light}", {"lamp.power=3"}),
            "command line: lamp.power: has no effect: it is used by shade dark, and shade is light");
  EXPECT_NE(refusal("{}", {"lamp.power=3", "shade=light"}), "nothing thrown");  // both at once: no order among them
}

TEST(Use, WhatARunStoredIsKept) {
  Value stored = in_layer(room("{shade: light, lamp: {power: 3}, area: 2}"), kStoredLayer);
  EXPECT_EQ(read_room(stored).lamp.power, 3);
  apply_override(stored, "area=4");
  EXPECT_EQ(read_room(stored).lamp.power, 3);
  apply_override(stored, "lamp.warm=1");
  EXPECT_EQ(usage_error([&] { read_room(stored); }),
            "command line: lamp.warm: has no effect: it is used by shade dark, and shade is light");
}

TEST(Use, TheKeyReferenceSaysWhereAKeyIsUsed) {
  const auto docs = describe<Room>();
  ASSERT_EQ(docs.size(), 6U);
  EXPECT_EQ(docs[1].help, "dark: 0 = off");
  EXPECT_EQ(docs[2].help, "dark: with lamp.power: share of red");
  EXPECT_EQ(docs[4].help, "without paint: how often");
}

TEST(Value, PathsAreFoundAndErased) {
  Value value = room("{lamp: {power: 3}, area: 2}");
  ASSERT_NE(find_path(value, "lamp.power"), nullptr);
  EXPECT_EQ(find_path(value, "lamp.power")->text, "3");
  EXPECT_EQ(find_path(value, "lamp.power.more"), nullptr);
  EXPECT_EQ(find_path(value, "light"), nullptr);
  erase_path(value, "lamp.power");
  erase_path(value, "lamp.none");
  erase_path(value, "none.at.all");
  EXPECT_EQ(to_yaml(value), "lamp: {}\narea: 2\n");
}

}  // namespace use_test
}  // namespace siamese::config

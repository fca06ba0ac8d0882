#include "siamese/runs/lines.h"

#include <fstream>

#include "tests/runs/support.h"
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/runs/outcome.h"

namespace siamese::runs {
namespace {

using Json = nlohmann::ordered_json;

void put(const std::filesystem::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

TEST(Lines, ALineSaysWhatItIsAndCarriesItsChecksum) {
  const std::string line = sealed_line("step", Json{{"step", 3}, {"name", "a \"checksum\":\"0000000000000000\" b"}});
  const Json object = Json::parse(line);
  EXPECT_EQ(object["schema"], 2);
  EXPECT_EQ(object["kind"], "step");
  EXPECT_EQ(object["checksum"].get<std::string>().size(), 16u);
  EXPECT_EQ(open_line(line, "step", "here")["step"], 3);
  EXPECT_EQ(open_line(line + " \r", "step", "here")["step"], 3);  // an editor of another system
}

TEST(Lines, EveryFlippedBitOfALineIsNoticed) {
  const std::string line = sealed_line("step", Json{{"step", 3}, {"loss", 2.5}, {"skipped", false}});
  for (size_t at = 0; at < line.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = line;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      EXPECT_NE(error_of([&] { open_line(bad, "step", "file: line 1"); }), "") << at << " " << bit << " " << bad;
    }
  }
}

TEST(Lines, AnotherKindOrSchemaIsNamed) {
  const std::string line = sealed_line("eval", Json{{"step", 3}});
  expect_said(error_of([&] { open_line(line, "step", "f: line 7"); }),
              "f: line 7: kind: expected 'step', got '\"eval\"'");
  expect_said(error_of([&] { open_line("{\"schema\":3}", "step", "f: line 7"); }),
              "f: line 7: schema: expected 1 or 2");
  expect_said(error_of([&] { open_line("[]", "step", "f: line 7"); }), "f: line 7: expected a JSON object");
  std::string changed = line;
  changed.replace(changed.find("\"step\":3"), 8, "\"step\":4");
  expect_said(error_of([&] { open_line(changed, "eval", "f: line 7"); }), "f: line 7: checksum: expected the checksum");
  // Schema 1 had neither.
  EXPECT_EQ(open_line("{\"schema\":1,\"step\":4}", "step", "f")["step"], 4);
  EXPECT_EQ(open_line("{\"step\":4}", "step", "f")["step"], 4);
}

TEST_F(FolderTest, StrictLinesThrowAndPassOverATornEnd) {
  std::vector<std::string> seen;
  const auto use = [&](std::string_view line, const std::string& where, Notes* notes) {
    EXPECT_EQ(notes, nullptr);
    open_line(line, "step", where);
    seen.push_back(where);
  };
  for_each_line(folder_ / "none", use);
  put(folder_ / "torn", "{\"step\":1}\n\n{\"step\":2}\n{\"st");
  for_each_line(folder_ / "torn", use);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_TRUE(seen[1].ends_with("torn: line 3")) << seen[1];
  put(folder_ / "bad", "{\"step\":1}\nno\n{\"step\":2}\n");
  expect_said(error_of([&] { for_each_line(folder_ / "bad", use); }), "bad: line 2");
}

TEST_F(FolderTest, TolerantLinesLeaveOutWhatCannotBeRead) {
  size_t seen = 0;
  Notes notes;
  const auto use = [&](std::string_view line, const std::string& where, Notes* of_line) {
    open_line(line, "step", where);
    if (line.find("odd") != std::string_view::npos) of_line->push_back(where + ": odd");
    ++seen;
  };
  put(folder_ / "f", "{\"step\":1}\nno\n{\"step\":2}\n{\"odd\":2}\n{\"st");
  for_each_line(folder_ / "f", use, &notes);
  EXPECT_EQ(seen, 3u);
  ASSERT_EQ(notes.size(), 2u);
  expect_said(notes[0], "f: line 2");
  expect_said(notes[1], "f: and 2 more such places");
  put(folder_ / "g", "{\"step\":1}\n{\"st");
  notes.clear();
  for_each_line(folder_ / "g", use, &notes);
  ASSERT_EQ(notes.size(), 1u);
  expect_said(notes[0], "g: line 2: half-written");
}

// A file that cannot be read is not one without lines: an evaluation would be made twice, a diverged run called
// finished.
TEST_F(FolderTest, AFileThatCannotBeReadIsAnErrorInEitherCase) {
  std::filesystem::create_directory(folder_ / "metrics.jsonl");
  const auto use = [](std::string_view, const std::string&, Notes*) {};
  Notes notes;
  for (Notes* const tolerant : {static_cast<Notes*>(nullptr), &notes}) {
    EXPECT_THROW(for_each_line(folder_ / "metrics.jsonl", use, tolerant), Error);
  }
  EXPECT_TRUE(notes.empty());
  EXPECT_THROW(read_course(folder_, true), Error);
}

}  // namespace
}  // namespace siamese::runs

#include "siamese/io/json_lines.h"

#include <algorithm>

#include "tests/io/support.h"

#include "siamese/io/atomic_file.h"

namespace siamese::io {
namespace {

using Lines = std::vector<std::string>;
using Mode = JsonLinesWriter::Mode;

class JsonLinesTest : public InFolder {};

TEST_F(JsonLinesTest, WritesAppendsAndReplaces) {
  const auto path = folder_ / "metrics.jsonl";
  {
    auto writer = JsonLinesWriter::open(path, Mode::replace);
    writer.write(R"({"step":1})");
    EXPECT_EQ(read_file(path), "{\"step\":1}\n");  // on its way at once, without a flush
    writer.flush();
  }
  {
    auto writer = JsonLinesWriter::open(path, Mode::append);
    auto moved = std::move(writer);
    moved.write(R"({"step":2})");
  }
  EXPECT_EQ(read_json_lines(path), (Lines{R"({"step":1})", R"({"step":2})"}));
  JsonLinesWriter::open(path, Mode::replace).write(R"({"step":3})");
  EXPECT_EQ(read_json_lines(path), (Lines{R"({"step":3})"}));
}

TEST_F(JsonLinesTest, AppendMendsTheLastLine) {
  const auto torn = put("torn", "{\"step\":1}\n{\"st");
  JsonLinesWriter::open(torn, Mode::append).write(R"({"step":2})");
  EXPECT_EQ(read_file(torn), "{\"step\":1}\n{\"step\":2}\n");

  const auto only_torn = put("only_torn", "{\"st");
  JsonLinesWriter::open(only_torn, Mode::append).write(R"({"step":2})");
  EXPECT_EQ(read_file(only_torn), "{\"step\":2}\n");

  const auto whole = put("whole", R"({"step":1})");
  JsonLinesWriter::open(whole, Mode::append).write(R"({"step":2})");
  EXPECT_EQ(read_file(whole), "{\"step\":1}\n{\"step\":2}\n");
}

// `cp -al`: a backup shares the file until one of the two is written.
TEST_F(JsonLinesTest, OtherNamesOfTheFileKeepWhatTheyHad) {
  const auto path = put("metrics.jsonl", "{\"step\":1}\n");
  const auto backup = folder_ / "backup.jsonl";
  std::filesystem::create_hard_link(path, backup);
  auto writer = JsonLinesWriter::open(path, Mode::append);
  writer.write(R"({"step":2})");
  EXPECT_EQ(read_file(backup), "{\"step\":1}\n");
  const auto later = folder_ / "later.jsonl";
  std::filesystem::create_hard_link(path, later);
  writer.write(R"({"step":3})");
  EXPECT_EQ(read_file(later), "{\"step\":1}\n{\"step\":2}\n");
  EXPECT_EQ(read_json_lines(path).size(), 3U);
  const auto replaced = folder_ / "replaced.jsonl";
  std::filesystem::create_hard_link(path, replaced);
  JsonLinesWriter::open(path, Mode::replace).write(R"({"step":1})");
  EXPECT_EQ(read_json_lines(replaced).size(), 3U);
  EXPECT_EQ(read_json_lines(path).size(), 1U);
}

TEST_F(JsonLinesTest, AFullDiskKeepsEarlierLinesWhole) {
  const auto path = folder_ / "metrics.jsonl";
  auto writer = JsonLinesWriter::open(path, Mode::replace);
  writer.write(R"({"step":1})");
  const std::string large = R"({"step":2,"text":")" + std::string(10'000, 'x') + R"("})";
  {
    FullDisk full(4096);
    expect_error<SystemError>([&] { writer.write(large); }, {"cannot write", path.string()});
  }
  EXPECT_EQ(read_file(path), "{\"step\":1}\n");
  writer.write(R"({"step":3})");
  EXPECT_EQ(read_file(path), "{\"step\":1}\n{\"step\":3}\n");
}

TEST_F(JsonLinesTest, NamesAFileThatCannotBeWritten) {
  auto writer = JsonLinesWriter::open("/dev/full", Mode::append);
  expect_error<SystemError>([&] { writer.write("{}"); }, {"/dev/full", "No space left"});
  const auto below_a_file = put("file", "x") / "metrics.jsonl";
  expect_error<SystemError>([&] { JsonLinesWriter::open(below_a_file, Mode::append); },
                            {below_a_file.string(), "Not a directory"});
}

TEST_F(JsonLinesTest, ReadsPastATornLastLineOnly) {
  EXPECT_EQ(read_json_lines(put("empty", "")), Lines{});
  EXPECT_EQ(read_json_lines(put("torn", "{\"a\":1}\n{\"a\":")), Lines{R"({"a":1})"});
  EXPECT_EQ(read_json_lines(put("whole", "{\"a\":1}\n{\"a\":2}")), (Lines{R"({"a":1})", R"({"a":2})"}));
  EXPECT_EQ(read_json_lines(put("nested", "{\"a\":[{\"b\":[]}]}\n")), Lines{R"({"a":[{"b":[]}]})"});

  for (const std::string bad : {"{\"a\":", "", "[1]", "3", "\"text\"", "null", "{} {}", "{\"a\":nan}"}) {
    const auto path = put("bad", "{\"a\":1}\n" + bad + "\n{\"a\":3}\n");
    expect_error<DataError>([&] { read_json_lines(path); }, {path.string(), "line 2", "expected a JSON object"});
  }
  EXPECT_EQ(read_json_lines(put("power_cut", "{\"a\":1}\n{\"a\":2}" + std::string(9, '\0'))), Lines{R"({"a":1})"});
  const auto ended = put("ended", "{\"a\":\n");  // a torn line never ends in a line break
  expect_error<DataError>([&] { read_json_lines(ended); }, {ended.string(), "line 1"});
  expect_error<DataError>([&] { read_json_lines(folder_ / "none"); }, {"none", "No such file"});
}

TEST_F(JsonLinesTest, TruncatesToTheLastStep) {
  const auto path = put("metrics.jsonl",
                        "{\"schema\":1}\n"
                        "{\"step\":1,\"inner\":{\"step\":99}}\n"
                        "{\"step\":2}\n"
                        "garbage\n"
                        "{\"inner\":{\"step\":1},\"step\":3}\n"
                        "{\"step\":\"2\"}\n"
                        "{\"step\":1.5}\n"
                        "{\"step\":[1]}\n"
                        "{\"inner\":{\"step\":9}}\n"
                        "{\"step\":18446744073709551615}\n"
                        "{\"step\":-1}\n"
                        "{\"step\":2,\"again\":tr");
  truncate_json_lines(path, "step", 2);
  EXPECT_EQ(read_file(path),
            "{\"schema\":1}\n"
            "{\"step\":1,\"inner\":{\"step\":99}}\n"
            "{\"step\":2}\n"
            "{\"inner\":{\"step\":9}}\n"
            "{\"step\":-1}\n");
  truncate_json_lines(path, "step", 0);
  EXPECT_EQ(read_file(path), "{\"schema\":1}\n{\"inner\":{\"step\":9}}\n{\"step\":-1}\n");
  EXPECT_EQ(names(), Lines{"metrics.jsonl"});
}

TEST_F(JsonLinesTest, TruncatingLeavesAMissingFileMissing) {
  truncate_json_lines(folder_ / "none", "step", 2);
  EXPECT_TRUE(names().empty());
}

TEST_F(JsonLinesTest, DeepNestingIsOnlyALongLine) {
  const std::string deep = "{\"a\":" + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  EXPECT_EQ(read_json_lines(put("deep", deep + "\n")), Lines{deep});
}

}  // namespace
}  // namespace siamese::io

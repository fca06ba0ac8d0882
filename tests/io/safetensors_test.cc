#include "siamese/io/safetensors.h"

#include <algorithm>

#include "tests/io/support.h"

#include "siamese/io/atomic_file.h"
#include "siamese/io/checksum.h"

namespace siamese::io {
namespace {

class SafetensorsTest : public InFolder {};

// A file of this header, as it stands, and this data.
std::string file_of(const std::string& header, const std::string& data = "") {
  return raw<uint64_t>({header.size()}) + header + data;
}

SafetensorsContent parse(const std::string& file) {
  return parse_safetensors(std::as_bytes(std::span(file)), "a.safetensors");
}

TensorView view(const std::string& name, DType dtype, std::vector<int64_t> shape, const std::string& data) {
  return {name, dtype, std::move(shape), reinterpret_cast<const std::byte*>(data.data()), data.size()};
}

std::string_view text_of(const TensorView& tensor) {
  return {reinterpret_cast<const char*>(tensor.data), tensor.bytes};
}

std::string sums_of(const std::vector<std::string>& data) {
  std::string text;
  for (const auto& one : data) text += (text.empty() ? "" : " ") + checksum_text(checksum(one));
  return text;
}

TEST_F(SafetensorsTest, RoundTripsEveryType) {
  std::vector<std::string> data;
  std::vector<TensorView> tensors;
  for (const auto& name : enum_choices<DType>()) {
    data.emplace_back(6 * dtype_size(*enum_from_text<DType>(name)), static_cast<char>('a' + data.size()));
  }
  for (const auto& name : enum_choices<DType>()) {
    tensors.push_back(view("w." + name, *enum_from_text<DType>(name), {2, 3}, data[tensors.size()]));
  }
  const auto path = folder_ / "a.safetensors";
  write_safetensors(path, tensors, {{"format", "pt"}, {"text", "line\n\"quote\" \xc3\xa9"}});
  const SafetensorsFile file = SafetensorsFile::open(path);
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (const TensorView& written : tensors) {
    const TensorView* read = file.find(written.name);
    ASSERT_NE(read, nullptr) << written.name;
    EXPECT_EQ(read->dtype, written.dtype);
    EXPECT_EQ(read->shape, written.shape);
    EXPECT_EQ(text_of(*read), text_of(written));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(read->data) % dtype_size(read->dtype), 0u) << written.name;
  }
  EXPECT_EQ(file.find("w"), nullptr);
  EXPECT_EQ(file.metadata().at("text"), "line\n\"quote\" \xc3\xa9");
  EXPECT_EQ(names(), std::vector<std::string>{"a.safetensors"});
}

TEST_F(SafetensorsTest, RoundTripsTheEdges) {
  const auto path = folder_ / "a.safetensors";
  write_safetensors(path, {}, {});
  EXPECT_TRUE(SafetensorsFile::open(path).tensors().empty());

  const std::string one = raw<float>({2.5f});
  const std::vector<TensorView> tensors{view("scalar", DType::f32, {}, one),
                                        view("none", DType::f32, {0, 4}, ""),
                                        {"null", DType::u8, {0}, nullptr, 0},
                                        view("", DType::f32, {1, 1}, one)};
  write_safetensors(path, tensors, {});
  const SafetensorsFile file = SafetensorsFile::open(path);
  EXPECT_EQ(file.find("scalar")->shape, std::vector<int64_t>{});
  EXPECT_EQ(text_of(*file.find("scalar")), one);
  EXPECT_EQ(file.find("none")->shape, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(file.find("null")->bytes, 0u);
  EXPECT_EQ(text_of(*file.find("")), one);
}

TEST_F(SafetensorsTest, TheBytesAreDeterministicAndAligned) {
  const std::string byte = "x", half = "hh", four = raw<float>({1}), eight = raw<int64_t>({1});
  std::vector<TensorView> tensors{view("c", DType::u8, {1}, byte), view("b", DType::f32, {1}, four),
                                  view("a", DType::f32, {1}, four), view("d", DType::i64, {1}, eight),
                                  view("e", DType::bf16, {1}, half)};
  write_safetensors(folder_ / "1", tensors, {{"b", "2"}, {"a", "1"}});
  std::reverse(tensors.begin(), tensors.end());
  write_safetensors(folder_ / "2", tensors, {{"a", "1"}, {"b", "2"}});
  const std::string content = read_file(folder_ / "1");
  EXPECT_EQ(content, read_file(folder_ / "2"));

  const auto sums = sums_of({eight, four, four, half, byte});
  const std::string header =
      R"({"__metadata__":{"a":"1","b":"2","xxh3":")" + sums + R"(","xxh3_header":")" +
      content.substr(content.find("header") + 9, 16) +
      R"("},"d":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
      R"("a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]},)"
      R"("e":{"dtype":"BF16","shape":[1],"data_offsets":[16,18]},"c":{"dtype":"U8","shape":[1],"data_offsets":[18,19]}})";
  EXPECT_EQ(content.substr(8, header.size()), header);
  const size_t data_start = content.size() - 19;
  EXPECT_EQ(data_start % 64, 0u);
  EXPECT_EQ(content.substr(8 + header.size(), data_start - 8 - header.size()).find_first_not_of(' '),
            std::string::npos);
  EXPECT_LT(data_start - 8 - header.size(), 64u);
  EXPECT_EQ(content.substr(data_start), eight + four + four + half + byte);
}

TEST_F(SafetensorsTest, DataIsAlignedWhateverTheHeaderLength) {
  const std::string byte = "x";
  for (size_t length = 1; length <= 64; ++length) {
    write_safetensors(folder_ / "a", std::vector{view(std::string(length, 'n'), DType::u8, {1}, byte)}, {});
    EXPECT_EQ((read_file(folder_ / "a").size() - 1) % 64, 0u) << length;
  }
}

TEST_F(SafetensorsTest, AFailedWriteLeavesTheOldFile) {
  const auto path = folder_ / "a.safetensors";
  const std::string old = "old!", large(100'000, 'x');
  write_safetensors(path, std::vector{view("a", DType::u8, {4}, old)}, {});
  {
    FullDisk full(4096);
    const std::vector tensors{view("a", DType::u8, {100'000}, large)};
    expect_error<SystemError>([&] { write_safetensors(path, tensors, {}); }, {"cannot write", path.string()});
  }
  EXPECT_EQ(text_of(*SafetensorsFile::open(path).find("a")), old);
  EXPECT_EQ(names(), std::vector<std::string>{"a.safetensors"});
}

TEST_F(SafetensorsTest, RefusesNamesItCouldNotRead) {
  const auto path = folder_ / "a.safetensors";
  const std::string byte = "x";
  const auto refuse = [&](const std::vector<std::string>& tensor_names,
                          const std::map<std::string, std::string>& metadata, const std::string& message) {
    std::vector<TensorView> tensors;
    for (const auto& name : tensor_names) tensors.push_back(view(name, DType::u8, {1}, byte));
    expect_error<UsageError>([&] { write_safetensors(path, tensors, metadata); }, {message});
  };
  refuse({"w", "w"}, {}, "got 'w'");
  refuse({"__metadata__"}, {}, "got '__metadata__'");
  refuse({"\xff"}, {}, "UTF-8");
  refuse({"w"}, {{"k", "\xff"}}, "UTF-8");
  refuse({"w"}, {{"xxh3", ""}}, "xxh3_header are the writer's own");
  EXPECT_TRUE(names().empty());
}

TEST_F(SafetensorsTest, AViewOfTheWrongSizeIsABug) {
  const std::string byte = "x";
  const std::vector wrong{view("w", DType::f32, {1}, byte)};
  EXPECT_DEATH(write_safetensors(folder_ / "a", wrong, {}), "tensor->bytes");
  const std::vector negative{view("w", DType::u8, {-1}, byte)};
  EXPECT_DEATH(write_safetensors(folder_ / "a", negative, {}), "tensor->bytes");
}

// Every bit of a file: the header's are found when it is opened, a tensor's when it is read, and its own name is said.
TEST_F(SafetensorsTest, EveryFlippedBitIsNamed) {
  const std::string a = raw<float>({1, 2, 3}), b = "bytes";
  const auto path = folder_ / "a.safetensors";
  write_safetensors(path, std::vector{view("a", DType::f32, {3}, a), view("b", DType::u8, {5}, b)}, {{"k", "v"}});
  const std::string good = read_file(path);
  const size_t data_start = good.size() - a.size() - b.size();
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string flipped = good;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    if (bit / 8 < data_start) {
      EXPECT_THROW(parse(flipped), DataError) << "bit " << bit;
      continue;
    }
    const bool of_a = bit / 8 < data_start + a.size();
    const SafetensorsContent content = parse(flipped);
    for (const TensorView& tensor : content.tensors) {
      if ((tensor.name == "a") != of_a) {
        EXPECT_NO_THROW(verify(tensor));
        continue;
      }
      expect_error<DataError>([&] { verify(tensor); },
                              {"a.safetensors: tensor '" + tensor.name + "': expected the checksum " +
                                   checksum_text(checksum(of_a ? a : b)) + ", got ",
                               "damaged"});
    }
  }
}

TEST_F(SafetensorsTest, DataIsVerifiedBlockByBlockWhileItIsRead) {
  std::string large(3 * kChecksumBlock + 40, 'x');
  const auto path = folder_ / "a.safetensors";
  write_safetensors(path, std::vector{view("a", DType::f64, {std::ssize(large) / 8}, large)}, {});
  std::string read;
  const auto collect = [&](size_t offset, std::span<const std::byte> block) {
    EXPECT_EQ(offset, read.size());
    EXPECT_EQ(block.size() % 8, 0u);
    read.append(reinterpret_cast<const char*>(block.data()), block.size());
  };
  read_tensor(*SafetensorsFile::open(path).find("a"), collect);
  EXPECT_EQ(read, large);
  std::string file = read_file(path);
  file[file.size() - 3] = 'y';
  const SafetensorsContent damaged = parse(file);
  read.clear();
  expect_error<DataError>([&] { read_tensor(damaged.tensors[0], collect); }, {"tensor 'a'", "checksum"});
  expect_error<DataError>([&] { write_safetensors(folder_ / "b", damaged.tensors, {}); }, {"tensor 'a'", "checksum"});
  EXPECT_EQ(names(), std::vector<std::string>{"a.safetensors"});
}

TEST_F(SafetensorsTest, ChecksumsThatDoNotFitAreRefused) {
  const auto path = folder_ / "a.safetensors";
  const std::string byte = "x";
  write_safetensors(path, std::vector{view("a", DType::u8, {1}, byte)}, {});
  const SafetensorsFile good = SafetensorsFile::open(path);
  EXPECT_EQ(good.tensors()[0].checksum, checksum(byte));
  EXPECT_TRUE(good.metadata().empty());
  const std::string entry = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  const auto refuse = [&](std::string header, const std::vector<std::string>& parts) {
    if (header.find("_header") != std::string::npos) seal(header, "\"xxh3_header\":\"");
    expect_error<DataError>([&] { parse(file_of(header, byte)); }, parts);
  };
  const std::string own = R"("xxh3_header":"0000000000000000"},)";
  refuse(R"({"__metadata__":{"xxh3":"0123456789abcdef"},)" + entry, {"header: its checksum is missing"});
  refuse(R"({"__metadata__":{)" + own + entry, {"expected 1 checksums", "got 0"});
  refuse(R"({"__metadata__":{"xxh3":"0123456789abcde",)" + own + entry, {"expected 1 checksums", "got 0"});
  refuse(R"({"__metadata__":{"xxh3":"0123456789abcdef 0123456789abcdef",)" + own + entry, {"got 2"});
  EXPECT_EQ(parse(file_of("{" + entry, byte)).tensors[0].checksum, std::nullopt);
}

TEST_F(SafetensorsTest, ReadsWhatOthersWrite) {
  // No padding, fields and tensors in any order, data unaligned, spaces and escapes.
  const std::string file = file_of(
      R"({ "b\u00e9" : {"shape":[2],"data_offsets":[1,5],"dtype":"F16"}, "a":{"data_offsets":[0,1],"dtype":"BOOL","shape":[]},)"
      R"("__metadata__":{}}     )",
      "xabcd");
  const auto content = parse(file);
  ASSERT_EQ(content.tensors.size(), 2u);
  EXPECT_EQ(content.tensors[0].name, "a");
  EXPECT_EQ(content.tensors[1].name, "b\xc3\xa9");
  EXPECT_EQ(text_of(content.tensors[1]), "abcd");
  EXPECT_TRUE(content.metadata.empty());
  EXPECT_TRUE(parse(file_of("{}")).tensors.empty());
}

TEST_F(SafetensorsTest, RefusesHostileFiles) {
  const auto tensor = [](const std::string& fields) { return R"({"w":{)" + fields + "}}"; };
  const auto shaped = [&](const std::string& shape) {
    return file_of(tensor(R"("dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,8])"), "12345678");
  };
  const auto placed = [&](const std::string& offsets, const std::string& data = "12345678") {
    return file_of(tensor(R"("dtype":"F32","shape":[2],"data_offsets":)" + offsets), data);
  };
  const auto pair = [](const std::string& first, const std::string& second, size_t data) {
    return file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
                       R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}",
                   std::string(data, 'x'));
  };
  ASSERT_NO_THROW(parse(shaped("[2]")));
  ASSERT_NO_THROW(parse(placed("[0,8]")));
  ASSERT_NO_THROW(parse(pair("[4,8]", "[0,4]", 8)));
  struct Case {
    std::string file;
    std::string message;
  };
  const Case cases[] = {
      {"", "at least 8 bytes, got 0"},
      {"1234567", "at least 8 bytes, got 7"},
      {raw<uint64_t>({UINT64_MAX}) + "{}", "at most 100000000 bytes, got 18446744073709551615"},
      {raw<uint64_t>({100'000'001}) + "{}", "at most 100000000 bytes, got 100000001"},
      {raw<uint64_t>({3}) + "{}", "expected a header of 3 bytes, got 2"},
      {raw<uint64_t>({0}), "got nothing"},
      // The header as JSON.
      {file_of("[]"), "starting with '{' at byte 8, got '['"},
      {file_of(" {}"), "got ' '"},
      {file_of("\xef\xbb\xbf{}"), "JSON object"},
      {file_of("null"), "JSON object"},
      {file_of("{"), "not valid JSON near byte"},
      {file_of("{} x"), "not valid JSON"},
      {file_of("{}{}"), "not valid JSON"},
      {file_of(std::string("{}\0", 3)), "not valid JSON"},
      {file_of("{'a':1}"), "not valid JSON"},
      {file_of("{\"a\xff\":1}"), "not valid JSON"},
      {file_of(R"({"a":)" + std::string(100'000, '[')), "expected 'a' to be an object, got an array"},
      {file_of(R"({"a":{"shape":)" + std::string(100'000, '[')), "got an array"},
      {file_of(R"({"a":{"b":{"c":{}}}})"), "got 'b'"},
      {file_of(R"({"a":{"dtype":{}}})"), "expected dtype to be a string, got an object"},
      {file_of(R"({"a":1})"), "expected 'a' to be an object, got 1"},
      {file_of(R"({"a":null})"), "got null"},
      // Keys.
      {file_of(
           R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})"),
       "'a' stands twice"},
      {file_of(R"({"__metadata__":{},"__metadata__":{}})"), "'__metadata__' stands twice"},
      {file_of(R"({"__metadata__":{"k":"1","k":"1"}})"), "metadata key 'k' stands twice"},
      {file_of(tensor(R"("dtype":"F32","dtype":"F32")")), "key dtype stands twice"},
      {file_of(tensor(R"("dtype":"F32","shape":[0])")), "got 2 of them"},
      {file_of(tensor("")), "got 0 of them"},
      {file_of(tensor(R"("dtype":"U8","shape":[0],"data_offsets":[0,0],"extra":1)")), "got 'extra'"},
      {file_of("{\"bad\\nname\":1}"), "'bad\\x0aname'"},
      // Metadata.
      {file_of(R"({"__metadata__":{"k":1}})"), "metadata 'k' to be a string, got 1"},
      {file_of(R"({"__metadata__":{"k":null}})"), "got null"},
      {file_of(R"({"__metadata__":{"k":{}}})"), "got an object"},
      {file_of(R"({"__metadata__":{"k":[]}})"), "got an array"},
      {file_of(R"({"__metadata__":"text"})"), "'__metadata__' to be an object, got 'text'"},
      // Types.
      {file_of(tensor(R"("dtype":"F31","shape":[0],"data_offsets":[0,0])")), "got 'F31'"},
      {file_of(tensor(R"("dtype":"f32","shape":[0],"data_offsets":[0,0])")), "got 'f32'"},
      {file_of(tensor(R"("dtype":3,"shape":[0],"data_offsets":[0,0])")), "expected dtype to be a string, got 3"},
      // Shapes.
      {shaped("[-2]"), "got -2"},
      {shaped("[2.0]"), "got 2.0"},
      {shaped("[\"2\"]"), "got '2'"},
      {shaped("[true]"), "got true"},
      {shaped("[[2]]"), "got an array"},
      {shaped("2"), "an array of whole numbers, got 2"},
      {shaped("[3]"), "expected 12 bytes for F32 [3], got data_offsets of 8"},
      {shaped("[1]"), "expected 4 bytes"},
      {shaped("[]"), "expected 4 bytes"},
      {shaped("[0]"), "expected 0 bytes"},
      {shaped("[18446744073709551616]"), "got 18446744073709551616"},
      {shaped("[18446744073709551615]"), "does not fit"},
      {shaped("[9223372036854775807]"), "does not fit"},
      {shaped("[4611686018427387906]"), "does not fit"},      // x 4 bytes = 8 modulo 2^64
      {shaped("[4294967296,4294967296,2]"), "does not fit"},  // 0 modulo 2^64
      {shaped("[0,4294967296,4294967296]"), "does not fit"},
      {file_of(tensor(R"("dtype":"U8","shape":[0,9223372036854775808],"data_offsets":[0,0])")), "does not fit"},
      // Offsets.
      {placed("[0]"), "expected two data_offsets, got 1"},
      {placed("[0,8,8]"), "expected two data_offsets, got 3"},
      {placed("[8,0]"), "got [8, 0]"},
      {placed("[-8,0]"), "got -8"},
      {placed("[0,8]", "1234567"), "inside the 7 bytes of data, got [0, 8]"},
      {placed("[1,9]"), "got [1, 9]"},
      {placed("[18446744073709551608,0]"), "inside the 8 bytes"},
      {placed("[18446744073709551608,18446744073709551615]"), "inside the 8 bytes"},
      {placed("[1,9]", "123456789"), "expected its data at offset 0 (there is a hole before it), got 1"},
      {placed("[0,8]", "123456789"), "cover all 9 bytes of data, got 8"},
      {file_of("{}", "x"), "cover all 1 bytes of data, got 0"},
      {pair("[0,4]", "[0,4]", 4), "it overlaps another"},
      {pair("[0,4]", "[2,6]", 6), "it overlaps another"},
      {pair("[0,4]", "[5,9]", 9), "there is a hole before it"},
  };
  for (const Case& hostile : cases) {
    expect_error<DataError>([&] { parse(hostile.file); }, {hostile.message, "a.safetensors: "});
  }
}

TEST_F(SafetensorsTest, EveryTruncationIsRefused) {
  const std::string data = raw<float>({1, 2});
  write_safetensors(folder_ / "a", std::vector{view("w", DType::f32, {2}, data)}, {{"k", "v"}});
  const std::string whole = read_file(folder_ / "a");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(parse(whole.substr(0, size)), DataError) << size;
  }
}

TEST_F(SafetensorsTest, NamesTheFile) {
  const auto path = put("bad.safetensors", "xxx");
  expect_error<DataError>([&] { SafetensorsFile::open(path); }, {path.string(), "at least 8 bytes"});
  expect_error<DataError>([&] { SafetensorsFile::open(folder_ / "none"); }, {"none", "No such file"});
}

}  // namespace
}  // namespace siamese::io

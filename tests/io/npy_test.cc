#include "siamese/io/npy.h"

#include <algorithm>

#include "tests/io/support.h"

namespace siamese::io {
namespace {

class NpyTest : public InFolder {};

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string npy(const std::string& header, const std::string& data, char major = 1) {
  std::string out = std::string("\x93NUMPY") + major + '\0';
  const auto length = static_cast<uint32_t>(header.size());
  out.append(reinterpret_cast<const char*>(&length), major == 1 ? 2 : 4);
  return out + header + data;
}

std::string header_of(const std::string& descr, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }  \n";
}

TEST_F(NpyTest, ReadsEveryTypeInEveryVersion) {
  const std::pair<std::string, DType> types[] = {{"|u1", DType::u8},  {"<u1", DType::u8},  {"<u2", DType::u16},
                                                 {"<u4", DType::u32}, {"<u8", DType::u64}, {"|i1", DType::i8},
                                                 {"<i2", DType::i16}, {"<i4", DType::i32}, {"<i8", DType::i64},
                                                 {"<f4", DType::f32}, {"<f8", DType::f64}};
  for (const auto& [descr, dtype] : types) {
    for (const char major : {1, 2, 3}) {
      const std::string file = npy(header_of(descr, "(2, 3)"), std::string(6 * dtype_size(dtype), 'x'), major);
      const NpyView view = parse_npy(bytes_of(file), "a.npy");
      EXPECT_EQ(view.dtype, dtype) << descr;
      EXPECT_EQ(view.shape, (std::vector<int64_t>{2, 3}));
      EXPECT_EQ(view.data.size(), 6 * dtype_size(dtype));
      EXPECT_EQ(reinterpret_cast<const char*>(view.data.data()), file.data() + view.offset);
      EXPECT_EQ(file[view.offset - 1], '\n');
    }
  }
}

TEST_F(NpyTest, ReadsEveryShape) {
  const auto shape_of = [](const std::string& shape, size_t count) {
    return parse_npy(bytes_of(npy(header_of("|u1", shape), std::string(count, 'x'))), "a.npy").shape;
  };
  EXPECT_EQ(shape_of("()", 1), std::vector<int64_t>{});
  EXPECT_EQ(shape_of("(5,)", 5), std::vector<int64_t>{5});
  EXPECT_EQ(shape_of("(0,)", 0), std::vector<int64_t>{0});
  EXPECT_EQ(shape_of("(2, 3, 4)", 24), (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(shape_of("( 2 ,3, )", 6), (std::vector<int64_t>{2, 3}));
}

TEST_F(NpyTest, ReadsKeysInAnyOrderFromAFile) {
  const auto path =
      put("a.npy", npy(R"({"shape": (2,), "fortran_order": False, "descr": "<u2"})", raw<uint16_t>({7, 8})));
  const NpyFile file = NpyFile::open(path);
  uint16_t second = 0;
  std::memcpy(&second, file.view().data.data() + 2, 2);
  EXPECT_EQ(second, 8);
}

TEST_F(NpyTest, RefusesWhatIsNotExactlyThat) {
  const std::string good = npy(header_of("<u2", "(2,)"), raw<uint16_t>({1, 2}));
  ASSERT_NO_THROW(parse_npy(bytes_of(good), "a.npy"));
  const auto with = [](const std::string& header) { return npy(header, ""); };
  struct Case {
    std::string file;
    std::string message;
  };
  const Case cases[] = {
      {"", "no magic"},
      {"\x93NUMP", "no magic"},
      {"PK\3\4aaaaaaaaaaaaaaa", "no magic"},
      {good.substr(0, 7), "expected 8 bytes, got 7"},
      {good.substr(0, 9), "expected 10 bytes, got 9"},
      {good.substr(0, 20), "truncated NPY header"},
      {npy(header_of("<u2", "(2,)"), "", 2).substr(0, 11), "expected 12 bytes, got 11"},
      {npy("", "", 4), "got 4.0"},
      {npy("", "", 0), "got 0.0"},
      {std::string("\x93NUMPY\1\1\0\0", 10), "got 1.1"},
      {std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12), "truncated NPY header"},
      {good.substr(0, good.size() - 1), "expected 4 bytes of data from byte 70 for U16 [2], got 3"},
      {good + "x", "got 5"},
      {with(""), "byte 10: expected '{', got the end"},
      {with("[]"), "expected '{', got '['"},
      {with("{"), "expected a quoted string, got the end"},
      {with("{}"), "without all three"},
      {with("{'descr'"), "expected ':'"},
      {with("{'descr"), "closed string"},
      {with("{'descr': '<u2'"), "expected '}', got the end"},
      {with("{'descr': '<u2' 'shape': (1,)}"), "byte 26: expected '}'"},
      {with("{'descr': '<u2', 'shape': (0,)}"), "without all three"},
      {with("{'descr': '<u2', 'descr': '<u2'}"), "once each"},
      {with("{'extra': 1}"), "once each, got 'extra'"},
      {with("{'bad\nkey': 1}"), "'bad\\x0akey'"},
      {with(header_of(">u2", "(0,)")), "got '>u2'"},
      {with(header_of("|u2", "(0,)")), "got '|u2'"},
      {with(header_of("=u2", "(0,)")), "got '=u2'"},
      {with(header_of("<f2", "(0,)")), "got '<f2'"},
      {with(header_of("|b1", "(0,)")), "got '|b1'"},
      {with(header_of("<c8", "(0,)")), "got '<c8'"},
      {with(header_of("|O", "(0,)")), "got '|O'"},
      {with(header_of("<U16", "(0,)")), "got '<U16'"},
      {with("{'descr': [('a', '<u2')], "), "a structured type"},
      {with("{'descr': 2}"), "a quoted string"},
      {with("{'descr': '<u2', 'fortran_order': True, 'shape': (0,)}"), "expected fortran_order False, got 'True,'"},
      {with("{'fortran_order': 0}"), "expected fortran_order False"},
      {with(header_of("<u2", "(0)")), "expected ',', got ')'"},
      {with(header_of("<u2", "0")), "expected '('"},
      {with(header_of("<u2", "[0]")), "expected '('"},
      {with(header_of("<u2", "(-1,)")), "expected a dimension"},
      {with(header_of("<u2", "(1.5,)")), "expected ','"},
      {with(header_of("<u2", "(99999999999999999999,)")), "expected a dimension"},
      {with(header_of("<u2", "(9223372036854775807, 2)")), "does not fit"},
      {with(header_of("<u2", "(4294967296, 4294967296)")), "does not fit"},
      {with(header_of("<u2", "(,)")), "expected a dimension"},
      {with(header_of("<u2", "(0,")), "expected a dimension"},
      {with(header_of("<u2", "(0,)") + "x"), "expected the end of the header, got 'x'"},
  };
  for (const Case& hostile : cases) {
    expect_error<DataError>([&] { parse_npy(bytes_of(hostile.file), "a.npy"); }, {hostile.message, "a.npy: "});
  }
}

TEST_F(NpyTest, EveryTruncationIsRefused) {
  const std::string good = npy(header_of("<u2", "(2,)"), raw<uint16_t>({1, 2}));
  for (size_t size = 0; size < good.size(); ++size) {
    const std::string cut = good.substr(0, size);
    EXPECT_THROW(parse_npy(bytes_of(cut), "a.npy"), DataError) << size;
  }
}

}  // namespace
}  // namespace siamese::io

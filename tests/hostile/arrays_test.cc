// Tensors, arrays, tokens and records of numbers. What tests/io has already is not repeated.
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>

#include "tests/hostile/support.h"
#include "tests/io/megatron_sample.h"
#include "tests/io/packed_sample.h"

#include "siamese/base/check.h"
#include "siamese/io/llama2c.h"
#include "siamese/io/npy.h"
#include "siamese/io/safetensors.h"

namespace siamese::hostile {
namespace {

std::string number(uint64_t value, size_t bytes = 8) {
  std::string out(bytes, '\0');
  std::memcpy(out.data(), &value, bytes);
  return out;
}

std::string safetensors(const std::string& header, const std::string& data = "") {
  return number(header.size()) + header + data;
}

void refuses_tensors(const std::string& file) {
  expect_holds(fuzz::check_safetensors, file);
  EXPECT_THROW(io::parse_safetensors(std::as_bytes(std::span(file)), "file"), DataError) << excerpt(file);
}

TEST(HostileSafetensors, DamagedFiles) {
  expect_holds_when_damaged(
      fuzz::check_safetensors,
      safetensors(R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                  R"("b":{"dtype":"U8","shape":[],"data_offsets":[8,9]}} )",
                  "123456789"));
}

TEST(HostileMegatronIndex, DamagedFiles) {
  expect_holds_when_damaged(fuzz::check_megatron_index, io::megatron_index(8, {3, 0, 4}, 2));
}

TEST(HostileMegatronIndex, Counts) {
  constexpr size_t kSequencesAt = 18, kDocumentsAt = 26;
  const std::string whole = io::megatron_index(4, {1, 2}, 4);
  for (const uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{5}, uint64_t{1} << 61, UINT64_MAX / 12, UINT64_MAX}) {
    for (const uint64_t documents : {uint64_t{0}, uint64_t{3}, uint64_t{1} << 61, UINT64_MAX / 8 + 1, UINT64_MAX}) {
      std::string changed = whole;
      changed.replace(kSequencesAt, 8, number(count)).replace(kDocumentsAt, 8, number(documents));
      expect_holds(fuzz::check_megatron_index, changed);
    }
  }
}

TEST(HostileCompressed, DamagedFiles) {
  const std::string text = repeated("a line that repeats\n", 20) + "and an end";
  for (const std::string& whole : {text.substr(0, 50), io::gzip_sample(text), io::zstd_sample(text)}) {
    expect_holds_when_damaged(fuzz::check_compressed, whole);
    expect_holds_when_damaged(fuzz::check_compressed, whole + whole);
  }
}

// A few kilobytes that stand for a gigabyte, and a frame that asks for a window of two: memory stays what a block needs
// (the limit of this test on one allocation is 256 MB).
TEST(HostileCompressed, ALittleThatStandsForALot) {
  const std::string zeros(size_t{64} << 20, '\0');
  expect_holds(fuzz::check_compressed, io::gzip_sample(zeros));
  expect_holds(fuzz::check_compressed, repeated(io::zstd_sample(zeros), 16));
  expect_holds(fuzz::check_compressed, std::string("\x28\xB5\x2F\xFD\x00\xA8\x01\x00\x00", 9));  // window 2^31
}

std::string llama2c(const std::vector<int32_t>& header, size_t floats) {
  std::string file(header.size() * 4, '\0');
  std::memcpy(file.data(), header.data(), file.size());
  return file + std::string(floats * 4, 'x');
}

// width 4, hidden 3, 2 layers, 2 heads, 1 of keys, 5 tokens, context 6.
constexpr size_t kLlama2cFloats = 5 * 4 + 2 * (4 + 16 + 8 + 8 + 16 + 4 + 12 + 12 + 12) + 4 + 6 * 2;

TEST(HostileLlama2c, DamagedFiles) {
  const std::string whole = llama2c({4, 3, 2, 2, 1, 5, 6}, kLlama2cFloats);
  EXPECT_EQ(io::parse_llama2c(std::as_bytes(std::span(whole)), "file").tensors.size(), 2U + 2 * 9);
  expect_holds_when_damaged(fuzz::check_llama2c, whole);
  expect_holds_when_damaged(fuzz::check_llama2c, llama2c({4, 3, 2, 2, 1, -5, 6}, kLlama2cFloats + 20));
}

TEST(HostileLlama2c, Headers) {
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();
  for (size_t at = 0; at < 7; ++at) {
    for (const int32_t value : {kLeast, -1, 0, 3, 7, 1 << 20, kMost}) {
      std::vector<int32_t> header = {4, 3, 2, 2, 1, 5, 6};
      if (header[at] == value) continue;
      header[at] = value;
      const std::string file = llama2c(header, kLlama2cFloats);
      expect_holds(fuzz::check_llama2c, file);
      EXPECT_THROW(io::parse_llama2c(std::as_bytes(std::span(file)), "file"), DataError) << at << " " << value;
    }
  }
  const std::string later = llama2c({0x616b3432, 1, 2, 2, 1, 5, 6}, kLlama2cFloats);
  EXPECT_THROW(io::parse_llama2c(std::as_bytes(std::span(later)), "file"), DataError);
}

TEST(HostileSafetensors, HeaderLengths) {
  for (const uint64_t length : {uint64_t{1} << 63, uint64_t{1} << 32, uint64_t{99'999'999}, uint64_t{0} - 8}) {
    refuses_tensors(number(length) + "{}");
  }
}

TEST(HostileSafetensors, Names) {
  const std::string empty = R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  refuses_tensors(safetensors("{\"a" + empty + ",\"\\u0061" + empty + "}"));  // the same name, written twice
  refuses_tensors(safetensors("{\"\\ud800" + empty + "}"));                   // half a character
  refuses_tensors(safetensors("{\"\xC0\xAF" + empty + "}"));                  // '/' in too long a form
  refuses_tensors(safetensors(std::string("{\"a\0b", 5) + empty + "}"));
  expect_holds(fuzz::check_safetensors, safetensors("{\"\\u0000\\n\\u202e" + empty + "}"));
  expect_holds(fuzz::check_safetensors, safetensors("{\"" + std::string(1 << 20, 'n') + empty + "}"));
  refuses_tensors(safetensors("{\"" + std::string(1 << 20, 'n') + "\":1}"));
  std::string many = "{\"first" + empty;
  for (int i = 0; i < 50'000; ++i) many += ",\"" + std::to_string(i) + empty;
  expect_holds(fuzz::check_safetensors, safetensors(many + "}"));
}

TEST(HostileSafetensors, Numbers) {
  const auto shaped = [](const std::string& shape) {
    return safetensors(R"({"w":{"dtype":"U8","shape":[)" + shape + R"(],"data_offsets":[0,1]}})", "x");
  };
  for (const char* bad : {"NaN", "Infinity", "-0", "1e0", "1e400", "0x1", "01", "+1", "1.", "[]", "1,,1", ","}) {
    refuses_tensors(shaped(bad));
  }
  refuses_tensors(shaped(std::string(1 << 20, '9')));
  refuses_tensors(shaped("1." + std::string(1 << 20, '9')));
  expect_holds(fuzz::check_safetensors, shaped("1" + repeated(",1", 200'000)));
  refuses_tensors(shaped("2" + repeated(",2", 200'000)));
  refuses_tensors(shaped("0" + repeated(",9", 200'000)));
}

std::string npy(const std::string& header, const std::string& data = "", char major = 1) {
  return std::string("\x93NUMPY") + major + '\0' + number(header.size(), major == 1 ? 2 : 4) + header + data;
}

std::string shaped_npy(const std::string& shape, const std::string& data = "", char major = 1) {
  return npy("{'descr': '|u1', 'fortran_order': False, 'shape': " + shape + ", }\n", data, major);
}

void refuses_npy(const std::string& file) {
  expect_holds(fuzz::check_npy, file);
  EXPECT_THROW(io::parse_npy(std::as_bytes(std::span(file)), "file"), DataError) << excerpt(file);
}

TEST(HostileNpy, DamagedFiles) {
  for (const char major : {1, 2, 3}) expect_holds_when_damaged(fuzz::check_npy, shaped_npy("(2, 3)", "abcdef", major));
}

TEST(HostileNpy, AZeroDoesNotExcuseTheOthers) {
  refuses_npy(shaped_npy("(0, 4611686018427387904, 4611686018427387904)"));
  refuses_npy(shaped_npy("(4611686018427387904, 4611686018427387904, 0)"));
  const std::string good = shaped_npy("(0, 4611686018427387904)");
  ASSERT_NO_THROW(io::parse_npy(std::as_bytes(std::span(good)), "file"));
}

TEST(HostileNpy, Headers) {
  refuses_npy(npy("__import__('os').system('touch x')"));
  refuses_npy(npy("{'descr': __import__('os'), 'fortran_order': False, 'shape': (1,)}", "x"));
  refuses_npy(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1,) * 1000}"));
  refuses_npy(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::string(60'000, '(')));
  refuses_npy(npy(std::string(60'000, '{')));
  refuses_npy(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::string(60'000, '9') + ",)}"));
  refuses_npy(npy("{'" + std::string(60'000, 'k') + "': 1}"));
  refuses_npy(std::string("\x93NUMPY\2\0", 8) + number(0xFFFFFFFF, 4) + "{}");
  refuses_npy(shaped_npy("(2" + repeated(", 2", 100'000) + ")", "", 2));
  expect_holds(fuzz::check_npy, shaped_npy("(1" + repeated(", 1", 100'000) + ")", "x", 2));
}

TEST(HostileTokens, DamagedShards) {
  std::string shard(1024, '\0');
  const int32_t fields[] = {20240520, 1, 3};
  std::memcpy(shard.data(), fields, sizeof fields);
  // Most of the header is not looked at: damage where it matters.
  const std::string whole = shard + "\x01\x01\x02\x01\x03\x01";
  for (const char vocab : {0, 1, 2, 3}) {
    for (size_t length = 0; length <= whole.size(); length += length > 16 && length < 1016 ? 50 : 1) {
      expect_holds(fuzz::check_token_file, vocab + whole.substr(0, length), "cut");
    }
    for (const size_t at : {0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 1024, 1029}) {
      for (const char changed : {'\0', '\1', '\x7F', '\x80', '\xFF'}) {
        std::string damaged = whole;
        damaged[at] = changed;
        expect_holds(fuzz::check_token_file, vocab + damaged, "byte " + std::to_string(at));
      }
    }
    expect_holds_when_damaged(fuzz::check_token_file, vocab + shaped_npy("(3,)", "\x01\x02\x03"));
  }
}

TEST(HostileIdx, DamagedFiles) {
  expect_holds_when_damaged(fuzz::check_idx, std::string("\0\0\x08\x03\0\0\0\1\0\0\0\2\0\0\0\3", 16) + "abcdef");
  expect_holds(fuzz::check_idx, std::string("\0\0\x08\x04", 4) + std::string(12, '\xFF') + std::string(4, '\0'));
}

TEST(HostileCifar, LengthsAndLabels) {
  for (const size_t length : {3072, 3073, 3074, 6146, 6148}) {
    for (const char byte : {'\0', '\1', '\x09', '\x0A', '\x63', '\x64', '\xFF'}) {
      expect_holds(fuzz::check_cifar, std::string(1, '\0') + std::string(length, byte));
      expect_holds(fuzz::check_cifar, std::string(1, '\1') + std::string(length, byte));
    }
  }
}

}  // namespace
}  // namespace siamese::hostile

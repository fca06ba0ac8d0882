#include "siamese/io/llama2c.h"

#include <cstring>

#include "tests/support/errors.h"
#include <gtest/gtest.h>

#include "siamese/base/check.h"

namespace siamese::io {
namespace {

// Every float is its own index, so that a tensor tells where it lies.
std::string file_of(const std::vector<int32_t>& header, size_t floats) {
  std::string file(4 * (header.size() + floats), '\0');
  std::memcpy(file.data(), header.data(), 4 * header.size());
  for (size_t i = 0; i < floats; ++i) {
    const auto value = static_cast<float>(i);
    std::memcpy(file.data() + 4 * (header.size() + i), &value, 4);
  }
  return file;
}

float first_of(const TensorView& view) {
  float value = 0;
  std::memcpy(&value, view.data, 4);
  return value;
}

// dim 4, hidden 3, 2 layers, 2 heads, 1 of keys, vocab 5, context 6: in the order in which run.c maps them.
constexpr size_t kFloats = 20 + 2 * (4 + 16 + 8 + 8 + 16 + 4 + 12 + 12 + 12) + 4 + 6 * 2;

TEST(Llama2c, TensorsInTheOrderOfTheFile) {
  const std::string file = file_of({4, 3, 2, 2, 1, 5, 6}, kFloats);
  const auto content = parse_llama2c(std::as_bytes(std::span(file)), "file");
  const std::vector<std::tuple<std::string, std::vector<int64_t>, float>> expected = {
      {"tok_embeddings.weight", {5, 4}, 0},
      {"layers.0.attention_norm.weight", {4}, 20},
      {"layers.1.attention_norm.weight", {4}, 24},
      {"layers.0.attention.wq.weight", {4, 4}, 28},
      {"layers.1.attention.wq.weight", {4, 4}, 44},
      {"layers.0.attention.wk.weight", {2, 4}, 60},
      {"layers.1.attention.wk.weight", {2, 4}, 68},
      {"layers.0.attention.wv.weight", {2, 4}, 76},
      {"layers.1.attention.wv.weight", {2, 4}, 84},
      {"layers.0.attention.wo.weight", {4, 4}, 92},
      {"layers.1.attention.wo.weight", {4, 4}, 108},
      {"layers.0.ffn_norm.weight", {4}, 124},
      {"layers.1.ffn_norm.weight", {4}, 128},
      {"layers.0.feed_forward.w1.weight", {3, 4}, 132},
      {"layers.1.feed_forward.w1.weight", {3, 4}, 144},
      {"layers.0.feed_forward.w2.weight", {4, 3}, 156},
      {"layers.1.feed_forward.w2.weight", {4, 3}, 168},
      {"layers.0.feed_forward.w3.weight", {3, 4}, 180},
      {"layers.1.feed_forward.w3.weight", {3, 4}, 192},
      {"norm.weight", {4}, 204},
  };
  ASSERT_EQ(content.tensors.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto& [name, shape, first] = expected[i];
    EXPECT_EQ(content.tensors[i].name, name);
    EXPECT_EQ(content.tensors[i].shape, shape) << name;
    EXPECT_EQ(first_of(content.tensors[i]), first) << name;
  }
  EXPECT_EQ(content.metadata, (std::map<std::string, std::string>{
                                  {"format", "llama2.c"}, {"heads", "2"}, {"kv_heads", "1"}, {"context", "6"}}));
}

TEST(Llama2c, ANegativeVocabularyHasAHeadOfItsOwn) {
  const std::string file = file_of({4, 3, 2, 2, 1, -5, 6}, kFloats + 20);
  const auto content = parse_llama2c(std::as_bytes(std::span(file)), "file");
  EXPECT_EQ(content.tensors.back().name, "output.weight");
  EXPECT_EQ(first_of(content.tensors.back()), static_cast<float>(kFloats));  // after the tables of cos and sin
}

TEST(Llama2c, OtherFilesAreOneLine) {
  const auto refused = [](const std::string& file, const std::vector<std::string>& words) {
    siamese::testing::expect_error<DataError>([&] { parse_llama2c(std::as_bytes(std::span(file)), "m.bin"); }, words);
  };
  refused("", {"m.bin: expected a header of 28 bytes", "got 0"});
  refused(file_of({4, 3, 2, 2, 1, 5, 6}, kFloats - 1), {"m.bin: expected 908 bytes", "got 904"});
  refused(file_of({4, 3, 2, 2, 1, 5, 6}, kFloats + 1), {"got 912"});
  refused(file_of({4, 3, 2, 3, 1, 5, 6}, kFloats), {"heads of an even width"});
  refused(file_of({-4, 3, 2, 2, 1, 5, 6}, kFloats), {"dim: expected a number from 1", "-4"});
  refused(file_of({0x616b3432, 1, 2, 2, 1, 5, 6}, kFloats), {"with a version"});
  refused("PK\x03\x04" + std::string(60, 'x'), {"m.bin: not a model of llama2.c"});
}

}  // namespace
}  // namespace siamese::io

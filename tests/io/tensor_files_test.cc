#include "siamese/io/tensor_files.h"

#include <list>
#include <memory>

#include "tests/io/support.h"

#include "siamese/io/atomic_file.h"

namespace siamese::io {
namespace {

class TensorFilesTest : public InFolder {
 protected:
  // Bytes of `count` floats that differ from tensor to tensor.
  const std::string& data(char fill, size_t count) { return kept_.emplace_back(4 * count, fill); }
  TensorView tensor(const std::string& name, char fill, int64_t count) {
    const std::string& bytes = data(fill, static_cast<size_t>(count));
    return {name, DType::f32, {count}, reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
  }
  static std::string text(const TensorView* view) {
    return view != nullptr ? std::string(reinterpret_cast<const char*>(view->data), view->bytes) : "missing";
  }
  // An index of these shards, as another program might write it.
  void put_index(const std::string& weight_map) {
    put("model.safetensors.index.json", "{\"weight_map\": " + weight_map + "}");
  }
  void put_shard(const std::string& name, const std::vector<TensorView>& tensors) {
    write_safetensors(folder_ / name, tensors, {{"format", "pt"}});
  }
  void expect_refused(const std::vector<std::string>& parts) {
    expect_error<DataError>([&] { TensorFiles::open(folder_); }, parts);
  }

  std::list<std::string> kept_;
};

TEST_F(TensorFilesTest, OneFileOrAFolderWithIt) {
  write_tensor_files(folder_, {tensor("b", 'b', 3), tensor("a", 'a', 2)}, {{"k", "v"}});
  EXPECT_EQ(names(), std::vector<std::string>{"model.safetensors"});
  for (const auto& path : {folder_, folder_ / "model.safetensors"}) {
    const auto files = TensorFiles::open(path);
    EXPECT_EQ(files.path(), folder_ / "model.safetensors");
    EXPECT_EQ(files.tensors().size(), 2U);
    EXPECT_EQ(text(files.find("a")), std::string(8, 'a'));
    EXPECT_EQ(files.find("c"), nullptr);
    EXPECT_EQ(files.metadata().at("k"), "v");
  }
  EXPECT_TRUE(has_tensor_files(folder_));
}

TEST_F(TensorFilesTest, ShardsAreFilledInOrderOfNamesAndNeverPastTheLimit) {
  write_tensor_files(folder_, {tensor("d", 'd', 1), tensor("c", 'c', 9), tensor("b", 'b', 2), tensor("a", 'a', 2)},
                     {{"k", "v"}}, 16);
  const std::vector<std::string> expected = {"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                             "model-00003-of-00003.safetensors", "model.safetensors.index.json"};
  EXPECT_EQ(names(), expected);
  const auto index = read_file(folder_ / "model.safetensors.index.json");
  EXPECT_NE(index.find("\"total_size\": 56"), std::string::npos) << index;
  const auto map = parse_shard_index(index, "index");
  EXPECT_EQ(map.at("a"), expected[0]);
  EXPECT_EQ(map.at("b"), expected[0]);
  EXPECT_EQ(map.at("c"), expected[1]);  // larger than a shard: one of its own
  EXPECT_EQ(map.at("d"), expected[2]);
  EXPECT_TRUE(has_tensor_files(folder_));
  for (const auto& path : {folder_, folder_ / "model.safetensors.index.json"}) {
    const auto files = TensorFiles::open(path);
    EXPECT_EQ(files.path(), folder_ / "model.safetensors.index.json");
    EXPECT_EQ(files.tensors().size(), 4U);
    EXPECT_EQ(text(files.find("c")), std::string(36, 'c'));
    EXPECT_EQ(text(files.find("d")), std::string(4, 'd'));
    EXPECT_EQ(files.metadata().at("k"), "v");
  }
}

TEST_F(TensorFilesTest, WhatFitsIntoOneShardIsOneFile) {
  write_tensor_files(folder_, {tensor("a", 'a', 2), tensor("b", 'b', 2)}, {}, 16);
  EXPECT_EQ(names(), std::vector<std::string>{"model.safetensors"});
}

TEST_F(TensorFilesTest, TensorsCanBeMadeWhenTheirTurnComes) {
  const std::vector<TensorView> tensors = {tensor("a", 'a', 2),
                                           {"b", DType::f32, {3}, nullptr, 12},
                                           {"b2", DType::f32, {2}, nullptr, 8},
                                           tensor("c", 'c', 1),
                                           {"empty", DType::f32, {0}, nullptr, 0}};
  std::vector<std::string> asked;
  std::weak_ptr<const std::byte> last;
  const TensorMaker make = [&](const TensorView& view) -> std::shared_ptr<const std::byte> {
    EXPECT_TRUE(last.expired()) << "the one before is still held";
    asked.push_back(view.name);
    const auto held = std::make_shared<std::string>(view.bytes, 'm');
    std::shared_ptr<const std::byte> made(held, reinterpret_cast<const std::byte*>(held->data()));
    last = made;
    return made;
  };
  for (const uint64_t limit : {0, 12}) {
    asked.clear();
    write_tensor_files(folder_, tensors, {}, limit, make);
    EXPECT_EQ(asked, (std::vector<std::string>{"b", "b2"}));
    const auto files = TensorFiles::open(limit == 0 ? folder_ : folder_ / "model.safetensors.index.json");
    EXPECT_EQ(text(files.find("b")), std::string(12, 'm'));
    EXPECT_EQ(text(files.find("c")), std::string(4, 'c'));
    EXPECT_EQ(files.find("empty")->shape, std::vector<int64_t>{0});
  }
  EXPECT_TRUE(last.expired());
}

TEST_F(TensorFilesTest, RefusesAFolderWithoutWeights) {
  EXPECT_FALSE(has_tensor_files(folder_));
  EXPECT_FALSE(has_tensor_files(folder_ / "nothing"));
  expect_refused({folder_.string(), "expected a folder with model.safetensors or model.safetensors.index.json"});
  expect_error<DataError>([&] { TensorFiles::open(folder_ / "nothing"); }, {"nothing"});
}

TEST_F(TensorFilesTest, RefusesAnIndexThatDoesNotAgreeWithItsShards) {
  put_shard("x.safetensors", {tensor("a", 'a', 1), tensor("b", 'b', 1)});
  put_shard("y.safetensors", {tensor("c", 'c', 1)});
  put_index(R"({"a": "x.safetensors", "b": "x.safetensors", "c": "y.safetensors"})");
  EXPECT_EQ(TensorFiles::open(folder_).tensors().size(), 3U);
  put_index(R"({"a": "x.safetensors", "c": "y.safetensors"})");
  expect_refused({"x.safetensors holds the tensor 'b', which the index does not name"});
  put_index(R"({"a": "x.safetensors", "b": "y.safetensors", "c": "y.safetensors"})");
  expect_refused({"x.safetensors holds the tensor 'b', which the index places in y.safetensors"});
  put_index(R"({"a": "x.safetensors", "b": "x.safetensors", "c": "y.safetensors", "d": "y.safetensors"})");
  expect_refused({"expected the tensor 'd' in y.safetensors, and it is not there"});
  put_index(R"({"a": "x.safetensors", "b": "x.safetensors", "c": "z.safetensors"})");
  expect_refused({"z.safetensors"});
  put_shard("y.safetensors", {tensor("c", 'c', 1), tensor("a", 'a', 1)});  // a twice
  put_index(R"({"a": "x.safetensors", "b": "x.safetensors", "c": "y.safetensors"})");
  expect_refused({"y.safetensors holds the tensor 'a', which the index places in x.safetensors"});
}

TEST_F(TensorFilesTest, RefusesShardsElsewhereAndWhatIsNoIndex) {
  for (const char* const name : {"../x.safetensors", "/etc/x.safetensors", "sub/x.safetensors", ".safetensors", "x.bin",
                                 "", "a\\\\x.safetensors", "x.safetensors\\u0000.safetensors"}) {
    put_index(std::string("{\"a\": \"") + name + "\"}");
    expect_refused({"model.safetensors.index.json: tensor 'a': expected the name of a .safetensors file beside"});
  }
  const std::string name = "model.safetensors.index.json";
  for (const char* const text : {"{\"weight_map\": {\"a\": 3}}", "{\"weight_map\": []}", "{}", "[]", "3", "", "{",
                                 "{\"weight_map\": {\"a\": \"x.safetensors\", \"a\": \"y.safetensors\"}}",
                                 "{\"weight_map\": {}, \"metadata\": {\"a\": [[[[]]]]}}"}) {
    put(name, text);
    expect_refused({name});
  }
  put(name, std::string("{\"weight_map\": {}}\0", 19));
  expect_refused({name, "NUL"});
  put(name, "{\"weight_map\": {}}");
  EXPECT_TRUE(TensorFiles::open(folder_).tensors().empty());
}

}  // namespace
}  // namespace siamese::io

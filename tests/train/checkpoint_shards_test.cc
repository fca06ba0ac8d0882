#include "siamese/train/checkpoint_shards.h"

#include <mutex>

#include "tests/support/errors.h"
#include "tests/support/thread_group.h"
#include "tests/train/tiny_run.h"

#include <ATen/ATen.h>

#include "siamese/io/tensor_files.h"

namespace siamese::train {
namespace {

std::vector<models::NamedTensor> some_tensors() {
  std::vector<models::NamedTensor> tensors;
  for (const int64_t size : {3, 50, 1, 20, 7, 0, 40}) {
    tensors.push_back({"t" + std::to_string(tensors.size()), at::arange(size, at::kFloat) + size});
  }
  return tensors;
}

TEST(CheckpointShards, AllRanksTogetherWriteEveryTensorOnce) {
  for (const int ranks : {2, 3, 12}) {  // of twelve some have nothing to write
    SCOPED_TRACE(ranks);
    const TemporaryFolder folder("shards");
    std::mutex mutex;
    comm::ThreadGroup::run(ranks, [&](comm::Group& group) {
      const auto files = written_by_all(group, [&] {
        Shards shards(&group);
        shards.add_share("model.safetensors", some_tensors());
        shards.add_own("optim.safetensors", {{"m." + std::to_string(group.rank()), at::ones({2})}});
        return shards.write(folder / ".", {{"format_version", "1"}});
      });
      const std::scoped_lock lock(mutex);
      if (group.leads()) {
        const auto names = write_indices(folder / ".", files);
        EXPECT_EQ(std::count(names.begin(), names.end(),
                             "optim-00002-of-000" + std::string(ranks < 10 ? "0" : "") + std::to_string(ranks) +
                                 ".safetensors"),
                  1);
      }
    });
    const io::TensorFiles weights = io::TensorFiles::open(folder / ".");
    EXPECT_EQ(weights.tensors().size(), some_tensors().size());
    for (const auto& tensor : some_tensors()) {
      ASSERT_NE(weights.find(tensor.name), nullptr);
      EXPECT_TRUE(at::equal(models::as_tensor(*weights.find(tensor.name)), tensor.value)) << tensor.name;
    }
    const io::TensorFiles moments = io::TensorFiles::open(folder / "optim.safetensors.index.json");
    EXPECT_EQ(moments.tensors().size(), static_cast<size_t>(ranks));
  }
}

TEST(CheckpointShards, OneProcessWritesOneFile) {
  const TemporaryFolder folder("shards");
  Shards shards(nullptr);
  shards.add_share("model.safetensors", some_tensors());
  EXPECT_TRUE(write_indices(folder / ".", shards.write(folder / ".", {})).empty());
  EXPECT_TRUE(std::filesystem::exists(folder / "model.safetensors"));
}

TEST(CheckpointShards, WhatWasCopiedDoesNotChange) {
  const TemporaryFolder folder("shards");
  const std::vector<models::NamedTensor> tensors = some_tensors();
  Shards shards(nullptr);
  shards.add_share("model.safetensors", tensors);
  shards.copy();
  for (const auto& tensor : tensors) tensor.value.fill_(-1);
  shards.write(folder / ".", {});
  const io::TensorFiles files = io::TensorFiles::open(folder / "model.safetensors");
  for (const auto& tensor : some_tensors()) {
    EXPECT_TRUE(at::equal(models::as_tensor(*files.find(tensor.name)), tensor.value)) << tensor.name;
  }
}

// Nobody waits for the one that could not write, and all hear of it.
TEST(CheckpointShards, OneThatCannotWriteIsNamed) {
  std::mutex mutex;
  int refused = 0;
  comm::ThreadGroup::run(3, [&](comm::Group& group) {
    try {
      written_by_all(group, [&]() -> std::vector<ShardFile> {
        if (group.rank() == 1) throw SystemError("cannot write 'x': No space left on device");
        return {};
      });
    } catch (const SystemError& error) {
      const std::scoped_lock lock(mutex);
      EXPECT_STREQ(error.what(), "rank 1 on here: cannot write 'x': No space left on device");
      ++refused;
    }
  });
  EXPECT_EQ(refused, 3);
}

}  // namespace
}  // namespace siamese::train

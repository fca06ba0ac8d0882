// The image sources that read files: idx, cifar, folder, latents.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "tests/data/support.h"
#include "tests/io/jpeg_sample.h"
#include <gtest/gtest.h>

#include "siamese/data/batches.h"
#include "siamese/io/png.h"
#include "siamese/io/safetensors.h"

namespace siamese::data {
namespace {

namespace image_files_test {

constexpr SampleShape kGrey{.image = 4, .channels = 1, .classes = 10};
constexpr SampleShape kColour{.image = 32, .channels = 3, .classes = 10};

DataConfig config_of(Source source, const std::string& train) {
  DataConfig config;
  config.source = source;
  config.train = {train};
  return config;
}

std::string open_error(const DataConfig& config, Split split, const SampleShape& shape) {
  try {
    open_batches(config, split, shape, 1)->batch(0, 4);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing thrown";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string idx_bytes(const std::vector<uint8_t>& sizes, const std::string& data) {
  std::string bytes("\x00\x00\x08", 3);
  bytes += static_cast<char>(sizes.size());
  for (const uint8_t size : sizes) bytes += std::string(3, '\0') + static_cast<char>(size);
  return bytes + data;
}

// `count` images of 4 x 4, image i all 10 i, labels i.
void write_idx(const TempFolder& folder, const std::string& stem, uint8_t count, const std::string& before_idx = "-") {
  std::string pixels;
  std::string labels;
  for (int i = 0; i < count; ++i) {
    pixels += std::string(16, static_cast<char>(10 * i));
    labels += static_cast<char>(i);
  }
  folder.write(stem + "-images" + before_idx + "idx3-ubyte", idx_bytes({count, 4, 4}, pixels));
  folder.write(stem + "-labels" + before_idx + "idx1-ubyte", idx_bytes({count}, labels));
}

TEST(IdxSet, FindsBothSidesInOneFolder) {
  for (const std::string before_idx : {"-", "."}) {
    const TempFolder folder;
    write_idx(folder, "train", 7, before_idx);
    write_idx(folder, "t10k", 3, before_idx);
    const DataConfig config = config_of(Source::idx, folder / "");
    const auto train = open_batches(config, Split::train, kGrey, 1);
    EXPECT_EQ(train->samples(), 7);
    const auto test = open_batches(config, Split::test, kGrey, 1);
    const Batch batch = test->batch(0, 3);
    EXPECT_EQ(batch.labels, (std::vector<int64_t>{0, 1, 2}));
    EXPECT_FLOAT_EQ(batch.images[16], static_cast<float>((10 / 255.0 - 0.5) / 0.5));
    EXPECT_EQ(test->describe(), "idx test: 3 images of 4 x 4 pixels, in order");
  }
}

TEST(IdxSet, ValOverridesAndOtherSizesAreResized) {
  const TempFolder folder;
  const TempFolder other;
  write_idx(folder, "train", 7);
  write_idx(folder, "t10k", 3);
  write_idx(other, "t10k", 5);
  DataConfig config = config_of(Source::idx, folder / "");
  config.val = {other / ""};
  const SampleShape shape{.image = 9, .channels = 3, .classes = 10};
  const auto test = open_batches(config, Split::test, shape, 1);
  EXPECT_EQ(test->samples(), 5);
  const Batch batch = test->batch(4, 1);
  for (const float value : batch.images) EXPECT_FLOAT_EQ(value, static_cast<float>((40 / 255.0 - 0.5) / 0.5));
}

TEST(IdxSet, WrongFilesAreNamed) {
  const TempFolder folder;
  const DataConfig config = config_of(Source::idx, folder / "");
  EXPECT_TRUE(has(open_error(config, Split::train, kGrey), "train-images-idx3-ubyte"));
  folder.write("train-images-idx3-ubyte.gz", "x");
  EXPECT_TRUE(has(open_error(config, Split::train, kGrey), "gunzip"));
  write_idx(folder, "train", 7);
  SampleShape few = kGrey;
  few.classes = 6;
  const std::string label = open_error(config, Split::train, few);
  EXPECT_TRUE(has(label, "train-labels-idx1-ubyte: label 6: expected below model.classes 6, got 6")) << label;
  folder.write("train-labels-idx1-ubyte", idx_bytes({6}, std::string(6, '\0')));
  EXPECT_TRUE(has(open_error(config, Split::train, kGrey), "one label for each of 7 images, got [6]"));
  folder.write("train-images-idx3-ubyte", idx_bytes({7, 16}, std::string(112, 'x')));
  EXPECT_TRUE(has(open_error(config, Split::train, kGrey), "train-images-idx3-ubyte: expected images in 3 dimensions"));
  folder.write("train-images-idx3-ubyte", idx_bytes({0, 4, 4}, ""));
  EXPECT_TRUE(has(open_error(config, Split::train, kGrey), "none of them 0"));
}

std::string cifar_record(const std::string& labels, char value) { return labels + std::string(3072, value); }

TEST(CifarSet, TenIsToldByItsNames) {
  const TempFolder folder;
  folder.write("data_batch_1.bin", cifar_record("\x01", 10) + cifar_record("\x02", 20));
  folder.write("data_batch_2.bin", cifar_record("\x03", 30));
  folder.write("test_batch.bin", cifar_record("\x09", 40));
  folder.write("readme.html", "no data");
  const DataConfig config = config_of(Source::cifar, folder / "");
  const auto train = open_batches(config, Split::train, kColour, 1);
  ASSERT_EQ(train->samples(), 3);
  const Batch batch = train->batch(0, 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_FLOAT_EQ(batch.images[i * 3072],
                    static_cast<float>((10.0 * static_cast<double>(batch.labels[i]) / 255 - 0.5) / 0.5));
  }
  EXPECT_EQ(open_batches(config, Split::test, kColour, 1)->batch(0, 1).labels[0], 9);
  EXPECT_EQ(sizes_of(config).classes, 10);
  EXPECT_EQ(class_names(config)[9], "truck");
  SampleShape few = kColour;
  few.classes = 3;
  EXPECT_TRUE(has(open_error(config, Split::train, few), "data_batch_2.bin: record 0: expected a label below"));
}

TEST(CifarSet, HundredIsToldByItsNames) {
  const TempFolder folder;
  folder.write("train.bin", cifar_record("\x01\x62", 10));
  const DataConfig config = config_of(Source::cifar, folder / "");
  SampleShape shape = kColour;
  shape.classes = 100;
  EXPECT_EQ(open_batches(config, Split::train, shape, 1)->batch(0, 1).labels[0], 98);
  EXPECT_EQ(sizes_of(config).classes, 100);
  EXPECT_TRUE(class_names(config).empty());
  EXPECT_TRUE(has(open_error(config, Split::test, shape), "test.bin (CIFAR-100)"));
  const DataConfig nowhere = config_of(Source::cifar, folder / "nothing");
  EXPECT_TRUE(has(open_error(nowhere, Split::train, shape), "expected a folder, got nothing: no '"));
  EXPECT_EQ(sizes_of(nowhere).classes, 0);
  std::filesystem::create_directory(folder / "empty");
  const DataConfig empty = config_of(Source::cifar, folder / "empty");
  EXPECT_TRUE(has(open_error(empty, Split::train, shape), "data.train: expected a folder with data_batch_*.bin"));
  EXPECT_TRUE(has(open_error(empty, Split::train, shape), "in it, got '" + folder / "empty" + "'"));
}

// `count` PNG images of 8 x 8 per class; image i of class k is all 50 k + i.
void write_classes(const TempFolder& folder, const std::string& below, int count) {
  int k = 0;
  for (const std::string name : {"cat", "dog", "owl"}) {
    for (int i = 0; i < count; ++i) {
      folder.write(below + "/" + name + "/" + std::to_string(i) + ".dat",
                   io::encode_png(io::Image(8, 8, 3, static_cast<uint8_t>(50 * k + i))));
    }
    ++k;
  }
}

std::vector<int> shown_values(const Batch& batch) {
  std::vector<int> values;
  for (int64_t r = 0; r < batch.rows; ++r) {
    const float value = batch.images[static_cast<size_t>(r * batch.shape.pixels())];
    values.push_back(static_cast<int>(std::lround((value * 0.5F + 0.5F) * 255)));
  }
  return values;
}

TEST(FolderSet, ClassesAreSubfoldersAndTheTailIsHeldOut) {
  const TempFolder folder;
  write_classes(folder, "set", 10);
  folder.write("set/notes.txt", "beside the classes");
  folder.write("set/cat/thumbs.db", "no image");
  folder.write("set/.cache/x/y", "hidden");
  DataConfig config = config_of(Source::folder, folder / "set");
  config.val_fraction = 0.2;
  const SampleShape shape{.image = 8, .channels = 3, .classes = 3};
  const auto train = open_batches(config, Split::train, shape, 1);
  const auto test = open_batches(config, Split::test, shape, 1);
  EXPECT_EQ(train->samples(), 24);
  EXPECT_EQ(test->samples(), 6);
  EXPECT_EQ(train->describe(),
            "folder train: 24 images of 3 classes (1 other file skipped: neither PNG nor JPEG), shuffled each epoch");
  EXPECT_EQ(shown_values(test->batch(0, 6)), (std::vector<int>{8, 58, 108, 9, 59, 109}));
  EXPECT_EQ(test->batch(0, 4).labels, (std::vector<int64_t>{0, 1, 2, 0}));
  EXPECT_EQ(class_names(config), (std::vector<std::string>{"cat", "dog", "owl"}));
  config.limit = 6;
  const auto few = shown_values(open_batches(config, Split::train, shape, 1)->batch(0, 6));
  EXPECT_EQ(std::set<int>(few.begin(), few.end()), (std::set<int>{0, 50, 100, 1, 51, 101}));
}

TEST(FolderSet, ValMayLackClassesButNotHaveOthers) {
  const TempFolder folder;
  write_classes(folder, "set", 2);
  folder.write("val/owl/a.jpg", io::jpeg_sample(16, 8, 1, std::vector<unsigned char>(128, 77)));
  DataConfig config = config_of(Source::folder, folder / "set");
  config.val = {folder / "val"};
  const SampleShape shape{.image = 8, .channels = 3, .classes = 3};
  EXPECT_EQ(open_batches(config, Split::train, shape, 1)->samples(), 6);
  const Batch batch = open_batches(config, Split::test, shape, 1)->batch(0, 1);
  EXPECT_EQ(batch.labels[0], 2);
  EXPECT_NEAR(shown_values(batch)[0], 77, 1);
  folder.write("val/yak/a.jpg", "x");
  EXPECT_TRUE(has(open_error(config, Split::test, shape), "has a class 'yak' that data.train has not"));
  config.val = {folder / "set"};
  EXPECT_TRUE(has(open_error(config, Split::train, shape), "is also data.train"));
  config.val = {folder / "nowhere"};
  EXPECT_TRUE(has(open_error(config, Split::test, shape), "data.val: expected a folder"));
}

TEST(FolderSet, WhatIsWrongIsNamed) {
  const TempFolder folder;
  write_classes(folder, "set", 1);
  DataConfig config = config_of(Source::folder, folder / "set");
  SampleShape shape{.image = 8, .channels = 3, .classes = 2};
  EXPECT_TRUE(has(open_error(config, Split::train, shape), "set: 3 classes, but model.classes is 2"));
  shape.classes = 4;
  EXPECT_TRUE(has(open_error(config, Split::test, shape), "data.val_fraction: 0.05 of each class"));
  const std::string whole = io::encode_png(io::Image(8, 8, 3, 1));
  folder.write("set/cat/0.dat", whole.substr(0, whole.size() / 2));
  const auto batches = open_batches(config, Split::train, shape, 1);
  EXPECT_TRUE(has(error_of<DataError>([&] { batches->batch(0, 3); }), "set/cat/0.dat: not a readable PNG"));
  folder.write("set/yak/text.png", "not an image");
  EXPECT_TRUE(has(open_error(config, Split::train, shape), "no PNG or JPEG image in folder"));
  std::filesystem::remove(folder / "set/yak/text.png");
  EXPECT_TRUE(has(open_error(config, Split::train, shape), "set/yak'"));
  EXPECT_TRUE(has(open_error(config_of(Source::folder, folder / "none"), Split::train, shape), "data.train: expected"));
}

template <class T>
io::TensorView view_of(const std::string& name, io::DType dtype, std::vector<int64_t> shape,
                       const std::vector<T>& data) {
  return {name, dtype, std::move(shape), reinterpret_cast<const std::byte*>(data.data()), data.size() * sizeof(T)};
}

// `count` latents of 2 x 2 x 2; all of latent i are i + 0.5.
void write_latents(const std::string& path, int64_t count, io::DType dtype, int64_t first_label = 0) {
  std::vector<float> values;
  std::vector<uint16_t> halves;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < count; ++i) {
    for (int k = 0; k < 8; ++k) values.push_back(static_cast<float>(i) + 0.5F);
    labels.push_back((i + first_label) % 5);
  }
  for (const float value : values) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, 4);
    if (dtype == io::DType::bf16) {
      halves.push_back(static_cast<uint16_t>(bits >> 16));
    } else {  // normal numbers only: sign, exponent of bias 15, ten bits
      halves.push_back(
          static_cast<uint16_t>((bits >> 16 & 0x8000U) | ((bits >> 23 & 255U) - 112) << 10 | (bits >> 13 & 1023U)));
    }
  }
  const std::vector<int64_t> shape{count, 2, 2, 2};
  std::vector<io::TensorView> tensors{view_of("labels", io::DType::i64, {count}, labels)};
  tensors.push_back(dtype == io::DType::f32 ? view_of("latents", dtype, shape, values)
                                            : view_of("latents", dtype, shape, halves));
  io::write_safetensors(path, tensors, {});
}

constexpr SampleShape kLatent{.image = 2, .channels = 2, .classes = 5};

TEST(Latents, EveryDtypeAndTheTail) {
  for (const auto dtype : {io::DType::f32, io::DType::f16, io::DType::bf16}) {
    const TempFolder folder;
    write_latents(folder / "a.safetensors", 10, dtype);
    write_latents(folder / "b.safetensors", 10, dtype, 1);
    DataConfig config = config_of(Source::latents, folder / "*.safetensors");
    config.val_fraction = 0.2;
    EXPECT_EQ(open_batches(config, Split::train, kLatent, 1)->samples(), 16);
    const auto test = open_batches(config, Split::test, kLatent, 1);
    ASSERT_EQ(test->samples(), 4);
    const Batch batch = test->batch(0, 4);
    EXPECT_EQ(batch.labels, (std::vector<int64_t>{3, 4, 4, 0}));
    EXPECT_EQ(batch.images[0], 8.5F);
    EXPECT_EQ(batch.images[8], 9.5F);
    EXPECT_EQ(batch.images[31], 9.5F);
  }
}

TEST(Latents, WhatIsWrongIsNamed) {
  const TempFolder folder;
  write_latents(folder / "a.safetensors", 10, io::DType::f32);
  DataConfig config = config_of(Source::latents, folder / "a.safetensors");
  SampleShape other = kLatent;
  other.channels = 4;
  EXPECT_TRUE(has(open_error(config, Split::train, other), "expected F32, F16 or BF16 [N, 4, 2, 2]"));
  other = kLatent;
  other.classes = 4;
  EXPECT_TRUE(
      has(open_error(config, Split::train, other), "a.safetensors: label 4: expected 0 to below model.classes 4"));
  config.val_fraction = 0;
  EXPECT_TRUE(
      has(open_error(config, Split::test, kLatent), "data.val_fraction: 0 of each file leaves no test latents"));
  config.val = config.train;
  EXPECT_TRUE(has(open_error(config, Split::test, kLatent), "is also in data.train"));
  const std::vector<float> one(8, 0.0F);
  const std::vector<io::TensorView> alone{view_of("latents", io::DType::f32, {1, 2, 2, 2}, one)};
  io::write_safetensors(folder / "alone.safetensors", alone, {});
  EXPECT_TRUE(has(open_error(config_of(Source::latents, folder / "alone.safetensors"), Split::train, kLatent),
                  "expected a tensor 'labels', got none"));
  config = config_of(Source::latents, folder / "a.safetensors");
  config.augment.flip = true;
  EXPECT_EQ(open_error(config, Split::train, kLatent),
            "data.augment.flip: expected false for data.source=latents, which are not augmented, got true");
  config.augment = {.mixup = 0.5};
  EXPECT_TRUE(has(open_error(config, Split::train, kLatent), "data.augment.mixup: expected 0 "));
}

// In place, as a program would that has the file open: it stays mapped.
void poke(const std::string& path, size_t at, const std::string& bytes) {
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out)
      .seekp(static_cast<std::streamoff>(at))
      .write(bytes.data(), std::ssize(bytes));
}

TEST(ImageFiles, ALabelThatIsChangedLaterIsNamed) {
  const TempFolder folder;
  write_idx(folder, "train", 7);
  const auto idx = open_batches(config_of(Source::idx, folder / ""), Split::train, kGrey, 1);
  poke(folder / "train-labels-idx1-ubyte", 8 + 3, "\x0A");
  EXPECT_EQ(error_of<DataError>([&] { idx->batch(0, 7); }),
            (folder / "train-labels-idx1-ubyte") + ": label 3: expected below model.classes 10, got 10 at byte 11");

  const std::string record = cifar_record("\x01", 10);
  const auto cifar_file = folder.write("cifar/data_batch_1.bin", record + record);
  const auto cifar = open_batches(config_of(Source::cifar, folder / "cifar"), Split::train, kColour, 1);
  poke(cifar_file, 3073, "\xFF");
  EXPECT_EQ(error_of<DataError>([&] { cifar->batch(0, 2); }),
            cifar_file + ": record 1: expected a label below 10, got 255 at byte 3073");

  const std::string latents_file = folder / "a.safetensors";
  write_latents(latents_file, 10, io::DType::f32);
  DataConfig config = config_of(Source::latents, latents_file);
  config.val_fraction = 0;
  const auto latents = open_batches(config, Split::train, kLatent, 1);
  const size_t labels = std::filesystem::file_size(latents_file) - 10 * (8 * 4 + 8);
  poke(latents_file, labels + 2 * 8, "\x05");
  EXPECT_EQ(error_of<DataError>([&] { latents->batch(0, 10); }),
            latents_file + ": label 2: expected 0 to below model.classes 5, got 5 at byte 16 of 'labels'");
}

}  // namespace image_files_test
}  // namespace
}  // namespace siamese::data

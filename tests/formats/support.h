// What the tests of this room share: a folder, files of tensors, conversion as the command line does it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/formats/samples.h"
#include "tests/support/tensors.h"
#include <gtest/gtest.h>
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/config/fields.h"
#include "siamese/formats/convert.h"
#include "siamese/formats/settings.h"

namespace siamese::formats {

using Tensors = std::vector<models::NamedTensor>;

// An empty folder per test, removed afterwards.
class FormatsTest : public ::testing::Test {
 protected:
  FormatsTest() {
    std::string name = (std::filesystem::temp_directory_path() / "siamese_formats_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    folder_ = name;
  }
  ~FormatsTest() override { std::filesystem::remove_all(folder_); }

  io::TensorFiles stored(const Tensors& tensors, const std::map<std::string, std::string>& metadata = {}) {
    const auto path = folder_ / ("in" + std::to_string(++files_) + ".safetensors");
    models::save_tensors(path, tensors, metadata);
    return io::TensorFiles::open(path);
  }
  io::TensorFiles converted(const io::TensorFiles& files, Layout from, Layout to, const models::ModelConfig& config) {
    const StoredTensors in(files, from);
    const Converted out = convert(in, to, config);
    const auto path = folder_ / ("out" + std::to_string(++files_) + ".safetensors");
    io::write_safetensors(path, out.tensors, metadata_of(to, config), out.make);
    return io::TensorFiles::open(path);
  }

  std::filesystem::path folder_;

 private:
  int files_ = 0;
};

inline void expect_tensors(const io::TensorFiles& files, const Tensors& expected, const std::string& what) {
  EXPECT_EQ(files.tensors().size(), expected.size()) << what;
  for (const auto& tensor : expected) {
    const io::TensorView* const view = files.find(tensor.name);
    ASSERT_NE(view, nullptr) << what << ": " << tensor.name;
    const at::Tensor value = models::as_tensor(*view);
    EXPECT_EQ(value.sizes(), tensor.value.sizes()) << what << ": " << tensor.name;
    EXPECT_EQ(value.scalar_type(), tensor.value.scalar_type()) << what << ": " << tensor.name;
    siamese::testing::expect_same_bits(value, tensor.value, what + ": " + tensor.name);
  }
}

inline config::Value tree_of(const std::map<std::string, std::string>& keys) {
  config::Value tree = config::Value::map();
  for (const auto& [key, value] : keys) tree[key] = config::Value::scalar(value);
  return tree;
}

// What an import comes to.
inline models::ModelConfig inferred(const io::TensorFiles& files, Layout layout,
                                    const std::map<std::string, std::string>& said) {
  models::ModelConfig config;
  config::read(model_settings(StoredTensors(files, layout), tree_of(said)).model, "model", config);
  models::resolve(config, {});
  return config;
}

inline std::string text_of(const models::ModelConfig& config) {
  std::string text;
  for (const auto& [key, value] : config::flatten(config::print(config))) text += key + "=" + value + "\n";
  return text;
}

// `action` must throw an `Expected` whose message has every part.
template <class Expected, class Action>
void expect_refused(Action action, const std::vector<std::string>& parts) {
  try {
    action();
    ADD_FAILURE() << "nothing was thrown; expected a message with '" << parts.front() << "'";
  } catch (const Expected& error) {
    const std::string message = error.what();
    for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
  }
}

inline Tensors without(Tensors tensors, const std::string& name) {
  std::erase_if(tensors, [&](const auto& tensor) { return tensor.name == name; });
  return tensors;
}

inline Tensors with(Tensors tensors, const std::string& name, const at::Tensor& value) {
  tensors.push_back({name, value});
  return tensors;
}

inline at::Tensor value_of(const Tensors& tensors, const std::string& name) {
  for (const auto& tensor : tensors) {
    if (tensor.name == name) return tensor.value;
  }
  throw std::runtime_error("no tensor " + name);
}

}  // namespace siamese::formats

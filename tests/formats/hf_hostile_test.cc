// A config.json of a stranger: whatever its keys hold, it is read or refused by one short line.
#include <algorithm>
#include <ctime>
#include <limits>

#include "fuzz/contract.h"
#include "tests/formats/support.h"
#include <nlohmann/json.hpp>

#include "siamese/formats/hf_config.h"

namespace siamese::formats {
namespace {

using nlohmann::json;

constexpr uint64_t kPastSigned = uint64_t{1} << 63;
const std::vector<json> kNumbers = {0,
                                    1,
                                    -1,
                                    0.5,
                                    1e308,
                                    5e-324,
                                    std::numeric_limits<int64_t>::min(),
                                    std::numeric_limits<int64_t>::max(),
                                    kPastSigned,
                                    std::numeric_limits<uint64_t>::max()};

std::vector<json> values() {
  std::vector<json> all = kNumbers;
  for (const char* text : {"null", "true", "\"\"", "\"a\\nb\\u0000\"", "[]", "[0]", "[[], {}]", "{}",
                           R"({"a": {"b": []}})", R"({"rope_type": "yarn"})",
                           R"({"rope_type": "llama3", "factor": -1})", R"(["sliding_attention", "full_attention"])"}) {
    all.push_back(json::parse(text));
  }
  all.push_back(std::string(5000, 'x'));
  return all;
}

void expect_read_or_refused(Layout layout, const json& object, const std::string& what) {
  try {
    fuzz::reads_or_refuses([&] {
      const config::Value model = read_hf_config(layout, object.dump(), "config.json").model;
      constexpr bool kOneLine = false;  // values of a model section may be quoted as they are
      fuzz::reads_or_refuses(
          [&] {
            models::ModelConfig config;
            config::read(model, "model", config);
            models::resolve(config, {});
          },
          kOneLine);
    });
  } catch (const std::exception& error) {
    ADD_FAILURE() << enum_text(layout) << ": " << what << ": " << error.what();
  }
}

// In far less than a hang takes, by the clock of the processor.
void expect_quick(Layout layout, const json& object, const std::string& what) {
  const std::clock_t begin = std::clock();
  expect_read_or_refused(layout, object, what);
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 10.0) << what;
}

// A good one of each layout, with every kind of key that is read.
std::vector<std::pair<Layout, json>> good_files() {
  std::vector<std::pair<Layout, json>> files;
  for (const Sample& sample : all_samples()) {
    if (!is_hugging_face(sample.layout)) continue;
    json object = json::parse(hf_config_text(sample.layout, sample.config, "float32"));
    if (sample.layout == Layout::hf_mistral || sample.layout == Layout::hf_qwen2) {
      object.update({{"sliding_window", 3}, {"use_sliding_window", true}});
    }
    if (object.contains("rope_theta")) {
      object["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 2.0},         {"original_max_position_embeddings", 4},
                                {"beta_fast", 16},     {"beta_slow", 1},        {"truncate", true},
                                {"mscale", 1.5},       {"mscale_all_dim", 0.5}, {"partial_rotary_factor", 1}};
    }
    files.emplace_back(sample.layout, object);
  }
  return files;
}

TEST(HostileHfConfig, AnyValueOfAnyKey) {
  const auto hostile = values();
  for (const auto& [layout, object] : good_files()) {
    expect_read_or_refused(layout, object, "as it is");
    const json leaves = object.flatten();
    for (const auto& [pointer, kept] : leaves.items()) {
      for (const json& value : hostile) {
        json changed = object;
        changed[json::json_pointer(pointer)] = value;
        expect_read_or_refused(layout, changed, pointer + " = " + value.dump().substr(0, 60));
      }
      json without = leaves;
      without.erase(pointer);
      expect_read_or_refused(layout, without.unflatten(), "without " + pointer);
    }
  }
}

TEST(HostileHfConfig, AnyKey) {
  for (const auto& [layout, object] : good_files()) {
    for (const std::string& key :
         {std::string(), std::string(5000, 'k'), std::string("a\nb\0", 4), std::string("model")}) {
      for (const json& value : {json(1), json::object({{key, key}})}) {
        json changed = object;
        changed[key] = value;
        expect_read_or_refused(layout, changed, "the key " + key.substr(0, 60));
        if (changed.contains("model") && changed["model"].is_object()) changed["model"][key] = value;
        if (object.contains("rope_scaling")) changed["rope_scaling"][key] = value;
        expect_read_or_refused(layout, changed, "within, the key " + key.substr(0, 60));
      }
    }
  }
}

// Sizes are divided by each other while they are read.
TEST(HostileHfConfig, AnyTwoSizes) {
  for (const auto& [layout, object] : good_files()) {
    std::vector<std::string> sizes;
    for (const auto& [key, value] : object.items()) {
      if (value.is_number_integer()) sizes.push_back(key);
    }
    for (const std::string& first : sizes) {
      for (const std::string& second : sizes) {
        for (const json& value : kNumbers) {
          for (const json& other : kNumbers) {
            json changed = object;
            changed[first] = value;
            changed[second] = other;
            expect_read_or_refused(layout, changed,
                                   first + " = " + value.dump() + ", " + second + " = " + other.dump());
          }
        }
      }
    }
  }
}

TEST(HostileHfConfig, SizesPastSignedNumbersAreRefusedByTheirKey) {
  for (const auto& [layout, object] : good_files()) {
    if (layout != Layout::hf_llama) continue;
    for (const char* key : {"hidden_size", "num_attention_heads", "max_position_embeddings"}) {
      json changed = object;
      changed[key] = kPastSigned;
      expect_refused<DataError>([&] { read_hf_config(layout, changed.dump(), "config.json"); },
                                {key, "9223372036854775808"});
    }
  }
}

// The pattern of windows is the shortest that repeats: found in one pass, or this would take minutes.
TEST(HostileHfConfig, AMillionLayers) {
  const auto files = good_files();
  json changed = std::ranges::find(files, Layout::hf_olmo3, &std::pair<Layout, json>::first)->second;
  json types = json::array();
  for (int i = 1; i < 1'000'000; ++i) types.push_back("sliding_attention");
  types.push_back("full_attention");
  changed["num_hidden_layers"] = types.size();
  changed["layer_types"] = types;
  expect_quick(Layout::hf_olmo3, changed, "a million layers");
}

// What is much longer than every key is near none: found out before its letters are compared.
TEST(HostileHfConfig, AKeyOfManyMegabytes) {
  const auto files = good_files();
  json changed = std::ranges::find(files, Layout::hf, &std::pair<Layout, json>::first)->second;
  changed["model"][std::string(size_t{60} << 20, 'k')] = 1;
  expect_quick(Layout::hf, changed, "a key of 60 MB");
}

}  // namespace
}  // namespace siamese::formats

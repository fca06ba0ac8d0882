// What data a result was made from, wherever they lay: the files in order, as one size and one hash for each part.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace siamese::runs {

struct DataKey {
  struct Part {
    int64_t files = 0;
    uint64_t bytes = 0;
    uint64_t hash = 0;
    bool operator==(const Part&) const = default;
  };
  Part train;
  Part val;  // no files: held out of the training files

  bool operator==(const DataKey&) const = default;
  bool empty() const { return train.files == 0 && val.files == 0; }  // made by the engine itself, or not known
};

nlohmann::ordered_json to_json(const DataKey& key);
DataKey read_data_key(const nlohmann::ordered_json& object, const std::string& where);

}  // namespace siamese::runs

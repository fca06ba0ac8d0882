// Tensors of one layout as those of another, tensor by tensor while they are written: nothing is held in memory but the
// one that is being joined or transposed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "siamese/formats/stored.h"
#include "siamese/io/tensor_files.h"
#include "siamese/models/config.h"
#include "siamese/models/weights.h"

namespace siamese::formats {

struct Converted {
  std::vector<io::TensorView> tensors;  // those that are mapped have no data: `make` gives it
  io::TensorMaker make;
  std::vector<std::string> notes;  // what was left out
  int64_t parameters = 0;          // elements of the model
};

// Weights or groups of gradients and moments, which stay behind their prefixes. DataError when `stored` does not fit
// the model, UsageError when a layout has no names for it. `config` must be resolved. Valid as long as the files are.
// `dtype`: what floating-point tensors of the model are rounded to; as they are without it.
Converted convert(const StoredTensors& stored, Layout to, const models::ModelConfig& config,
                  std::optional<io::DType> dtype = std::nullopt);

// Of our own layout: names, shapes and the meaning of rows (docs/checkpoints.md).
inline constexpr const char* kFormatVersion = "1";
// DataError for a file of another version: its weights may fit by name and shape and yet mean something else.
void check_version(const io::TensorFiles& files);

// What a file says of itself: with `model`, the text of the model section, it stands alone.
std::map<std::string, std::string> metadata_of(Layout layout, const models::ModelConfig& config);

// The layout that metadata names; ours when it names none. DataError for an unknown one.
Layout layout_of(const io::TensorFiles& files);

// The layout of files of which nobody said it: by their metadata, by a config.json beside them, by a config.yaml of
// ours or by their names. UsageError, which begins with `flag`, when none of these tells; DataError when the
// config.json is of an architecture that we have not.
Layout told_layout(const io::TensorFiles& files, std::string_view flag);

// models::load_tensors for files in any layout: fills `tensors` (parameters and buffers of a model of `config`).
void load_weights(const io::TensorFiles& files, const models::ModelConfig& config,
                  const std::vector<models::NamedTensor>& tensors);

}  // namespace siamese::formats

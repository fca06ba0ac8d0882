// A small model in every layout: each tensor of ours beside those of theirs that it is made of, written out by hand.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "siamese/formats/layout.h"
#include "siamese/models/config.h"
#include "siamese/models/weights.h"

namespace siamese::formats {

struct Sample {
  std::string name;
  Layout layout = Layout::siamese;
  models::ModelConfig config;               // resolved: what the import has to come to
  std::map<std::string, std::string> said;  // what the tensors do not tell
  std::vector<models::NamedTensor> ours;    // docs/checkpoints.md
  std::vector<models::NamedTensor> theirs;  // the published names
  std::vector<std::string> assumed;         // keys that the layout documents
};

// Odd sizes, grouped key/value heads, tied and untied heads, each kind of attention norm.
std::vector<Sample> all_samples(at::ScalarType dtype = at::kFloat);
Sample sample_named(const std::string& name, at::ScalarType dtype = at::kFloat);

}  // namespace siamese::formats

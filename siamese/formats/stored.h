// The tensors of files in one layout. A file holds weights, or groups of tensors that belong to them, each behind a
// prefix: `grad/NAME` (gradients), `m.NAME` and `v.NAME` (AdamW's moments); beside groups `output`, `loss`, `aux/...`
// and `site/...` (what a probe recorded) may stand, which no layout names.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "siamese/formats/layout.h"
#include "siamese/io/tensor_files.h"

namespace siamese::formats {

class StoredTensors {
 public:
  using Group = std::map<std::string, const io::TensorView*, std::less<>>;  // by the layout's full name

  // Keeps pointers into `files`.
  StoredTensors(const io::TensorFiles& files, Layout layout);

  Layout layout() const { return layout_; }
  const std::string& file() const { return file_; }
  bool holds_weights() const { return groups_.contains(""); }
  const std::map<std::string, Group>& groups() const { return groups_; }        // by prefix; "": weights
  const std::vector<const io::TensorView*>& passed() const { return passed_; }  // to be handed on as they are
  const std::vector<std::string>& left_out() const { return left_out_; }        // fixed tables of old files
  // The name of a tensor as this file would have it.
  std::string spelled(const std::string& prefix, const std::string& name) const;

 private:
  void complete_names(const std::string& prefix, Group& group);

  Layout layout_;
  std::string file_;
  std::map<std::string, Group> groups_;
  std::vector<const io::TensorView*> passed_;
  std::vector<std::string> left_out_;
  std::set<std::string> short_groups_;  // those without the layout's optional prefix
};

// The layout whose names these are, where they all are; nullopt when none has them. Ours is never guessed: its names
// depend on the scheme.
std::optional<Layout> layout_by_names(const io::TensorFiles& files);

}  // namespace siamese::formats

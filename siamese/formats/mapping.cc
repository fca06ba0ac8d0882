#include "siamese/formats/mapping.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/formats/names.h"

namespace siamese::formats {
namespace {

// Rows of each part of a joined tensor.
std::vector<int64_t> part_rows(Form form, const models::ModelConfig& config, int64_t rows) {
  if (form == Form::up_gate) return {rows / 2, rows - rows / 2};
  const int64_t key_rows = config.kv_heads * (config.width / config.heads);
  return {config.width, key_rows, key_rows};
}

std::vector<std::vector<int64_t>> part_shapes(Form form, const models::ModelConfig& config,
                                              const std::vector<int64_t>& ours) {
  switch (form) {
    case Form::qkv:
    case Form::qkv_pairs:
    case Form::up_gate: {
      std::vector<std::vector<int64_t>> shapes;
      for (const int64_t rows : part_rows(form, config, ours.front())) {
        shapes.push_back(ours);
        shapes.back().front() = rows;
      }
      return shapes;
    }
    case Form::transposed:
      return {{ours.rbegin(), ours.rend()}};
    case Form::filters:
      if (ours.size() == 1) return {ours};
      return {{ours.front(), config.channels, config.patch, config.patch}};
    case Form::token:
      return {{1, 1, ours.front()}};
    case Form::table:
      return {{1, ours[0], ours[1]}};
    case Form::same:
      break;
  }
  return {ours};
}

// Rows of heads between the two orders of what RoPE turns together: neighbours, or half a head apart.
at::Tensor apart(const at::Tensor& rows, int64_t head_dim) {
  return rows.view({-1, head_dim / 2, 2, rows.size(-1)}).transpose(1, 2).reshape(rows.sizes());
}
at::Tensor beside(const at::Tensor& rows, int64_t head_dim) {
  return rows.view({-1, 2, head_dim / 2, rows.size(-1)}).transpose(1, 2).reshape(rows.sizes());
}

bool map_by_rule(const Rule& rule, const models::ModelConfig& config, Mapping& mapping) {
  const auto matched = match_name(rule.ours, mapping.ours);
  if (!matched) return false;
  mapping.form = rule.form;
  if (rule.form == Form::qkv_pairs) mapping.head_dim = config.width / config.heads;
  const auto shapes = part_shapes(rule.form, config, mapping.shape);
  for (size_t i = 0; i < shapes.size(); ++i) {
    mapping.parts.push_back({fill_name(rule.theirs[i], *matched), shapes[i]});
  }
  return true;
}

}  // namespace

std::vector<Mapping> mappings(Layout layout, const models::ModelConfig& config,
                              const std::vector<models::NamedTensor>& ours) {
  const LayoutTable& table = table_of(layout);
  std::vector<Mapping> all;
  std::vector<std::string> nameless;
  for (const auto& tensor : ours) {
    Mapping& mapping = all.emplace_back();
    mapping.ours = tensor.name;
    mapping.shape = tensor.value.sizes().vec();
    mapping.optional = tensor.optional;
    if (table.rules.empty()) {
      mapping.parts.push_back({mapping.ours, mapping.shape});
      continue;
    }
    const bool found = std::any_of(table.rules.begin(), table.rules.end(),
                                   [&](const Rule& rule) { return map_by_rule(rule, config, mapping); });
    if (!found) nameless.push_back(tensor.name);
  }
  if (!nameless.empty()) {
    throw UsageError("layout " + std::string(enum_text(layout)) + ": has no name for these tensors of a model with " +
                     "model.residual " + config.residual + ": " + listed_names(nameless));
  }
  return all;
}

std::vector<Mapping> mappings(Layout layout, const models::ModelConfig& config) {
  models::ModelConfig shapes = config;
  if (config.positions == models::Positions::rope) shapes.context = 1;  // the rotary tables of a model are no tensors
  return mappings(layout, config, models::tensor_list(shapes));
}

at::Tensor assemble(const Mapping& mapping, const std::vector<at::Tensor>& parts) {
  SIAMESE_INVARIANT(parts.size() == mapping.parts.size());
  if (mapping.form == Form::qkv_pairs) {
    return at::cat({apart(parts[0], mapping.head_dim), apart(parts[1], mapping.head_dim), parts[2]}, 0);
  }
  if (parts.size() > 1) return at::cat(parts, 0);
  if (mapping.form == Form::transposed && parts.front().dim() == 2) return parts.front().t().contiguous();
  return parts.front().reshape(mapping.shape);
}

at::Tensor part_of(const Mapping& mapping, size_t part, const at::Tensor& ours) {
  SIAMESE_INVARIANT(part < mapping.parts.size());
  if (mapping.form == Form::transposed && ours.dim() == 2) return ours.t().contiguous();
  if (mapping.parts.size() == 1) return ours.reshape(mapping.parts.front().shape);
  int64_t begin = 0;
  for (size_t before = 0; before < part; ++before) begin += mapping.parts[before].shape.front();
  const at::Tensor rows = ours.narrow(0, begin, mapping.parts[part].shape.front());
  return mapping.form == Form::qkv_pairs && part < 2 ? beside(rows, mapping.head_dim) : rows;
}

}  // namespace siamese::formats

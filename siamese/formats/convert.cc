#include "siamese/formats/convert.h"

#include <functional>
#include <memory>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/util/accumulate.h>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/base/path_kind.h"
#include "siamese/config/fields.h"
#include "siamese/config/yaml.h"
#include "siamese/formats/fit.h"
#include "siamese/formats/hf_config.h"
#include "siamese/formats/hf_folder.h"
#include "siamese/formats/mapping.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/llama2c.h"
#include "siamese/io/message.h"
#include "siamese/io/run_dir.h"

namespace siamese::formats {
namespace {

using Views = std::vector<const io::TensorView*>;

// The stored parts of a tensor of ours; empty when it is a buffer that the file lacks.
Views views_of(const StoredTensors::Group& group, const Mapping& mapping) {
  Views views;
  for (const TensorPart& part : mapping.parts) {
    const auto found = group.find(part.name);
    if (found == group.end()) return {};
    views.push_back(found->second);
  }
  return views;
}

at::Tensor ours_of(const Mapping& mapping, const Views& views) {
  std::vector<at::Tensor> parts;
  for (const io::TensorView* view : views) parts.push_back(models::as_tensor(*view));
  return assemble(mapping, parts);
}

bool is_floating(io::DType dtype) {
  return dtype == io::DType::f16 || dtype == io::DType::bf16 || dtype == io::DType::f32 || dtype == io::DType::f64;
}

size_t bytes_of(const io::TensorView& view) {
  size_t bytes = io::dtype_size(view.dtype);
  for (const int64_t dimension : view.shape) bytes *= static_cast<size_t>(dimension);
  return bytes;
}

}  // namespace

Converted convert(const StoredTensors& stored, Layout to, const models::ModelConfig& config,
                  std::optional<io::DType> dtype) {
  const auto in = std::make_shared<const std::vector<Mapping>>(mappings(stored.layout(), config));
  const auto out = std::make_shared<const std::vector<Mapping>>(mappings(to, config));
  Converted converted;
  converted.notes = check_fit(stored, *in);
  for (const Mapping& mapping : *in) {
    if (!mapping.optional) converted.parameters += c10::multiply_integers(mapping.shape);
  }
  using Makers = std::map<std::string, std::function<at::Tensor()>>;
  const auto makers = std::make_shared<Makers>();
  for (const auto& [prefix, group] : stored.groups()) {
    for (size_t i = 0; i < in->size(); ++i) {
      const Views views = views_of(group, (*in)[i]);
      if (views.empty()) continue;
      for (size_t part = 0; part < (*out)[i].parts.size(); ++part) {
        const TensorPart& theirs = (*out)[i].parts[part];
        io::TensorView view{prefix + theirs.name, views.front()->dtype, theirs.shape};
        if (dtype && is_floating(view.dtype)) view.dtype = *dtype;
        view.bytes = bytes_of(view);
        makers->emplace(view.name, [in, out, i, part, views, kept = view.dtype] {
          return part_of((*out)[i], part, ours_of((*in)[i], views)).to(models::tensor_type(kept)).contiguous();
        });
        converted.tensors.push_back(std::move(view));
      }
    }
  }
  for (const io::TensorView* view : stored.passed()) converted.tensors.push_back(*view);
  converted.make = [makers](const io::TensorView& view) -> std::shared_ptr<const std::byte> {
    const auto tensor = std::make_shared<const at::Tensor>(makers->at(view.name)());
    SIAMESE_INVARIANT(tensor->is_contiguous() && tensor->nbytes() == view.bytes);
    return {tensor, static_cast<const std::byte*>(tensor->const_data_ptr())};
  };
  return converted;
}

std::map<std::string, std::string> metadata_of(Layout layout, const models::ModelConfig& config) {
  std::map<std::string, std::string> metadata = {{"residual", config.residual},
                                                 {"model", config::to_yaml(config::print(config))}};
  if (layout == Layout::siamese) {
    metadata["format"] = "siamese";
    metadata["format_version"] = kFormatVersion;
  } else {
    metadata["format"] = "pt";  // transformers reads no other
    metadata["layout"] = std::string(enum_text(layout));
  }
  return metadata;
}

void check_version(const io::TensorFiles& files) {
  const auto found = files.metadata().find("format_version");
  if (found == files.metadata().end() || found->second == kFormatVersion) return;
  throw DataError(files.path().string() + ": format_version: expected " + kFormatVersion + ", got " +
                  io::in_quotes(found->second) + ": written by another version of siamese");
}

Layout layout_of(const io::TensorFiles& files) {
  const auto format = files.metadata().find("format");
  if (format != files.metadata().end() && format->second == io::kLlama2cFormat) return Layout::meta_llama;
  const auto named = files.metadata().find("layout");
  if (named == files.metadata().end()) return Layout::siamese;
  const auto layout = enum_from_text<Layout>(named->second);
  if (!layout) throw DataError(files.path().string() + ": metadata: unknown layout '" + named->second + "'");
  return *layout;
}

namespace {

// Whether what stands beside the weights is a config of a run of ours: OLMo writes a config.yaml, too.
bool is_our_config(const std::filesystem::path& path) {
  if (!is_file(path)) return false;
  try {
    const config::Value tree = config::parse_yaml(io::read_file(path), path.string());
    const config::Value* const model = tree.find("model");
    return model != nullptr && model->find("residual") != nullptr;
  } catch (const Error&) {
    return false;  // whoever reads it says what is wrong
  }
}

}  // namespace

Layout told_layout(const io::TensorFiles& files, std::string_view flag) {
  const auto& metadata = files.metadata();
  const auto format = metadata.find("format");
  const bool ours = format != metadata.end() && (format->second == "siamese" || format->second == io::kLlama2cFormat);
  if (ours || metadata.contains("layout")) return layout_of(files);
  const std::filesystem::path folder = files.path().parent_path();
  if (is_file(folder / kHfConfigFile)) {
    const std::string file = (folder / kHfConfigFile).string();
    return layout_of_hf_config(io::read_file(file), file);
  }
  if (is_our_config(folder / io::kConfigFile)) return Layout::siamese;
  if (const auto layout = layout_by_names(files)) return *layout;
  throw UsageError(std::string(flag) + ": expected a layout, one of " + join(enum_choices<Layout>()) + ": " +
                   files.path().string() + " does not tell it, and there is no " + std::string(kHfConfigFile) +
                   " beside it");
}

void load_weights(const io::TensorFiles& files, const models::ModelConfig& config,
                  const std::vector<models::NamedTensor>& tensors) {
  const Layout layout = layout_of(files);
  if (layout == Layout::siamese) return models::load_tensors(files, tensors);
  const StoredTensors stored(files, layout);
  if (!stored.holds_weights()) throw DataError(stored.file() + ": expected weights, got gradients or moments");
  const std::vector<Mapping> all = mappings(layout, config, tensors);
  check_fit(stored, all);
  const c10::NoGradGuard no_grad;
  for (size_t i = 0; i < all.size(); ++i) {
    const Views views = views_of(stored.groups().at(""), all[i]);
    if (!views.empty()) tensors[i].value.copy_(ours_of(all[i], views));
  }
}

}  // namespace siamese::formats

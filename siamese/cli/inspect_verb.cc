#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/base/utf8.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/table.h"
#include "siamese/cli/verbs.h"
#include "siamese/config/fields.h"
#include "siamese/eval/tensor_statistics.h"
#include "siamese/formats/mapping.h"
#include "siamese/formats/settings.h"
#include "siamese/io/run_dir.h"
#include "siamese/io/strict_json.h"
#include "siamese/io/tensor_files.h"
#include "siamese/models/weights.h"
#include "siamese/train/checkpoint.h"

namespace siamese::cli {
namespace {

namespace fs = std::filesystem;

struct InspectArguments {
  std::string path;
  bool no_statistics = false;
  bool json = false;
};

// The model that a file says it is of, or a config.yaml of ours beside it; nullopt when neither does.
std::optional<models::ModelConfig> model_of(const io::TensorFiles& files) {
  models::ModelConfig config;
  try {
    const config::Value said = formats::said_by_metadata(files);
    if (said.find("width") != nullptr) {
      config::read(said, "model", config);
      models::resolve(config, {});
      return config;
    }
    const fs::path beside = files.path().parent_path() / io::kConfigFile;
    if (is_file(beside)) return train::read_config_file(beside.string()).model;
  } catch (const Error&) {  // somebody else's, or broken: what the tensors are can be shown all the same
  }
  return std::nullopt;
}

struct Inspected {
  explicit Inspected(const fs::path& path) : files(io::TensorFiles::open(weights_path(path))) {
    const auto text_of = [this](const char* key) {
      const auto found = files.metadata().find(key);
      return found != files.metadata().end() ? found->second : std::string();
    };
    const auto model = model_of(files);
    scheme = text_of("residual").empty() && model ? model->residual : text_of("residual");
    layout = text_of("layout").empty() && text_of("format") == "siamese" ? "siamese" : text_of("layout");
    const auto guess = layout.empty() ? formats::layout_by_names(files) : std::nullopt;
    if (guess) {
      layout = enum_text(*guess);
      if (scheme.empty()) scheme = formats::scheme_of(*guess);
    }
    std::set<std::string> buffers;
    if (model && enum_from_text<formats::Layout>(layout)) {
      for (const auto& mapping : formats::mappings(*enum_from_text<formats::Layout>(layout), *model)) {
        if (mapping.optional) buffers.insert(mapping.parts.front().name);
      }
    }
    for (const auto& view : files.tensors()) {
      const size_t elements = view.bytes / io::dtype_size(view.dtype);
      bytes += view.bytes;
      for (const char* const prefix : {"grad/", "m.", "v.", "site/", "aux/"}) of_a_run |= view.name.starts_with(prefix);
      if (!buffers.contains(view.name)) parameters += elements;
    }
  }

  io::TensorFiles files;
  std::string scheme;
  std::string layout;
  bool of_a_run = false;  // gradients, moments, activations: not parameters
  size_t parameters = 0;  // elements, without those of fixed tables where the model is known
  uint64_t bytes = 0;
};

std::string to_json(const Inspected& inspected, bool statistics) {
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
  for (const auto& view : inspected.files.tensors()) {
    nlohmann::ordered_json tensor = {
        {"name", view.name}, {"dtype", std::string(enum_text(view.dtype))}, {"shape", view.shape}};
    if (statistics) {
      const auto numbers = eval::tensor_statistics(models::as_tensor(view));
      const auto number = [&](double value) { return numbers.finite > 0 ? nlohmann::json(value) : nlohmann::json(); };
      tensor["mean"] = number(numbers.mean);
      tensor["std"] = number(numbers.std);
      tensor["min"] = number(numbers.least);
      tensor["max"] = number(numbers.largest);
      tensor["not_finite"] = numbers.not_finite;
    }
    tensors.push_back(std::move(tensor));
  }
  const nlohmann::ordered_json json = {{"schema", 1},
                                       {"file", inspected.files.path().string()},
                                       {"layout", inspected.layout},
                                       {"residual", inspected.scheme},
                                       {"metadata", inspected.files.metadata()},
                                       {inspected.of_a_run ? "elements" : "parameters", inspected.parameters},
                                       {"bytes", inspected.bytes},
                                       {"tensors", tensors}};
  return io::json_text(json) + "\n";
}

// In the order of names, their numbers as numbers: block 2 before block 10.
std::vector<io::TensorView> by_name(std::vector<io::TensorView> tensors) {
  const auto key = [](const std::string& name) {
    std::string padded, digits;
    const auto flush = [&] {
      if (!digits.empty()) padded += std::string(std::max<size_t>(digits.size(), 12) - digits.size(), '0') + digits;
      digits.clear();
    };
    for (const char c : name) {
      if (c >= '0' && c <= '9') {
        digits += c;
      } else {
        flush();
        padded += c;
      }
    }
    flush();
    return padded;
  };
  std::sort(tensors.begin(), tensors.end(), [&](const auto& a, const auto& b) { return key(a.name) < key(b.name); });
  return tensors;
}

void print_text(const Inspected& inspected, bool statistics) {
  std::printf("%s\n", printable(inspected.files.path().string()).c_str());
  const auto said = [](const std::string& text) { return text.empty() ? "not said" : printable(text); };
  std::printf("scheme      %s\n", said(inspected.scheme).c_str());
  std::printf("layout      %s\n", said(inspected.layout).c_str());
  std::printf("%s  %zu in %zu tensors, %.6g MB\n\n", inspected.of_a_run ? "elements  " : "parameters",
              inspected.parameters, inspected.files.tensors().size(), static_cast<double>(inspected.bytes) / 1e6);
  std::vector<std::vector<std::string>> rows = {{"tensor", "dtype", "shape"}};
  if (statistics) rows[0].insert(rows[0].end(), {"mean", "std", "min", "max", "not finite"});
  for (const auto& view : by_name(inspected.files.tensors())) {
    rows.push_back({view.name, std::string(enum_text(view.dtype)), fmt::format("[{}]", fmt::join(view.shape, ", "))});
    if (!statistics) continue;
    const auto numbers = eval::tensor_statistics(models::as_tensor(view));
    for (const double number : {numbers.mean, numbers.std, numbers.least, numbers.largest}) {
      rows.back().push_back(numbers.finite > 0 ? fmt::format("{:.4g}", number) : "");
    }
    rows.back().push_back(numbers.not_finite > 0 ? std::to_string(numbers.not_finite) : "");
  }
  std::printf("%s", text_table(rows).c_str());
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto* const verb = app.add_subcommand("inspect", "Tensors, shapes, types and statistics of a file of weights");
  const auto arguments = std::make_shared<InspectArguments>();
  verb->add_option("FILE", arguments->path,
                   "A safetensors file, an index of shards, a checkpoint, a run directory (its latest) or any folder "
                   "with model.safetensors")
      ->required();
  verb->add_flag("--no-statistics", arguments->no_statistics, "Names and shapes only: reads the headers alone");
  verb->add_flag("--json", arguments->json, "One JSON object");
  verb->footer("Example: siamese inspect runs/x/step500/optim.safetensors");
  verb->callback([arguments] {
    const Inspected inspected(arguments->path);
    if (arguments->json) {
      std::fputs(to_json(inspected, !arguments->no_statistics).c_str(), stdout);
    } else {
      print_text(inspected, !arguments->no_statistics);
    }
  });
}

}  // namespace siamese::cli

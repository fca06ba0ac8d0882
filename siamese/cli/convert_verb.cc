#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/base/path_kind.h"
#include "siamese/base/utf8.h"
#include "siamese/cli/byte_size.h"
#include "siamese/cli/convert_config.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/verbs.h"
#include "siamese/formats/convert.h"
#include "siamese/formats/hf_folder.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/run_dir.h"
#include "siamese/io/strict_json.h"

namespace siamese::cli {
namespace {

namespace fs = std::filesystem;
using formats::Layout;

struct ConvertArguments {
  std::string source;
  std::string from;
  std::string to;
  std::string out;
  std::string config;
  std::string shard_size;
  std::string dtype;
  bool overwrite = false;
  bool json = false;
  std::vector<std::string> overrides;

  bool one_file() const { return out.ends_with(io::kSafetensorsEnding); }
};

void check_stored_layout(const io::TensorFiles& files, Layout from) {
  const auto& metadata = files.metadata();
  const auto format = metadata.find("format");
  const bool told = metadata.contains("layout") || (format != metadata.end() && format->second == "siamese");
  const Layout stored = formats::layout_of(files);
  if (told && stored != from) {
    throw UsageError(fmt::format("--from: {} says that its layout is {}, got {}", files.path().string(),
                                 enum_text(stored), enum_text(from)));
  }
}

bool is_written_by_us(const std::string& name) {
  return name == io::kConfigFile || name == io::kModelFile || name == io::kModelIndexFile ||
         formats::is_hf_file(name) || (name.starts_with("model-") && name.ends_with(io::kSafetensorsEnding));
}

// What stands at the output may be replaced only by --overwrite, and only when it is what convert writes. Where nothing
// stands, nothing may come meanwhile.
io::Standing check_output(const ConvertArguments& arguments, const io::TensorFiles& files) {
  const fs::path out(arguments.out);
  std::error_code none;
  const auto is_out = [&](const fs::path& path) { return fs::equivalent(path, out, none); };
  const fs::path folder = fs::absolute(files.path()).parent_path();
  if (is_out(files.path()) || is_out(folder) || std::any_of(files.files().begin(), files.files().end(), is_out)) {
    throw UsageError(arguments.out + ": is the source itself; choose another --out");
  }
  if (!is_taken(out) || (is_folder(out) && folder_entries(out).empty())) {
    if (is_folder(out) && arguments.one_file()) throw UsageError(arguments.out + ": is a folder, not a file");
    return io::Standing::refused;
  }
  if (is_folder(out) == arguments.one_file()) {
    throw UsageError(arguments.out +
                     (arguments.one_file() ? ": is a folder, not a file" : ": is a file, not a folder"));
  }
  for (const fs::path& entry : is_folder(out) ? folder_entries(out) : std::vector<fs::path>()) {
    const std::string name = entry.filename().string();
    if (is_written_by_us(name) && fs::is_regular_file(fs::symlink_status(entry, none))) continue;
    throw UsageError(
        fmt::format("{}: exists already and holds {}: --overwrite replaces only a folder of weights and "
                    "their config; choose another path",
                    arguments.out, name));
  }
  if (is_folder(out) && !io::has_tensor_files(out)) {
    throw UsageError(arguments.out + ": exists already and holds no weights: --overwrite replaces only a folder of " +
                     "weights and their config; choose another path");
  }
  if (!arguments.overwrite) throw UsageError(arguments.out + ": exists already; --overwrite replaces it");
  return io::Standing::replaced;
}

// What was done, for the two ways of telling it.
struct ConvertReport {
  const ConvertArguments& arguments;
  const formats::StoredTensors& stored;
  const ConvertConfig& described;
  const formats::Converted& converted;
  size_t tensors_before = 0;

  std::vector<std::string> groups() const {
    std::vector<std::string> names;
    for (const auto& [prefix, group] : stored.groups()) {
      if (!prefix.empty()) names.push_back(prefix);
    }
    return names;
  }
  std::map<std::string, size_t> dtypes() const {
    std::map<std::string, size_t> counts;
    for (const auto& tensor : converted.tensors) ++counts[std::string(enum_text(tensor.dtype))];
    return counts;
  }
  std::vector<std::string> notes() const {
    std::vector<std::string> all = described.notes;
    all.insert(all.end(), converted.notes.begin(), converted.notes.end());
    return all;
  }
};

std::string to_json(const ConvertReport& report) {
  nlohmann::ordered_json assumed = nlohmann::json::array();
  for (const auto& [key, value, why] : report.described.assumed) {
    assumed.push_back({{"key", key}, {"value", value}, {"why", why}});
  }
  const models::ModelConfig& model = report.described.config.model;
  const nlohmann::ordered_json json = {{"schema", 1},
                                       {"source", report.stored.file()},
                                       {"from", std::string(enum_text(report.stored.layout()))},
                                       {"out", report.arguments.out},
                                       {"to", report.arguments.to},
                                       {"family", std::string(enum_text(model.family))},
                                       {"residual", model.residual},
                                       {"parameters", report.converted.parameters},
                                       {"tensors_before", report.tensors_before},
                                       {"tensors_after", report.converted.tensors.size()},
                                       {"dtypes", report.dtypes()},
                                       {"groups", report.groups()},
                                       {"assumed", assumed},
                                       {"notes", report.notes()}};
  return io::json_text(json, 2) + "\n";
}

std::string to_text(const ConvertReport& report) {
  const models::ModelConfig& model = report.described.config.model;
  std::vector<std::string> dtypes;
  for (const auto& [name, count] : report.dtypes()) dtypes.push_back(fmt::format("{} {}", count, name));
  std::string text = fmt::format("{} ({}) -> {} ({})\n", report.stored.file(), enum_text(report.stored.layout()),
                                 report.arguments.out, report.arguments.to);
  text +=
      fmt::format("{}, family {}: {} parameters, {} tensors -> {}: {}\n", model.residual, enum_text(model.family),
                  report.converted.parameters, report.tensors_before, report.converted.tensors.size(), join(dtypes));
  if (!report.groups().empty()) text += fmt::format("groups: {}\n", printable(join(report.groups())));
  for (const auto& [key, value, why] : report.described.assumed) {
    text += printable(fmt::format("{} {}: {}", key, value, why)) + "\n";
  }
  for (const auto& note : report.notes()) text += printable(note) + "\n";
  return text;
}

// transformers' name of the dtype that most of the weights have.
std::string_view torch_dtype(const std::vector<io::TensorView>& tensors) {
  std::map<io::DType, size_t> bytes;
  for (const auto& tensor : tensors) bytes[tensor.dtype] += tensor.bytes;
  const auto most = std::max_element(bytes.begin(), bytes.end(), [](auto& a, auto& b) { return a.second < b.second; });
  switch (most != bytes.end() ? most->first : io::DType::f32) {
    case io::DType::f16:
      return "float16";
    case io::DType::bf16:
      return "bfloat16";
    case io::DType::f64:
      return "float64";
    default:
      return "float32";
  }
}

void write_converted(const ConvertArguments& arguments, const io::TensorFiles& files, Layout to,
                     const train::RunConfig& config, const formats::Converted& converted, uint64_t shard_bytes) {
  const fs::path out(arguments.out);
  io::make_directory(fs::absolute(out / "..").lexically_normal());
  const auto metadata = formats::metadata_of(to, config.model);
  if (arguments.one_file()) {
    return io::write_safetensors(out, converted.tensors, metadata, converted.make, check_output(arguments, files));
  }
  io::AtomicDirectory folder(out);
  io::write_file_atomic(folder.path() / io::kConfigFile, train::config_text(config));
  if (formats::is_hugging_face(to)) {
    for (const auto& [name, content] : formats::hf_files(to, config.model, torch_dtype(converted.tensors))) {
      io::write_file_atomic(folder.path() / name, content);
    }
  }
  for (const auto& [name, content] : formats::tokenizer_files(to, files.path().parent_path())) {
    io::write_file_atomic(folder.path() / name, content);
  }
  io::write_tensor_files(folder.path(), converted.tensors, metadata, shard_bytes, converted.make);
  folder.commit(check_output(arguments, files));  // once more: it took a while
}

// safetensors' type of transformers' name; none: as it is stored.
std::optional<io::DType> asked_dtype(const std::string& name) {
  if (name.empty()) return std::nullopt;
  if (name == "float32") return io::DType::f32;
  return name == "bfloat16" ? io::DType::bf16 : io::DType::f16;
}

void convert_run(const ConvertArguments& arguments) {
  if (arguments.out.empty()) throw UsageError("--out: expected a folder or a .safetensors file to make, got nothing");
  const Layout to = formats::layout_from_text("--to", arguments.to);
  const uint64_t shard_bytes = arguments.shard_size.empty() ? 0 : byte_size("--shard-size", arguments.shard_size);
  if (shard_bytes > 0 && arguments.one_file()) {
    throw UsageError("--shard-size: shards need a folder as --out, got the file " + arguments.out);
  }
  const io::TensorFiles files = io::TensorFiles::open(weights_path(arguments.source));
  formats::check_version(files);
  check_output(arguments, files);
  const Layout from = arguments.from.empty() ? formats::told_layout(files, "--from")
                                             : formats::layout_from_text("--from", arguments.from);
  check_stored_layout(files, from);
  const formats::StoredTensors stored(files, from);
  if (!stored.holds_weights() && !arguments.one_file()) {
    throw UsageError(arguments.out + ": gradients and moments need a file as --out: a name ending in " +
                     std::string(io::kSafetensorsEnding));
  }
  const ConvertConfig described = convert_config(files, stored, to, arguments.config, arguments.overrides);
  if (stored.holds_weights()) train::check_warmed_up(files.path().parent_path());
  formats::check_export(to, described.config.model);
  formats::Converted converted = formats::convert(stored, to, described.config.model, asked_dtype(arguments.dtype));
  for (const Layout layout : std::set{from, to}) {
    for (const auto& note : formats::differences(layout, described.config.model))
      converted.notes.push_back("note: " + note);
  }
  if (is_there(files.path().parent_path() / io::kAverageFile)) {
    converted.notes.push_back("note: the trained weights; the averaged ones are " +
                              (files.path().parent_path() / io::kAverageFile).string());
  }
  write_converted(arguments, files, to, described.config, converted, shard_bytes);
  const ConvertReport report{arguments, stored, described, converted, files.tensors().size()};
  std::fputs((arguments.json ? to_json(report) : to_text(report)).c_str(), stdout);
}

}  // namespace

void add_convert(CLI::App& app) {
  auto* const verb = app.add_subcommand("convert", "Rename and reshape weights between our layout and published ones");
  const auto arguments = std::make_shared<ConvertArguments>();
  verb->add_option(
          "IN", arguments->source,
          "A safetensors file, an index of shards, a checkpoint, run directory or Hugging Face folder; llama2.c's "
          ".bin")
      ->required();
  const std::string layouts = join(enum_choices<Layout>());
  verb->add_option("--from", arguments->from,
                   "The layout of IN, where IN or its config.json does not tell it: " + layouts);
  verb->add_option("--to", arguments->to, "The layout to write: one of the same")->required();
  verb->add_option("-o,--out", arguments->out, "A folder to make, or one file: a name ending in .safetensors")
      ->required();
  verb->add_option("--config", arguments->config,
                   "What the tensors do not tell: a YAML file, a checkpoint or run directory, a config.json");
  verb->add_option("--shard-size", arguments->shard_size,
                   "Split the weights into files of at most so much: 5GB, 800MB");
  verb->add_option("--dtype", arguments->dtype, "Round the numbers to float32, bfloat16 or float16; else they stay")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}));
  verb->add_flag("--overwrite", arguments->overwrite, "Replace an earlier result that stands there");
  verb->add_flag("--json", arguments->json, "One JSON object");
  verb->add_option("OVERRIDES", arguments->overrides, "key=value, for any key of a config");
  verb->footer("Example: siamese convert TinyLlama-1.1B --to siamese -o runs/llama");
  verb->callback([arguments] { convert_run(*arguments); });
}

}  // namespace siamese::cli

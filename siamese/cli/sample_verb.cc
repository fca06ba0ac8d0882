#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/verbs.h"
#include "siamese/cli/version.h"
#include "siamese/eval/samples.h"
#include "siamese/io/png.h"
#include "siamese/io/result_file.h"
#include "siamese/models/weights.h"
#include "siamese/train/checkpoint.h"
#include "siamese/train/device.h"

namespace siamese::cli {
namespace {

namespace fs = std::filesystem;

struct SampleArguments {
  std::string run;
  std::vector<std::string> overrides;
  int64_t count = 64;
  std::string grid;
  std::string tensors;
  std::string npz;

  std::vector<std::string> files() const {
    std::vector<std::string> all;
    for (const std::string& path : {grid, tensors, npz}) {
      if (!path.empty()) all.push_back(path);
    }
    return all;
  }
  std::vector<int64_t> labels;
  eval::SamplerOptions options{.kind = eval::SamplerKind::ddim, .steps = 50};
  std::string sampler = "ddim";
  bool trained = false;
};

std::vector<int64_t> asked_labels(const SampleArguments& arguments, const train::RunConfig& config) {
  const int64_t classes = config.model.classes;
  const int64_t of_data = data::sizes_of(config.data).classes;  // a model may have room for more
  for (const int64_t label : arguments.labels) {
    if (label < 0 || label >= classes) {
      throw UsageError(fmt::format("--labels: expected classes from 0 to {}, got {}", classes - 1, label));
    }
  }
  return arguments.labels.empty() ? eval::all_classes(of_data > 0 ? of_data : classes) : arguments.labels;
}

// Before anything is drawn.
void check_results(const SampleArguments& arguments) {
  const auto check = [](const std::string& path, std::string_view what, const io::IsResult& is_result) {
    if (!path.empty()) io::check_result_file(path, what, is_result);
  };
  check(arguments.grid, "picture (PNG)", io::holds_text("\x89PNG", 4));
  check(arguments.tensors, "file of samples", io::holds_tensor("samples"));
  check(arguments.npz, "npz file of images", io::holds_text("arr_0.npy", 64));
}

void save(const SampleArguments& arguments, const at::Tensor& images, const std::vector<int64_t>& labels) {
  if (!arguments.grid.empty()) io::write_png(arguments.grid, eval::image_grid(images));
  if (!arguments.npz.empty()) eval::write_image_npz(arguments.npz, images);
  if (arguments.tensors.empty()) return;
  at::Tensor asked = at::empty({images.size(0)}, at::kLong);
  for (int64_t i = 0; i < asked.size(0); ++i) {
    asked.mutable_data_ptr<int64_t>()[i] = labels[static_cast<size_t>(i) % labels.size()];
  }
  models::save_tensors(arguments.tensors, {{"samples", images}, {"labels", asked}}, {{"format", "siamese"}});
}

void sample_run(SampleArguments& arguments) {
  const std::vector<std::string> files = arguments.files();
  if (files.empty()) {
    throw UsageError("sample: expected --grid PICTURE.png, --out TENSORS.safetensors or --npz IMAGES.npz, got none");
  }
  const auto kind = enum_from_text<eval::SamplerKind>(arguments.sampler);
  if (!kind) throw UsageError("--sampler: expected ddpm or ddim, got '" + arguments.sampler + "'");
  if (kind == eval::SamplerKind::ddpm && arguments.options.eta != 0) throw UsageError("--eta: is for --sampler ddim");
  arguments.options.kind = *kind;
  for (const std::string& path : files) {
    const fs::path folder = fs::absolute(path).parent_path();
    if (!is_folder(folder)) throw UsageError(path + ": its folder " + folder.string() + " is not there");
  }
  if (!arguments.grid.empty() && fs::path(arguments.grid).extension() != ".png") {
    throw UsageError("--grid: expected a file that ends in .png, got '" + arguments.grid + "'");
  }
  for (size_t i = 1; i < files.size(); ++i) {
    for (size_t before = 0; before < i; ++before) {
      if (io::same_place(files[i], files[before])) {
        throw UsageError("--grid, --out and --npz: expected different files, got " + files[i]);
      }
    }
  }
  check_results(arguments);
  const bool averaged = !arguments.trained && train::keeps_average(arguments.run);
  const train::EngineConfig engine = load_stored_config(arguments.run, arguments.overrides).engine;
  train::apply_engine(engine);
  warn_of_slow_precision(engine);
  const auto loaded = train::load_model(arguments.run, averaged ? train::Weights::averaged : train::Weights::trained,
                                        at::kFloat, 0, train::device_of(engine));
  const auto* const model = dynamic_cast<const models::DiffusionTransformer*>(loaded.model.get());
  if (model == nullptr) {
    throw UsageError(arguments.run + ": sample needs a model of family dit, got " +
                     std::string(enum_text(loaded.config.model.family)));
  }
  const bool latents = loaded.config.data.source == data::Source::latents;
  if (latents && !(arguments.grid.empty() && arguments.npz.empty())) {
    throw UsageError(std::string(arguments.grid.empty() ? "--npz" : "--grid") +
                     ": expected a model of images, got one of latents; --out saves what it draws");
  }
  arguments.options.clip = !latents;
  const auto labels = asked_labels(arguments, loaded.config);
  const int64_t rows = loaded.config.train.micro_batch;
  const bool terminal = isatty(STDERR_FILENO) == 1;
  const auto count = static_cast<long long>(arguments.count);
  const at::Tensor images =
      eval::draw_samples(*model, labels, arguments.count, rows, arguments.options, [&](int64_t drawn) {
        if (terminal) std::fprintf(stderr, "\r\033[K%lld of %lld images", static_cast<long long>(drawn), count);
      });
  if (terminal) std::fputs("\r\033[K", stderr);
  if (!at::isfinite(images).all().item<bool>()) {
    throw DataError(loaded.checkpoint.string() + ": draws numbers that are not finite: its weights have diverged");
  }
  save(arguments, images, labels);
  std::printf("%lld images of %s, step %lld (%s weights), %s in %lld steps, guidance %g\n",
              static_cast<long long>(arguments.count), loaded.checkpoint.c_str(), static_cast<long long>(loaded.step),
              averaged ? "averaged" : "trained", arguments.sampler.c_str(),
              static_cast<long long>(arguments.options.steps), arguments.options.guidance);
  for (const std::string& path : files) std::printf("%s\n", path.c_str());
}

}  // namespace

void add_sample(CLI::App& app) {
  auto* const verb = app.add_subcommand("sample", "Draw images from a diffusion model");
  const auto arguments = std::make_shared<SampleArguments>();
  eval::SamplerOptions& options = arguments->options;
  verb->add_option("RUN", arguments->run, "A run directory (its latest) or a checkpoint")->required();
  verb->add_option("OVERRIDES", arguments->overrides, "key=value for the keys of engine, such as engine.device=cpu");
  verb->add_option("--n", arguments->count, "How many")->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  verb->add_option("--grid", arguments->grid, "The picture to write: a PNG with all of them");
  verb->add_option("-o,--out", arguments->tensors,
                   "A safetensors file to write: samples [n, channels, size, size], labels");
  verb->add_option("--npz", arguments->npz,
                   "An npz file to write, as scripts for FID read it: arr_0, uint8 [n, size, size, 3]");
  verb->add_option("--labels", arguments->labels, "Classes, in turns; all without it")->delimiter(',');
  verb->add_option("--sampler", arguments->sampler, "ddim or ddpm");
  verb->add_option("--steps", options.steps, "Steps of the sampler")->check(CLI::Range(int64_t{2}, int64_t{1000}));
  verb->add_option("--guidance", options.guidance, "Classifier-free guidance; 1 = none")->check(CLI::Range(0.0, 1e3));
  verb->add_option("--eta", options.eta, "ddim: share of fresh noise")->check(CLI::Range(0.0, 1.0));
  verb->add_option("--seed", options.seed, "Of the noise");
  verb->add_flag("--trained", arguments->trained, "The trained weights, also where averaged ones were kept");
  verb->footer("Example: siamese sample runs/dit --n 64 --grid samples.png");
  verb->callback([arguments] { sample_run(*arguments); });
}

}  // namespace siamese::cli

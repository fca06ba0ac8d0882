// Lesson 3: a residual scheme of your own, in one file.
//
// ReZero (Bachlechner et al., arXiv 2003.04887), with Pre-Norm's norms kept:
//   h_0 = E;   h <- h + alpha_i G_i(LN_i(h)), alpha_i a learned scalar, 0 at start;   output = LN_final(h)
// One junction class, one topology class, one registration: then `model.residual: rezero` names it in any config, with
// every family, optimizer, checkpoint and report of the engine.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>

#include "siamese/base/check.h"
#include "siamese/config/load.h"
#include "siamese/residual/one_stream.h"
#include "siamese/residual/registry.h"
#include "siamese/train/run.h"

namespace {

namespace nn = siamese::nn;
using namespace siamese::residual;

class RezeroJunction : public Junction {
 public:
  RezeroJunction(const nn::Scope& scope, const Site& at, const Build& build)
      : Junction(at),
        norm_(scope.child("norm"), build.width, build.branch_input_norm()),
        alpha_(scope.add("alpha", nn::ParameterKind::scalar, {1}, nn::Init::zeros())) {}

  ReadResult read(const Streams& streams, Recorder* recorder) const override {
    Streams now = flush(streams);  // whoever wrote before may have deferred
    at::Tensor input = norm_(now[0]);
    record(recorder, "h", now[0], input);
    return {std::move(now), std::move(input)};
  }

  Streams write(const Streams& streams, const Branch& branch) const override {
    return streams.replaced({at::add(streams[0], at::mul(gated(branch), alpha_.value()))});
  }

 private:
  nn::Norm norm_;
  nn::Slot alpha_;
};

// OneStream opens the stream as the embedding and closes it with a norm.
class Rezero : public OneStream {
 public:
  using OneStream::OneStream;
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return std::make_unique<RezeroJunction>(scope, site, build());
  }
};

Scheme rezero_scheme() {
  return define_scheme<NoOptions>({"rezero", "h <- h + alpha G(LN(h));  out = LN(h)", "ReZero, arXiv 2003.04887"},
                                  [](const NoOptions&, const nn::Scope& scope, const Build& build) {
                                    return std::make_unique<Rezero>(scope, build);
                                  });
}

// --- The scheme ends here. What follows trains it. ---

class Narrator : public siamese::train::Observer {
 public:
  void started(const std::string& what) override { std::printf("%s\n", what.c_str()); }
  void stepped(const siamese::train::StepMetrics& metrics, int64_t) override {
    if (metrics.step == 1 || metrics.step % 20 == 0)
      std::printf("step %3ld  loss %.4f\n", long(metrics.step), metrics.loss);
  }
};

}  // namespace

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  const fs::path run_dir = fs::temp_directory_path() / ("siamese_example_scheme_" + std::to_string(getpid()));
  try {
    register_scheme(rezero_scheme());
    std::vector<std::string> overrides = {"model.residual=rezero", "model.width=32",          "model.blocks=4",
                                          "model.context=64",      "data.digits=2",           "train.batch=16",
                                          "train.steps=80",        "train.eval_every=0",      "eval.problems=0",
                                          "optim.lr=5e-3",         "optim.schedule.warmup=10"};
    overrides.insert(overrides.end(), argv + 1, argv + argc);
    const auto config = siamese::train::read_config(siamese::config::load("arithmetic-small", overrides, {RECIPES}));
    Narrator narrator;
    siamese::train::start_run(config, run_dir, /*overwrite=*/false, /*label=*/"",
                              {.observer = &narrator, .stop_signal = {}});
  } catch (const siamese::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
  fs::remove_all(run_dir);
  return 0;
}

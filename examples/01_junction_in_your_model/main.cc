// Lesson 1: SiameseNorm inside a model that is yours.
//
// TinyMixer is an ordinary torch::nn::Module with two sublayers: one mixes tokens, one mixes channels. With Pre-Norm it
// would be
//     h = h + mix_tokens(norm1(h));   h = h + mix_channels(norm2(h));   out = head(norm3(h))
// Here what stands between the sublayers is a residual scheme of the engine, chosen by its text. Three things change:
//   1. the scheme's weights live in nn::Parameters and are registered with the module, so torch::optim sees them;
//   2. h becomes Streams (for siamese: X and Y), opened from the embedding and closed before the head;
//   3. at each site the junction reads the branch input from the streams and writes the branch back.
// The task: x [batch, tokens, 1] is random, the target at each token is x times the mean of x over all tokens.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "siamese/base/check.h"
#include "siamese/residual/registry.h"

namespace nn = siamese::nn;
namespace residual = siamese::residual;

constexpr int64_t kTokens = 8;
constexpr int64_t kWidth = 32;

class TinyMixer : public torch::nn::Module {
 public:
  explicit TinyMixer(const std::string& scheme) : scheme_parameters_(/*seed=*/1) {
    embed_ = register_module("embed", torch::nn::Linear(1, kWidth));
    mix_tokens_ = register_module("mix_tokens", torch::nn::Linear(kTokens, kTokens));
    mix_channels_ =
        register_module("mix_channels", torch::nn::Sequential(torch::nn::Linear(kWidth, 4 * kWidth), torch::nn::GELU(),
                                                              torch::nn::Linear(4 * kWidth, kWidth)));
    head_ = register_module("head", torch::nn::Linear(kWidth, 1));

    const nn::Scope scope(scheme_parameters_);
    topology_ = residual::make_topology(scheme, scope, {.width = kWidth, .blocks = 1});
    for (int64_t index = 0; index < 2; ++index) {
      junctions_.push_back(
          topology_->junction(scope.child("site" + std::to_string(index)), residual::site_at(index, /*blocks=*/1)));
    }
    for (const nn::Parameter& parameter : scheme_parameters_.list()) {
      std::string name = parameter.name;
      std::replace(name.begin(), name.end(), '.', '_');  // torch keeps the dot for submodules
      register_parameter(name, parameter.value);         // the same tensor, not a copy
    }
  }

  torch::Tensor forward(const torch::Tensor& x) {
    residual::Streams streams = topology_->open(embed_(x));
    for (const auto& junction : junctions_) {
      const auto [read, input] = junction->read(streams, /*recorder=*/nullptr);
      streams = junction->write(read, {sublayer(junction->site(), input), /*gate=*/{}});
    }
    return head_(topology_->close(streams));
  }

 private:
  torch::Tensor sublayer(const residual::Site& site, const torch::Tensor& input) {
    if (site.kind == residual::SiteKind::ffn) return mix_channels_->forward(input);
    return mix_tokens_(input.transpose(1, 2)).transpose(1, 2);
  }

  torch::nn::Linear embed_{nullptr};
  torch::nn::Linear mix_tokens_{nullptr};
  torch::nn::Sequential mix_channels_{nullptr};
  torch::nn::Linear head_{nullptr};
  nn::Parameters scheme_parameters_;
  std::unique_ptr<residual::Topology> topology_;
  std::vector<std::unique_ptr<residual::Junction>> junctions_;
};

void train(const std::string& scheme) {
  torch::manual_seed(1);
  TinyMixer model(scheme);
  torch::optim::AdamW optimizer(model.parameters(), torch::optim::AdamWOptions(3e-3));
  for (int step = 0; step <= 300; ++step) {
    const torch::Tensor x = torch::randn({64, kTokens, 1});
    const torch::Tensor target = x * x.mean(/*dim=*/1, /*keepdim=*/true);
    optimizer.zero_grad();
    const torch::Tensor loss = torch::mse_loss(model.forward(x), target);
    loss.backward();
    optimizer.step();
    if (step % 50 == 0) std::printf("step %3d  loss %.4f\n", step, loss.item<double>());
  }
}

int main(int argc, char** argv) {
  try {
    train(argc > 1 ? argv[1] : "siamese");  // try: post, hybrid, "siamese(depth_scale=none)"
  } catch (const siamese::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}

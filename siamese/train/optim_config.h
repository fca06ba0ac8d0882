// The `optim` section of a config: which update, at which rate, and what it leaves alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "siamese/base/enum_text.h"
#include "siamese/config/use.h"
#include "siamese/nn/parameters.h"
#include "siamese/ops/muon.h"
#include "siamese/train/schedule.h"

namespace siamese::train {

enum class OptimizerName { adamw, muon };

config::Use of_optimizer(OptimizerName name);

// Where the model has parameters of a kind. How many there are is known only with the model: a key of its own among the
// texts that uses are judged by (config.cc, use_facts).
config::Use of_kind(nn::ParameterKind kind);
std::string kind_key(nn::ParameterKind kind);

// Which kinds of parameters decay.
struct DecayConfig {
  bool linear = true;
  bool bias = false;
  bool norm = false;
  bool embedding = false;
  bool scalar = false;
  bool stream_mix = false;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    using nn::ParameterKind;
    visit("linear", self.linear, {"decay the matrices of linear layers", of_kind(ParameterKind::linear)});
    visit("bias", self.bias, {"decay their biases", of_kind(ParameterKind::bias)});
    visit("norm", self.norm,
          {"decay gains and shifts of norms (and c1 of siamese(x=hybrid))", of_kind(ParameterKind::norm)});
    visit("embedding", self.embedding, {"decay embeddings (a tied head is one)", of_kind(ParameterKind::embedding)});
    visit("scalar", self.scalar, {"decay learned scalars", of_kind(ParameterKind::scalar)});
    visit("stream_mix", self.stream_mix, {"decay weights that mix streams", of_kind(ParameterKind::stream_mix)});
  }
  bool decays(nn::ParameterKind kind) const;
};

// What the rate of a kind is multiplied with.
struct LrScaleConfig {
  double linear = 1;
  double bias = 1;
  double norm = 1;
  double embedding = 1;
  double scalar = 1;
  double stream_mix = 1;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    using nn::ParameterKind;
    visit("linear", self.linear, {"rate of the matrices of linear layers / optim.lr", of_kind(ParameterKind::linear)});
    visit("bias", self.bias, {"rate of their biases / optim.lr", of_kind(ParameterKind::bias)});
    visit("norm", self.norm, {"rate of gains and shifts of norms / optim.lr", of_kind(ParameterKind::norm)});
    visit("embedding", self.embedding, {"rate of embeddings / optim.lr", of_kind(ParameterKind::embedding)});
    visit("scalar", self.scalar, {"rate of learned scalars / optim.lr", of_kind(ParameterKind::scalar)});
    visit("stream_mix", self.stream_mix,
          {"rate of weights that mix streams / optim.lr", of_kind(ParameterKind::stream_mix)});
  }
  double of(nn::ParameterKind kind) const;
};

// Of the matrices that Muon takes (muon.h).
struct MuonConfig {
  double momentum = 0.95;
  ops::MuonScale scale = ops::MuonScale::match_rms_adamw;
  double lr_scale = 1;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("momentum", self.momentum, "decay of the momentum, which is Nesterov's");
    visit("scale", self.scale, "how large the update of a matrix is");
    visit("lr_scale", self.lr_scale, "rate of the matrices that Muon takes / that of their kind");
  }
};

struct OptimConfig {
  OptimizerName name = OptimizerName::adamw;
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  double clip = 1;
  std::vector<std::string> freeze;
  ScheduleConfig schedule;
  DecayConfig decay;
  LrScaleConfig lr_scale;
  MuonConfig muon;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name, "the update; muon: of matrices between hidden states, AdamW of the rest");
    visit("lr", self.lr, "peak learning rate");
    visit("beta1", self.beta1, "AdamW: decay of the first moment");
    visit("beta2", self.beta2, "AdamW: decay of the second moment");
    visit("eps", self.eps, "AdamW: added to the root of the second moment");
    visit("weight_decay", self.weight_decay,
          {"decoupled decay of the kinds named in optim.decay",
           config::with({"optim.decay.linear", "optim.decay.bias", "optim.decay.norm", "optim.decay.embedding",
                         "optim.decay.scalar", "optim.decay.stream_mix"})});
    visit("clip", self.clip, "largest global gradient norm; 0 = no clipping");
    visit("freeze", self.freeze,
          "parameters that are not trained: kinds, or patterns of names with *; !entry takes out again, later entries "
          "win");
    visit("schedule", self.schedule, "");
    visit("decay", self.decay, {"", config::with({"optim.weight_decay"})});
    visit("lr_scale", self.lr_scale, "");
    visit("muon", self.muon, {"", of_optimizer(OptimizerName::muon)});
  }
};

// UsageError naming the key.
void check(const OptimConfig& optim);

}  // namespace siamese::train

template <>
struct siamese::EnumText<siamese::train::OptimizerName> {
  static constexpr EnumNames<train::OptimizerName, 2> names{
      {{train::OptimizerName::adamw, "adamw"}, {train::OptimizerName::muon, "muon"}}};
};

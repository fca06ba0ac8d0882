// What the trainer, the evaluator and the command line know of any family.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/models/stack.h"
#include "siamese/nn/parameters.h"

namespace siamese::models {

// One batch, as the family takes it. (Model::pass: tokens [batch, n]; targets of the output's shape for dit.)
struct Inputs {
  at::Tensor tokens;          // int64 [batch, context + 1]
  at::Tensor weights;         // [batch, context]: 1 where the target counts
  at::Tensor images;          // [batch, channels, image, image]
  at::Tensor labels;          // int64 [batch]
  at::Tensor targets;         // [batch, classes], rows add up to 1; undefined: the labels are meant
  at::Tensor timesteps = {};  // int64 [batch], for Model::pass of a dit alone: losses() draws them
  // Text: of each sample, before which tokens another document begins, which sees nothing of those before it. Empty:
  // every token sees all before it.
  std::vector<std::vector<int64_t>> borders = {};
  uint64_t first_position = 0;  // of the first sample: what is random about a sample is keyed by its position
};

struct LossOptions {
  StackOptions stack;
  double normalizer = 1;     // what summed losses are divided by: the weight of the whole step, not of one micro-batch
  double share = 1;          // of this micro-batch in the step: for terms that are means over a micro-batch
  double z_loss = 0;         // weight of the squared log-normaliser of the head
  double balance_loss = 0;   // weight of the routers' load-balancing loss
  double router_z_loss = 0;  // weight of the routers' squared log-normaliser
  bool training = false;     // dropout, drop-path and label dropout act
  uint64_t seed = 0;         // of what is random in a pass
};

struct Losses {
  at::Tensor objective;                                   // what is differentiated
  at::Tensor loss;                                        // the task's own term, as reported
  std::vector<std::pair<std::string, at::Tensor>> extra;  // further terms by name
  at::Tensor expert_counts;                               // moe: int64 [blocks, experts], tokens sent to each
};

// One forward pass on given tensors and nothing drawn: what another implementation can be compared with.
struct Pass {
  at::Tensor output;                                    // logits [batch, n, vocab] or [batch, classes]; dit: the whole
                                                        // output [batch, out channels, image, image]
  at::Tensor loss;                                      // differentiable; the one term that Model::pass names
  std::vector<std::pair<std::string, at::Tensor>> aux;  // further terms by name, not weighted
};

class Model {
 public:
  explicit Model(nn::Parameters parameters) : parameters_(std::move(parameters)) {}
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  virtual Losses losses(const Inputs& inputs, const LossOptions& options) const = 0;
  // In evaluation mode. loss: lm, moe the mean cross-entropy of each next token; vit of the labels; dit the mean
  // squared error to `targets`.
  virtual Pass pass(const Inputs& inputs, const StackOptions& options) const = 0;
  // The two halves of `pass`, on the same tensors: the final state of every token [batch, n, width], and its output.
  // The output of a language model is one of each token: its states may be any [..., width].
  virtual at::Tensor state(const Inputs& inputs, const StackOptions& options) const = 0;
  virtual at::Tensor read_out(const at::Tensor& state, const Inputs& inputs) const = 0;
  virtual const Stack& stack() const = 0;
  // Multiply-adds of one forward pass for a batch of `batch` samples, matrix products and attention, times two.
  virtual double forward_flops(int64_t batch) const = 0;

  // Parameters that one sample or token meets: all, but for experts it is not sent to.
  virtual int64_t active_parameters() const { return parameters_.count(); }

  // The block with which backward is done with a parameter (StackOptions::passed); kNoBlock: at its end at the
  // earliest. Here that of its name, "blocks.12.ffn.out.weight".
  static constexpr int64_t kNoBlock = -1;
  virtual int64_t block_of(const nn::Parameter& parameter) const;
  // Of all parameters, in their order.
  std::vector<int64_t> blocks_of_parameters() const;

  const nn::Parameters& parameters() const { return parameters_; }

 protected:
  nn::Scope root_scope() { return nn::Scope(parameters_); }

 private:
  nn::Parameters parameters_;
};

}  // namespace siamese::models

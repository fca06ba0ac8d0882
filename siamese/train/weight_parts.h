// The weights of a run whose optimizer is divided among ranks (division.h): what of them this rank updates, and how
// every rank comes to have what the others have updated.
//
// With `operands_too` (engine.precision: bfloat16) the weights that products alone read (models::is_operand_alone) are
// divided themselves. Of each of them a rank holds in float32 the part that it updates, and the whole in bfloat16, as
// the products read it; the parameter has no memory (ops/released_weight.h). An update sends the rounded parts, half as
// many bytes. Files hold whole tensors of float32: for them the gradients' places, which nobody needs between two
// steps, take the numbers of all ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "siamese/comm/group.h"
#include "siamese/models/weights.h"
#include "siamese/nn/parameters.h"
#include "siamese/ops/released_weight.h"
#include "siamese/train/config.h"
#include "siamese/train/division.h"

namespace siamese::train {

// Whether weights that products alone read can be divided: not where the plain expressions of an op read them, and on
// another device, whose kernels round for themselves.
bool divides_operands(const EngineConfig& engine);

// Some parameters of the row of gradients, moved together: the same order, the same ranks.
struct ShorterRow {
  // `chosen`: of each parameter, those without a gradient not among them. Each begins at a multiple of `alignment`.
  ShorterRow(const nn::Parameters& parameters, const nn::GradientBuffer& gradients, const Division& division,
             const std::vector<bool>& chosen, int64_t alignment);

  std::vector<int64_t> begins;              // of each parameter; means nothing for others than the chosen
  std::vector<std::vector<int64_t>> parts;  // Division::parts() in this row
  int64_t size = 0;
};

class WeightParts {
 public:
  // All of it must outlive this; every rank has the same weights. On the CPU, of float32, with `operands_too`.
  WeightParts(comm::Group& group, const nn::Parameters& parameters, const nn::GradientBuffer& gradients,
              const Division& division, bool operands_too);

  // Parameters by their place in the list.
  bool is_divided(size_t parameter) const { return divided_[parameter]; }
  bool any_is_divided() const { return rounded_.defined(); }
  // What this rank updates of a trained one: a view of it or, of a divided one, the part; maybe nothing.
  at::Tensor own(size_t parameter) const;

  // All ranks, after an update of what each owns: every rank has the weights of all.
  void share() const;

  // Numbers of this rank's parts in the order of the parameters: the weights, or others of the same shapes (averages).
  using Parts = std::vector<at::Tensor>;

  // All ranks: passes read the numbers of these parts, rounded, in the place of the divided weights.
  void share_rounded(const Parts& parts) const;
  // What they read now, in one row; undefined when nothing is divided.
  const at::Tensor& rounded() const { return rounded_; }

  // For files. Of tensors in the order of the parameters, in the place of each divided one a whole tensor of float32:
  // to load into, and to write from after `gather`. It lies where the gradients do, until the next step begins.
  std::vector<models::NamedTensor> in_places(std::vector<models::NamedTensor> tensors) const;
  // All ranks: the numbers of all parts into these places.
  void gather(const Parts& parts) const;
  void gather_weights() const { gather(own_); }
  // What this rank holds of the numbers that lie there.
  void keep(const Parts& parts) const;
  // The same of the weights, which passes read from here on. Every rank has loaded them.
  void take_weights() const;

 private:
  Piece piece_of(size_t parameter) const;
  at::Tensor place_of(size_t parameter) const;    // of its gradient
  at::Tensor rounded_of(size_t parameter) const;  // a view
  std::vector<bool> others() const;               // trained and not divided
  void share_floats() const;

  comm::Group& group_;
  nn::Parameters parameters_;
  const nn::GradientBuffer& gradients_;
  const Division& division_;
  std::vector<bool> divided_;
  ShorterRow operands_;
  ShorterRow floats_;
  Parts own_;           // of divided ones; others are undefined
  at::Tensor rounded_;  // bfloat16, the row of the operands
  std::vector<ops::ReleasedWeight> released_;
};

}  // namespace siamese::train

// Upcycling: a trained Pre-Norm model as the start of another scheme. The new model computes the same function, because
// the scheme contains Pre-Norm at certain values of its norms, and trains on with every stream alive. For siamese with
// a Pre-Norm model of site norms LN_i and final norm LN:
//   P = 0 (c1 = 0), so X vanishes wherever it is read;   Q_i = LN_i, at the end Q = LN
//   where a norm follows the sum (I_i, F): Q_i = 1 and I_i = LN_i, at the end Q = 1 and F = LN
// Without I and F this is exact; with them a vector of unit size is normalised a second time, which is the identity up
// to model.norm_eps. A gain of 0 is no dead end: its gradient is that of the sum times the normalised X, and X is not 0
// before it is read. docs/upcycling.md has the table of schemes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "siamese/train/checkpoint.h"

namespace siamese::train {

// Where the value of a parameter comes from.
enum class Origin { copied, scaled, zero, one, fresh };

struct FilledParameter {
  std::string name;
  Origin origin = Origin::copied;
  bool of_scheme = false;  // a junction's or the close's, not a sublayer's
};

struct Upcycled {
  RunConfig config;  // the source's, with the new scheme
  std::unique_ptr<models::Model> model;
  std::vector<FilledParameter> filled;  // every parameter of `model`, in its order
  bool exact = true;                    // the same function to rounding; false: up to model.norm_eps
};

// Of the families lm, moe and vit. UsageError for another, when the source is not Pre-Norm, or when the scheme cannot
// be it, with the reason.
Upcycled upcycle(const LoadedModel& source, const std::string& scheme);

}  // namespace siamese::train

template <>
struct siamese::EnumText<siamese::train::Origin> {
  static constexpr EnumNames<train::Origin, 5> names{{{train::Origin::copied, "copied"},
                                                      {train::Origin::scaled, "scaled"},
                                                      {train::Origin::zero, "zero"},
                                                      {train::Origin::one, "one"},
                                                      {train::Origin::fresh, "fresh"}}};
};

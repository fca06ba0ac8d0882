// A pass that somebody changes on its way, to see what depends on what (eval/analysis.h): streams replaced between two
// sites, sublayers left out, a beginning in the middle. A value of one call (StackOptions::intervention), not a state
// of the model; a pass without one asks nobody.
#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/residual/site.h"
#include "siamese/residual/streams.h"

namespace siamese::models {

class Intervention {
 public:
  virtual ~Intervention() = default;

  // The site that the pass begins with: those before it are not run, and `between` gives the streams it begins with.
  virtual size_t first_site() const { return 0; }
  // The streams on their way to the read of site `next`, or, after the last site, to the close; the last branch may be
  // pending. What is returned goes on in their place and must have the same names.
  virtual residual::Streams between(size_t /*next*/, residual::Streams streams) { return streams; }
  // What the sites before `next` hand on to it beside the streams (nn/value_carry.h). What is returned goes on in its
  // place; a pass that begins in the middle has nothing before.
  virtual std::vector<at::Tensor> carry(size_t /*next*/, std::vector<at::Tensor> carry) { return carry; }
  // What a read gives to its sublayer. What is returned is seen in its place.
  virtual at::Tensor input(const residual::Site& /*site*/, at::Tensor input) { return input; }
  // Whether the sublayer of a site is left out. Then it contributes nothing: its branch is zero, gate included, and
  // all that the scheme itself does at the site stays: norms of what is read and written, factors, mixing of streams.
  // What attention hands on to later blocks beside the streams stays too, as it makes it of what it reads.
  virtual bool leaves_out(const residual::Site& /*site*/) { return false; }
};

}  // namespace siamese::models

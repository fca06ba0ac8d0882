// A model laid open: one forward pass (and backward) on given tensors, with everything another implementation can be
// compared by. Nothing is drawn: no drop-path, no hidden label, no noise.
//   in   lm, moe  tokens int64 [batch, n >= 2]
//        vit      images [batch, channels, image, image], labels int64 [batch]
//        dit      latents [batch, channels, image, image], timesteps and labels int64 [batch] (labels are rows of the
//                 label table), target of the output's shape
//   out  output, loss, aux/<name>; grad/<parameter>; site/<i>/stream/<name>, site/<i>/stream_normed/<name>,
//        site/<i>/branch_in, site/<i>/branch_out
#pragma once

#include <vector>

#include "siamese/io/tensor_files.h"
#include "siamese/models/config.h"
#include "siamese/models/model.h"
#include "siamese/models/weights.h"

namespace siamese::eval {

// The tensors of `files` as `config`'s family takes them; DataError listing what is missing, unknown, of another type
// or shape, or out of range.
models::Inputs probe_inputs(const io::TensorFiles& files, const models::ModelConfig& config);

struct ProbeOptions {
  bool gradients = false;    // of the loss, for every parameter
  bool activations = false;  // what a Recorder sees at each site
};
std::vector<models::NamedTensor> probe(const models::Model& model, const models::Inputs& inputs,
                                       const ProbeOptions& options);

}  // namespace siamese::eval

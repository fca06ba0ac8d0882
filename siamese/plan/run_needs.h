// What a run asks of whatever it runs on, in numbers: of its config alone, whatever the machine (train/needs.h fills it
// in from the model itself).
#pragma once

#include <cstdint>

namespace siamese::plan {

// Bytes of activations of a pass of `rows` samples: a straight line.
struct PassBytes {
  double fixed = 0;
  double each_row = 0;

  double of(double rows) const { return fixed + each_row * rows; }
};

struct RunNeeds {
  // Numbers of float32.
  double weights = 0;
  double trained = 0;           // weights that have a gradient
  double moments = 0;           // the optimizer's state
  double averages = 0;          // of the weights (train.ema)
  bool copies_to_save = false;  // all of these, each device its part (train.save_in_background)
  double largest_block = 0;     // weights
  double outside_blocks = 0;
  int64_t blocks = 0;

  double operand_bytes = 4;         // of a number that a product reads: 2 with engine.precision bfloat16
  double rounded_weight_bytes = 0;  // copies of matrices in that type
  // Trained weights of which these copies are all that a pass reads: their float32 numbers can be shared out.
  double read_rounded = 0;

  int64_t batch = 0;  // samples of a step
  int64_t steps = 0;
  double forward_flops_each_sample = 0;
  double update_flops = 0;  // products of the update (Muon), a step

  PassBytes kept;           // every activation is kept for backward
  PassBytes recomputed;     // those of one segment at a time
  int64_t micro_batch = 0;  // samples of a pass; 0: as many as fit
};

}  // namespace siamese::plan

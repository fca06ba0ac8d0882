// What is measured at a step, and its line in metrics.jsonl (runs/step_record.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "siamese/nn/parameters.h"
#include "siamese/residual/topology.h"
#include "siamese/runs/step_record.h"
#include "siamese/train/spike_guard.h"

namespace siamese::train {

// Root mean squares at one site; `after` is NaN when the stream has no norm of its own there.
struct SiteMetrics {
  struct Stream {
    std::string name;
    double before = 0;
    double after = 0;
  };
  residual::Site site;
  double grad_norm = 0;  // of the site's own parameters
  double branch_in = 0;
  double branch_out = 0;
  std::vector<Stream> streams;
};

struct StepMetrics {
  int64_t step = 0;    // steps done, this one included
  int64_t tokens = 0;  // seen so far
  double loss = 0;
  double grad_norm = 0;
  double lr = 0;
  double tokens_per_s = 0;
  double samples_per_s = 0;
  bool of_images = false;  // samples are images
  double step_ms = 0;
  bool skipped = false;  // the update was left out, because
  SkipReason skip_reason = SkipReason::non_finite;
  double skip_z = 0;  // of an outlier: how far above the window it lay
  std::vector<std::pair<std::string, double>> extra;
  std::vector<std::vector<double>> expert_load;  // moe, with `sites`: share of the tokens, by block and expert
  std::vector<SiteMetrics> sites;                // only every train.record_every steps
};

// How the tokens of a step spread over the experts.
struct ExpertLoad {
  std::vector<std::vector<double>> shares;  // by block and expert; of a block they add up to 1
  double largest = 0;                       // times the number of experts: 1 when all are equal
};
ExpertLoad expert_load(const std::vector<double>& counts, int64_t experts);  // of one block after the other

runs::StepRecord record_of(const StepMetrics& metrics);
// Non-finite numbers are written as null.
std::string to_json(const StepMetrics& metrics);

// Collects SiteMetrics during a forward pass. What it measures stays on its device until `finish` reads all of it.
class SiteRecorder : public residual::Recorder {
 public:
  void stream(const residual::Site& site, const std::string& name, const at::Tensor& before,
              const at::Tensor& after) override;
  void branch(const residual::Site& site, const at::Tensor& input, const at::Tensor& output) override;

  // Adds the gradient norms by site (eval/site_gradients.h).
  std::vector<SiteMetrics> finish(const nn::Parameters& parameters);

 private:
  // A root mean square to come, and whose it is.
  struct Sum {
    at::Tensor squares;
    double count;
    std::function<double&(SiteMetrics&)> place;
    size_t site;
  };
  SiteMetrics& at_site(const residual::Site& site);
  void measure(const residual::Site& site, const at::Tensor& value, std::function<double&(SiteMetrics&)> place);

  std::vector<SiteMetrics> sites_;
  std::vector<Sum> sums_;
};

}  // namespace siamese::train

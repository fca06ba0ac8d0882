// Gradients of the mean held-out loss by depth: of each stream where a site is about to read it (the last branch
// added), of what each read gives to its sublayer (dit: before scale and shift), and of each site's parameters. As in
// evaluation: nothing is dropped. The norm of a stream's gradient is over all tokens of all batches: sqrt(sum
// |dL/dx|^2).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "siamese/eval/given_batch.h"
#include "siamese/runs/analysis_record.h"

namespace siamese::eval {

class DepthGradients : private models::Intervention {
 public:
  // `weight`: of all batches together, by which the loss is a mean. Forgets the gradients that the parameters have.
  DepthGradients(const models::Model& model, double weight);
  ~DepthGradients() override;
  DepthGradients(const DepthGradients&) = delete;
  DepthGradients& operator=(const DepthGradients&) = delete;

  void add(const GivenBatch& batch);
  // Into the places that are there.
  void fill(runs::AnalysisRecord& record) const;

 private:
  residual::Streams between(size_t next, residual::Streams streams) override;
  at::Tensor input(const residual::Site& site, at::Tensor input) override;

  const models::Model& model_;
  double weight_;
  std::vector<std::map<std::string, double>> streams_;  // squares by place
  std::vector<double> inputs_;                          // squares by site
};

}  // namespace siamese::eval

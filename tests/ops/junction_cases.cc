#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"

#include "siamese/ops/junction.h"

namespace siamese::ops {
namespace junction_cases_detail {

// A norm: '-' none, 'r' RMSNorm, 'R' with its gain; 'l' LayerNorm, 'L' with its gain, 'B' with gain and bias.
struct JunctionCase {
  const char* name;
  bool branch, x, x_scale;
  const char* norms;  // of branch, x, y, input
  double x_branch, y_branch, y_skip, input_scale;
  bool gate = false;
};

constexpr JunctionCase kCases[] = {
    {"pre", true, false, false, "--R-", 0, 1, 1, 1},
    {"pre with LayerNorm", true, false, false, "--B-", 0, 1, 1, 1},
    {"pre, nothing pending", false, false, false, "--R-", 0, 0, 1, 1},
    {"lns", true, false, false, "--R-", 0, 1, 1, 0.5},
    {"peri", true, false, false, "R-R-", 0, 1, 1, 1},
    {"peri with LayerNorm", true, false, false, "B-B-", 0, 1, 1, 1},
    {"olmo2", true, false, false, "R---", 0, 1, 1, 1},
    {"a bare sum", true, false, false, "----", 0, 0.5, 1, 1},
    {"deepnorm", true, false, false, "--L-", 0, 1, 1.7, 1},
    {"siamese", true, true, false, "-RRR", 0.7, 1, 1, 1},
    {"siamese with LayerNorm", true, true, false, "-BBB", 0.7, 1, 1, 1},
    {"siamese, nothing pending", false, true, false, "-RRR", 0, 0, 1, 1},
    {"siamese in dit", true, true, false, "-RRr", 0.7, 1, 1, 1},
    {"siamese without input norm", true, true, false, "-RR-", 0.5, 1, 1, 1},
    {"siamese written", true, true, false, "--RR", 0, 1, 1, 1},
    {"siamese after peri", true, true, false, "RRRR", 0.5, 1, 1, 1},
    {"hybrid attention", true, true, true, "--R-", 0.5, 1, 1, 1},
    {"hybrid attention, nothing pending", false, true, true, "--R-", 0, 0, 1, 1},
    {"the end of resi_dual", true, true, true, "--L-", 0, 0.5, 1, 1},
    {"input norm alone", true, false, false, "---R", 0, 1, 1, 1},
    {"input norm alone, nothing pending", false, false, false, "---B", 0, 0, 1, 1},
    {"input scale alone", false, false, false, "----", 0, 0, 1, 0.5},
    {"nothing to do", false, false, false, "----", 0, 0, 1, 1},
    {"y goes, x has no norm", true, true, false, "-l--", 0.5, 0, 0.3, 2},
    {"two kinds of norm", true, true, true, "LRBr", 0.5, 1, 0.9, 1.5},
    {"pre, gated", true, false, false, "--R-", 0, 1, 1, 1, true},
    {"deepnorm, gated", true, false, false, "--B-", 0, 1, 1.7, 1, true},
    {"peri, gated", true, false, false, "B-B-", 0, 1, 1, 1, true},
    {"siamese, gated", true, true, false, "-RRr", 0.7, 1, 1, 1, true},
    {"all at once, gated", true, true, true, "BBBB", 0.5, 1, 0.9, 1.5, true},
    {"two kinds of norm, gated", true, true, true, "LRBr", 0.5, 1, 0.9, 1.5, true},
};

bool has_gain(char norm) { return norm == 'R' || norm == 'L' || norm == 'B'; }

// The tensors of a case in the order in which `junction_of` takes them.
Tensors tensors_of_case(const JunctionCase& c) {
  using testing::randn;
  constexpr int64_t kCols = 33;
  Tensors tensors;
  if (c.branch) tensors.push_back(randn({3, 5, kCols}, 1));
  if (c.x) tensors.push_back(randn({3, 5, kCols}, 2) + 0.2);
  tensors.push_back(randn({3, 5, kCols}, 3) * 2 - 0.1);
  if (c.x_scale) tensors.push_back(randn({kCols}, 4) * 0.3 + 1);
  for (uint64_t norm = 0; norm < 4; ++norm) {
    if (has_gain(c.norms[norm])) tensors.push_back(randn({kCols}, 5 + norm) * 0.5 + 1);
    if (c.norms[norm] == 'B') tensors.push_back(randn({kCols}, 9 + norm) * 0.5);
  }
  if (c.gate) tensors.push_back(randn({3, kCols}, 13));
  return tensors;
}

Junction junction_of(const JunctionCase& c, const Tensors& tensors) {
  size_t next = 0;
  const auto take = [&](bool there) { return there ? tensors[next++] : at::Tensor(); };
  Junction j;
  j.branch = take(c.branch);
  j.x = take(c.x);
  j.y = take(true);
  j.x_scale = take(c.x_scale);
  size_t norm = 0;
  for (NormStep* step : {&j.branch_norm, &j.x_norm, &j.y_norm, &j.input_norm}) {
    const char kind = c.norms[norm++];
    step->present = kind != '-';
    step->layer = kind == 'l' || kind == 'L' || kind == 'B';
    step->gain = take(has_gain(kind));
    step->bias = take(kind == 'B');
    step->eps = 1e-5 * static_cast<double>(norm);
  }
  j.gate = take(c.gate);
  j.x_branch = c.x_branch;
  j.y_branch = c.y_branch;
  j.y_skip = c.y_skip;
  j.input_scale = c.input_scale;
  return j;
}

// Those of V, X, input and U that are made. No gradient flows through U beside a normalised X.
Tensors made(const Junction& j, const JunctionResult& result) {
  Tensors tensors;
  if (!result.y.is_same(j.y)) tensors.push_back(result.y);
  if (!result.input.is_same(result.y)) tensors.push_back(result.input);
  if (result.x.defined() && !result.x.is_same(j.x)) tensors.push_back(result.x);
  const bool u = result.x_sum.defined() && !result.x_sum.is_same(j.x) && !result.x_sum.is_same(result.x);
  if (u) tensors.push_back(result.x_sum.detach());
  return tensors;
}

}  // namespace junction_cases_detail

std::vector<OpCase> junction_cases() {
  using namespace junction_cases_detail;
  std::vector<OpCase> cases;
  for (const JunctionCase& c : kCases) {
    cases.push_back({"junction", c.name, tensors_of_case(c),
                     [&c](const Tensors& t) {
                       const Junction j = junction_of(c, t);
                       return made(j, junction(j));
                     },
                     [&c](const Tensors& t) {
                       const Junction j = junction_of(c, t);
                       return made(j, plain::junction(j));
                     }});
  }
  return cases;
}

}  // namespace siamese::ops

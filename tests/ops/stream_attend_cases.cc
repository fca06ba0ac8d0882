#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"

#include "siamese/ops/stream_attend.h"

namespace siamese::ops {
namespace stream_attend_cases_detail {

using testing::randn;

constexpr int64_t kCols = 33;

struct AttendCase {
  std::string what;
  int64_t streams;
  bool branch;
  char norm;  // '-' none, 'r' RMSNorm, 'R' with its gain, 'B' LayerNorm with gain and bias
};

OpCase attend_case(const AttendCase& c) {
  Tensors inputs;
  for (int64_t j = 0; j < c.streams; ++j) inputs.push_back(randn({3, 5, kCols}, 1 + static_cast<uint64_t>(j)) + 0.2);
  if (c.branch) inputs.push_back(randn({3, 5, kCols}, 40));
  inputs.push_back(randn({kCols}, 41) * 0.3);
  if (c.norm == 'R' || c.norm == 'B') inputs.push_back(randn({kCols}, 42) * 0.5 + 1);
  if (c.norm == 'B') inputs.push_back(randn({kCols}, 43) * 0.5);
  // The input, and the streams to go on with.
  const auto with = [n = static_cast<size_t>(c.streams), branch = c.branch, kind = c.norm](const Tensors& t,
                                                                                           const auto& op) {
    const size_t query = n + (branch ? 1 : 0);
    NormStep norm{kind != '-', kind == 'B', {}, {}, 1e-5};
    if (t.size() > query + 1) norm.gain = t[query + 1];
    if (t.size() > query + 2) norm.bias = t[query + 2];
    const StreamAttended made =
        op(Tensors(t.begin(), t.begin() + static_cast<int64_t>(n)), branch ? t[n] : at::Tensor(), t[query], 1e-3, norm);
    Tensors outputs = {made.input};
    outputs.insert(outputs.end(), made.streams.begin(), made.streams.end());
    return outputs;
  };
  return {"stream_attend", c.what, inputs,
          [with](const Tensors& t) { return with(t, [](auto&&... given) { return stream_attend(given...); }); },
          [with](const Tensors& t) { return with(t, plain::stream_attend); }};
}

}  // namespace stream_attend_cases_detail

std::vector<OpCase> stream_attend_cases() {
  using namespace stream_attend_cases_detail;
  std::vector<OpCase> cases;
  for (const AttendCase& c :
       {AttendCase{"four streams, RMSNorm", 4, false, 'R'},
        AttendCase{"seven streams and a branch, LayerNorm", 7, true, 'B'},
        AttendCase{"two streams and a branch, bare norm", 2, true, 'r'},
        AttendCase{"three streams, no norm", 3, false, '-'}, AttendCase{"one stream and a branch", 1, true, 'R'}}) {
    cases.push_back(attend_case(c));
  }
  return cases;
}

}  // namespace siamese::ops

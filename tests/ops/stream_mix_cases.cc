#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"

#include "siamese/ops/stream_mix.h"

namespace siamese::ops {
namespace stream_mix_cases_detail {

using testing::randn;

constexpr int64_t kCols = 33;

struct MixCase {
  std::string what;
  int64_t streams, outputs;
  bool each_row;
  char norm = '-';  // of a read: 'r' RMSNorm, 'R' with its gain, 'B' LayerNorm with gain and bias
};

Tensors streams_of(const MixCase& c) {
  Tensors streams;
  for (int64_t i = 0; i < c.streams; ++i) streams.push_back(randn({3, 5, kCols}, 1 + static_cast<uint64_t>(i)) + 0.2);
  return streams;
}

at::Tensor coefficients(const MixCase& c, std::vector<int64_t> shape, uint64_t seed) {
  if (c.each_row) shape.insert(shape.begin(), {3, 5});
  return randn(shape, seed) * 0.5 + 0.3;
}

OpCase write_case(const MixCase& c) {
  Tensors inputs = streams_of(c);
  inputs.push_back(coefficients(c, {c.outputs, c.streams}, 20));
  inputs.push_back(randn({3, 5, kCols}, 21));
  inputs.push_back(coefficients(c, {c.outputs}, 22));
  const auto with = [n = static_cast<size_t>(c.streams)](const Tensors& t, auto* op) {
    return op({t.begin(), t.begin() + static_cast<int64_t>(n)}, t[n], t[n + 1], t[n + 2]);
  };
  return {"stream_mix", c.what, inputs, [with](const Tensors& t) { return with(t, stream_mix); },
          [with](const Tensors& t) { return with(t, plain::stream_mix); }};
}

OpCase read_case(const MixCase& c) {
  Tensors inputs = streams_of(c);
  inputs.push_back(coefficients(c, {c.streams}, 30));
  if (c.norm == 'R' || c.norm == 'B') inputs.push_back(randn({kCols}, 31) * 0.5 + 1);
  if (c.norm == 'B') inputs.push_back(randn({kCols}, 32) * 0.5);
  // The input, and the streams to go on with.
  const auto with = [n = static_cast<size_t>(c.streams), kind = c.norm](const Tensors& t, const auto& op) {
    NormStep norm{kind != '-', kind == 'B', {}, {}, 1e-5};
    if (t.size() > n + 1) norm.gain = t[n + 1];
    if (t.size() > n + 2) norm.bias = t[n + 2];
    const StreamRead made = op(Tensors(t.begin(), t.begin() + static_cast<int64_t>(n)), t[n], norm);
    Tensors outputs = {made.input};
    outputs.insert(outputs.end(), made.streams.begin(), made.streams.end());
    return outputs;
  };
  return {"stream_read", c.what, inputs,
          [with](const Tensors& t) { return with(t, [](auto&&... given) { return stream_read(given...); }); },
          [with](const Tensors& t) { return with(t, plain::stream_read); }};
}

}  // namespace stream_mix_cases_detail

std::vector<OpCase> stream_mix_cases() {
  using namespace stream_mix_cases_detail;
  std::vector<OpCase> cases;
  for (const MixCase& c : {MixCase{"four streams, each row", 4, 4, true}, MixCase{"two streams, all rows", 2, 2, false},
                           MixCase{"three to two, each row", 3, 2, true}, MixCase{"one stream", 1, 1, false},
                           MixCase{"six streams, which have no kernel", 6, 6, true}}) {
    cases.push_back(write_case(c));
  }
  for (const MixCase& c : {MixCase{"four streams, each row, RMSNorm", 4, 1, true, 'R'},
                           MixCase{"two streams, all rows, LayerNorm", 2, 1, false, 'B'},
                           MixCase{"three streams, each row, bare norm", 3, 1, true, 'r'},
                           MixCase{"two streams, all rows, no norm", 2, 1, false},
                           MixCase{"six streams, which have no kernel", 6, 1, false, 'B'}}) {
    cases.push_back(read_case(c));
  }
  return cases;
}

}  // namespace siamese::ops

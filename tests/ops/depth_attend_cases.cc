#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"

#include "siamese/ops/depth_attend.h"

namespace siamese::ops {

std::vector<OpCase> depth_attend_cases() {
  using testing::randn;
  struct Case {
    std::string what;
    std::vector<int64_t> rows;
    int64_t heads, kv_heads, key_dim, head_dim;
    size_t sources;
  };
  std::vector<OpCase> cases;
  for (const Case& c : std::vector<Case>{{"three sources, groups", {2, 5}, 6, 2, 5, 5, 3},
                                         {"two sources, no groups", {3, 7}, 3, 3, 8, 8, 2},
                                         {"keys of one number", {2, 3}, 2, 2, 1, 9, 2},
                                         {"one source", {4}, 4, 1, 3, 3, 1},
                                         {"several parts", {2, 200}, 4, 2, 9, 33, 4},
                                         {"no rows", {0, 3}, 4, 2, 3, 3, 2}}) {
    const auto shape = [&](int64_t heads, int64_t each) {
      std::vector<int64_t> sizes = c.rows;
      sizes.insert(sizes.end(), {heads, each});
      return sizes;
    };
    Tensors inputs = {randn(shape(c.heads, c.key_dim), 1)};
    for (size_t j = 0; j < c.sources; ++j) inputs.push_back(randn(shape(c.kv_heads, c.key_dim), 2 + j));
    for (size_t j = 0; j < c.sources; ++j) inputs.push_back(randn(shape(c.kv_heads, c.head_dim), 20 + j));
    const auto with = [n = static_cast<int64_t>(c.sources)](const Tensors& t, auto* op) {
      return Tensors{op(t[0], {t.begin() + 1, t.begin() + 1 + n}, {t.begin() + 1 + n, t.end()})};
    };
    cases.push_back({"depth_attend", c.what, inputs, [with](const Tensors& t) { return with(t, depth_attend); },
                     [with](const Tensors& t) { return with(t, plain::depth_attend); }});
  }
  return cases;
}

}  // namespace siamese::ops

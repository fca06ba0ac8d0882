#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"

#include "siamese/ops/row_linear.h"

namespace siamese::ops {

std::vector<OpCase> row_linear_cases() {
  using testing::randn;
  const at::Tensor x = randn({3, 5, 33}, 1) + 0.2;
  const at::Tensor weight = randn({6, 33}, 2);
  const auto list = [](const RowProjection& made) { return Tensors{made.y, made.squares, made.x}; };
  return {
      {"row_linear",
       "rows",
       {x, weight},
       [](const Tensors& t) { return Tensors{row_linear(t[0], t[1])}; },
       [](const Tensors& t) { return Tensors{plain::row_linear(t[0], t[1])}; }},
      {"row_linear",
       "one row, one output",
       {x[0][0], weight.narrow(0, 0, 1)},
       [](const Tensors& t) { return Tensors{row_linear(t[0], t[1])}; },
       [](const Tensors& t) { return Tensors{plain::row_linear(t[0], t[1])}; }},
      {"row_linear",
       "a parameter for each row",
       {randn({4, 2}, 3)},
       [](const Tensors& t) {
         return Tensors{for_each_row(t[0], {3, 5})};
       },
       [](const Tensors& t) {
         std::vector<int64_t> shape = t[0].sizes().vec();
         shape.insert(shape.begin(), {3, 5});
         return Tensors{t[0].expand(shape)};
       }},
      {"row_project",
       "handed on",
       {x, weight},
       [list](const Tensors& t) { return list(row_project(t[0], t[1])); },
       [list](const Tensors& t) { return list(plain::row_project(t[0], t[1])); }},
  };
}

}  // namespace siamese::ops

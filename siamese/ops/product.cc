#include "siamese/ops/product.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/accumulate.h>

#include "siamese/kernels/outer_products.h"
#include "siamese/kernels/partition.h"
#include "siamese/kernels/row_product.h"
#include "siamese/kernels/simd.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {
namespace {

// oneDNN's product on plain tensors. LibTorch has no C++ header for it, and a build without oneDNN has no such op.
using OneDnnLinear = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                                std::string_view, c10::List<std::optional<at::Scalar>>,
                                std::optional<std::string_view>);

const c10::TypedOperatorHandle<OneDnnLinear>* onednn_linear() {
  static const auto handle = []() -> std::optional<c10::TypedOperatorHandle<OneDnnLinear>> {
    const auto found = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
    if (!found.has_value()) return std::nullopt;
    return found->typed<OneDnnLinear>();
  }();
  return handle.has_value() ? &*handle : nullptr;
}

// Below this many multiply-adds oneDNN's fixed cost of about 12 us a call is more than what it saves.
constexpr int64_t kWorthOneDnn = int64_t{1} << 24;

// Terms of a sum that oneDNN never cuts by its threads.
constexpr int64_t kLongSum = int64_t{1} << 14;

// What oneDNN takes as it lies: rows or columns that are dense, one after the other.
bool has_dense_lines(const at::Tensor& b) {
  return (b.stride(1) == 1 && b.stride(0) >= b.size(1)) || (b.stride(0) == 1 && b.stride(1) >= b.size(0));
}

// y + bias, in y: a fresh tensor of the caller's.
at::Tensor plus_bias(const at::Tensor& y, const at::Tensor& bias) { return bias.defined() ? y.add_(bias) : y; }

// A float bias is added to the sums where they stand, in registers; beside bfloat16 to the rounded product.
at::Tensor onednn_product(const at::Tensor& a, const at::Tensor& given, const at::Tensor& bias) {
  const at::Tensor b = has_dense_lines(given) ? given : given.contiguous();
  const bool within = bias.defined() && bias.scalar_type() == a.scalar_type() && bias.is_contiguous();
  const std::optional<at::Tensor> added = within ? std::optional(bias.detach()) : std::nullopt;
  const at::Tensor y =
      onednn_linear()->call(a, b.t(), added, "none", c10::List<std::optional<at::Scalar>>(), std::nullopt);
  return within ? y : plus_bias(y, bias);
}

// Where a long k meets few elements (20000 and 512 x 512 in oneDNN 3), oneDNN may cut k by its threads.
bool may_cut_sum(const at::Tensor& a, const at::Tensor& b) {
  return a.size(1) > kLongSum && a.size(0) <= 512 && b.size(1) <= 512;
}

// There in parts that are short enough, added in order.
at::Tensor onednn_product_in_order(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias) {
  const int64_t k = a.size(1);
  if (!may_cut_sum(a, b)) return onednn_product(a, b, bias);
  const kernels::Partition parts{k, (k + kLongSum - 1) / kLongSum};
  at::Tensor sum;
  for (int64_t part = 0; part < parts.parts; ++part) {
    const int64_t begin = parts.begin(part);
    const int64_t length = parts.end(part) - begin;
    const at::Tensor more = onednn_product(a.narrow(1, begin, length).contiguous(), b.narrow(0, begin, length), {});
    sum = part == 0 ? more : sum.add_(more);
  }
  return plus_bias(sum, bias);
}

// One side of a product, cut into parts of whole vectors.
struct Side {
  static constexpr int64_t kVector = 16;

  static int64_t vectors(int64_t size) { return (size + kVector - 1) / kVector; }
  Side(int64_t of, int64_t count)
      : size(of), parts{vectors(of), std::clamp<int64_t>(count, 1, std::max<int64_t>(1, vectors(of)))} {}

  at::Tensor part_of(const at::Tensor& matrix, int64_t dim, int64_t part) const {
    const int64_t begin = parts.begin(part) * kVector;
    return matrix.narrow(dim, begin, std::min(size, parts.end(part) * kVector) - begin);
  }

  int64_t size;
  kernels::Partition parts;
};

// a b + bias in tiles, each a library's product on one thread.
at::Tensor multiply(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias, const Side& rows,
                    const Side& cols) {
  const int64_t across = cols.parts.parts;
  if (rows.parts.parts * across == 1) {
    const OneThread one_thread;
    return plus_bias(at::mm(a, b), bias);
  }
  const at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  for_each_task(rows.parts.parts * across, [&](int64_t tile) {
    const at::AutoDispatchBelowAutograd no_autograd;
    at::Tensor to = cols.part_of(rows.part_of(out, 0, tile / across), 1, tile % across);
    at::mm_out(to, rows.part_of(a, 0, tile / across), cols.part_of(b, 1, tile % across));
    if (bias.defined()) to.add_(cols.part_of(bias, 0, tile % across));  // while the tile is in cache
  });
  return out;
}

// Along its longer side, into at most sixteen parts: for what is small.
at::Tensor multiply_in_parts(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias) {
  constexpr int64_t kPartWork = int64_t{1} << 18;  // multiply-adds that are worth a thread
  const int64_t rows = a.size(0), cols = b.size(1);
  const int64_t parts = std::min<int64_t>(16, rows * a.size(1) * cols / kPartWork);
  return multiply(a, b, bias, Side(rows, rows >= cols ? parts : 1), Side(cols, rows >= cols ? 1 : parts));
}

// Of a large product. A tile packs its rows of a and its columns of b: smaller ones are slower, larger ones leave cores
// without work.
struct Tiles {
  static constexpr int64_t kRows = 256, kCols = 384;

  Tiles(const at::Tensor& a, const at::Tensor& b)
      : rows(a.size(0), a.size(0) / kRows), cols(b.size(1), b.size(1) / kCols) {}
  bool are_enough() const { return rows.parts.parts * cols.parts.parts >= 4; }

  Side rows, cols;
};

at::Tensor multiply_large(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias) {
  const Tiles tiles(a, b);
  return tiles.are_enough() ? multiply(a, b, bias, tiles.rows, tiles.cols) : multiply_in_parts(a, b, bias);
}

// a b + bias, where it is defined. oneDNN sums an element over k in one order however rows and columns are cut, if
// there is more than one of each and the left side is not transposed; MKL, which has the small products, and the large
// ones where it is faster, does not.
at::Tensor matrix_product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias = {}) {
  const at::AutoDispatchBelowAutograd no_autograd;
  if (!a.is_cpu() || a.numel() == 0 || b.numel() == 0) return plus_bias(at::mm(a, b), bias);
  const bool half = a.scalar_type() == at::kBFloat16;
  const bool known = a.scalar_type() == at::kFloat || (half && kernels::has_bfloat16_products());
  const bool large = a.size(0) * a.size(1) * b.size(1) >= kWorthOneDnn && known;
  // Long sums into few columns are less exact by MKL: what is narrow stays oneDNN's.
  const bool by_mkl = large && !half && kernels::prefers_mkl() && at::hasMKL();
  if (by_mkl && Tiles(a, b).are_enough()) return multiply_large(a, b, bias);
  const bool in_order = a.is_contiguous() && a.size(0) > 1 && b.size(1) > 1;
  const bool rounds_parts = half && may_cut_sum(a, b);  // which would not be one rounding
  if (large && in_order && !rounds_parts && onednn_linear() != nullptr) return onednn_product_in_order(a, b, bias);
  if (half) return plus_bias(matrix_product(a.to(at::kFloat), b.to(at::kFloat)).to(at::kBFloat16), bias);
  return multiply_in_parts(a, b, bias);
}

// Rows up to which reading w is most of a product x w^T: then by a kernel of ours, which does it at the speed of
// memory.
constexpr int64_t kFewRows = 8;

bool has_few_rows(const at::Tensor& x, const at::Tensor& w) {
  return x.is_cpu() && w.is_cpu() && x.size(0) <= kFewRows && x.size(1) == w.size(1) &&
         x.scalar_type() == w.scalar_type() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16) &&
         w.stride(1) == 1 && mode() != Mode::plain;
}

template <class Weight>
void multiply_few_rows(const at::Tensor& x, const Weight* w, int64_t w_stride, const at::Tensor& y) {
  const int64_t rows = x.size(0), in = x.size(1), out = y.size(1);
  constexpr int64_t kPanel = kernels::kRowProductColumns;
  constexpr int64_t kWorthAThread = int64_t{1} << 15;  // weights
  const int64_t grain = std::max<int64_t>(1, kWorthAThread / std::max<int64_t>(1, in * kPanel));
  const float* const x_data = x.const_data_ptr<float>();
  float* const y_data = y.mutable_data_ptr<float>();
  at::parallel_for(0, (out + kPanel - 1) / kPanel, grain, [&](int64_t begin, int64_t end) {
    kernels::row_product(x_data, w, w_stride, y_data, rows, in, out, begin * kPanel, std::min(out, end * kPanel));
  });
}

// Of bfloat16 the sums are floats, and their result is rounded once.
at::Tensor few_rows_product(const at::Tensor& x, const at::Tensor& w) {
  const at::AutoDispatchBelowAutograd no_autograd;
  const at::Tensor wide = x.to(at::kFloat).contiguous();
  const at::Tensor y = at::empty({x.size(0), w.size(0)}, wide.options());
  if (w.scalar_type() == at::kFloat) {
    multiply_few_rows(wide, w.const_data_ptr<float>(), w.stride(0), y);
    return y;
  }
  multiply_few_rows(wide, data_of<kernels::Bfloat16>(w), w.stride(0), y);
  return y.to(w.scalar_type());
}

}  // namespace

at::Tensor multiply_in_tiles(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias) {
  return multiply_large(a, b, bias);
}

at::Tensor times_transposed(const at::Tensor& x, const at::Tensor& w, const at::Tensor& bias) {
  return has_few_rows(x, w) ? plus_bias(few_rows_product(x, w), bias) : matrix_product(x, w.detach().t(), bias);
}

at::Tensor times(const at::Tensor& y, const at::Tensor& w) { return matrix_product(y, w.detach()); }

at::Tensor transposed_times(const at::Tensor& dy, const at::Tensor& x) { return matrix_product(dy.t(), x); }

at::Tensor as_rows(const at::Tensor& x) {
  return x.reshape({c10::multiply_integers(x.sizes().slice(0, static_cast<size_t>(x.dim() - 1))), x.size(-1)});
}

void add_weight_gradient(const at::Tensor& gradient, const at::Tensor& given_dy, const at::Tensor& given_x) {
  const PartScope scope("part::linear");
  const at::Tensor dy = given_dy.contiguous();
  const at::Tensor x = given_x.contiguous();
  const int64_t rows = x.size(0);
  const int64_t in = x.size(1);
  const int64_t out = dy.size(1);
  if (dy.numel() == 0 || x.numel() == 0) return;
  constexpr int64_t kWorthAThread = 1 << 18;  // multiply-adds
  at::parallel_for(0, out, std::max<int64_t>(1, kWorthAThread / std::max<int64_t>(1, rows * in)),
                   [&](int64_t begin, int64_t end) {
                     const at::Tensor scratch = at::empty({kernels::outer_products_scratch(rows, out, in)}, at::kFloat);
                     with_element_type(x, [&](auto element) {
                       using T = decltype(element);
                       kernels::add_outer_products(data_of<T>(dy), data_of<T>(x), gradient.mutable_data_ptr<float>(),
                                                   rows, out, in, begin, end, scratch.mutable_data_ptr<float>());
                     });
                   });
}

at::Tensor weight_gradient(const at::Tensor& into, const at::Tensor& dy, const at::Tensor& x) {
  const at::Tensor gradient = into.defined() ? into : at::zeros({dy.size(1), x.size(1)}, at::kFloat);
  add_weight_gradient(gradient, dy, x);
  return gradient;
}

}  // namespace siamese::ops

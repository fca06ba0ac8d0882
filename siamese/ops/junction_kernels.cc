// Fused: one pass over memory each way (kernels/junction.h). Meta: shapes.
//
// Who owns what: the kernel's structs point into dense tensors that live in the function that calls it (the caller's
// own, or dense copies of strided ones) and into what is made there. Sums over rows, the gradients of gains and scales,
// stand in RowPartials until all rows are done; then their parts are added, in order, to a new tensor or to a .grad.
#include "siamese/ops/junction_kernels.h"

#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/kernels/junction.h"
#include "siamese/ops/arguments.h"
#include "siamese/ops/gradient.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/sample_partials.h"
#include "siamese/ops/wide.h"

namespace siamese::ops::junction_op {

void check_returning(const Returning& returning, const JunctionPlan& plan) {
  constexpr const char* kOp = "junction_backward";
  check_tensors(kOp, returning.saved, plan);
  const at::Tensor& y = returning.saved[kY];
  Arguments(kOp, "y", y)
      .shape("d_y_sum", returning.d_y_sum, y.sym_sizes())
      .shape("d_x_out", returning.d_x_out, y.sym_sizes())
      .shape("statistics", returning.statistics, plan.statistics_shape(y));
  if (!returning.d_input.defined()) return;
  const at::Tensor like_input = plan.half_input ? returning.d_input : y;
  Arguments(kOp, "y", y)
      .require(!plan.half_input || like_input.scalar_type() == at::kBFloat16, "d_input", "BFloat16",
               c10::toString(like_input.scalar_type()));
  Arguments(kOp, plan.half_input ? "d_input" : "y", like_input).shape("d_input", returning.d_input, y.sym_sizes());
}

// The outputs of a pass, not yet written.
Made empty_outputs(const at::Tensor& y, const JunctionPlan& plan) {
  const auto empty_if = [&](bool made) { return made ? empty_dense(y) : no_gradient(y); };
  const at::Tensor input =
      plan.makes_input() ? at::empty_symint(y.sym_sizes(), half_if(plan.half_input, y)) : no_gradient(y);
  return {empty_if(plan.makes_y_sum()), empty_if(plan.makes_x_out()), input, empty_if(plan.makes_x_sum()),
          at::empty_symint(plan.statistics_shape(y), y.options())};
}

Made meta_forward(const PerSlot& given, const JunctionPlan& plan) {
  check_tensors("junction", given, plan);
  return empty_outputs(given[kY], plan);
}

PerSlot meta_backward(const Returning& returning, const JunctionPlan& plan, const Wanted& given_wanted) {
  check_returning(returning, plan);
  const Wanted wanted = plan.within(given_wanted, returning.saved);
  const at::Tensor& y = returning.saved[kY];
  PerSlot gradients;
  for (size_t slot = 0; slot < kSlots; ++slot) {
    if (!wanted[slot]) continue;
    gradients[slot] = slot < kXScale ? empty_dense(y) : at::empty_symint({y.sym_size(-1)}, y.options());
    if (slot == kGate) gradients[slot] = at::empty_symint({y.sym_size(0), y.sym_size(-1)}, y.options());
    if (slot == kBranch) gradients[slot] = at::empty_symint(y.sym_sizes(), half_if(plan.half_branch, y));
  }
  return gradients;
}

// The kernel knows one kind of norm in a pass.
bool has_kernel(const at::Tensor& y, const JunctionPlan& plan) {
  bool layer = false;
  bool rms = false;
  for (size_t norm = 0; norm < kNorms; ++norm) (plan.layer[norm] ? layer : rms) |= plan.norms[norm];
  return !(layer && rms) && use_fused("junction", {y});
}

namespace junction_kernels_detail {

at::Tensor dense(const at::Tensor& tensor) { return tensor.defined() ? tensor.contiguous() : tensor; }

PerSlot all_dense(const PerSlot& given) {
  PerSlot result;
  for (size_t slot = 0; slot < kSlots; ++slot) result[slot] = dense(given[slot]);
  return result;
}

int64_t rows_of(const at::Tensor& y) { return c10::multiply_integers(y.sizes().slice(0, y.sizes().size() - 1)); }

// Bytes of a stream from which on none of it is in a cache any more when the next junction reads it. Stored past the
// caches, a pass over large streams takes 0.6 to 0.8 of the time; over small ones up to 1.5 times as much.
constexpr int64_t kBeyondCache = int64_t{4} << 20;

// The plan in the kernel's words, pointing into dense tensors.
kernels::Junction pointed(const JunctionPlan& plan, const PerSlot& given, const at::Tensor& statistics) {
  kernels::Junction numbers;
  numbers.cols = given[kY].size(-1);
  numbers.x_branch = static_cast<float>(plan.x_branch);
  numbers.y_branch = static_cast<float>(plan.y_branch);
  numbers.y_skip = static_cast<float>(plan.y_skip);
  numbers.input_scale = static_cast<float>(plan.input_scale);
  numbers.x_scale = data_or_null(given[kXScale]);
  const std::array<kernels::RowNorm*, kNorms> norms = {&numbers.branch_norm, &numbers.x_norm, &numbers.y_norm,
                                                       &numbers.input_norm};
  const int64_t rows = rows_of(given[kY]);
  numbers.past_cache = rows * numbers.cols * static_cast<int64_t>(sizeof(float)) >= kBeyondCache;
  float* next = statistics.mutable_data_ptr<float>();
  for (size_t norm = 0; norm < kNorms; ++norm) {
    if (!plan.norms[norm]) continue;
    numbers.layer = plan.layer[norm];
    norms[norm]->present = true;
    norms[norm]->eps = static_cast<float>(plan.eps[norm]);
    norms[norm]->gain = data_or_null(given[gain_of(norm)]);
    if (plan.layer[norm]) {
      norms[norm]->bias = data_or_null(given[bias_of(norm)]);
      norms[norm]->mean = std::exchange(next, next + rows);
    }
    norms[norm]->rstd = std::exchange(next, next + rows);
  }
  return numbers;
}

// Without a gate all rows are alike.
int64_t samples_of(const PerSlot& given) { return given[kGate].defined() ? given[kY].size(0) : 1; }

kernels::Junction gated(kernels::Junction numbers, const at::Tensor& gate, int64_t sample) {
  if (gate.defined()) numbers.gate = gate.const_data_ptr<float>() + sample * numbers.cols;
  return numbers;
}

// The slots whose gradients are sums over rows, with the kernel's pointers to this part's sums.
std::vector<size_t> summed_slots(const Wanted& wanted) {
  std::vector<size_t> slots;
  for (size_t slot = kXScale; slot < kGate; ++slot) {
    if (wanted[slot]) slots.push_back(slot);
  }
  return slots;
}

template <class T>
void point_to_sums(kernels::JunctionGradientsOf<T>& rows, const std::vector<size_t>& slots, float* const* sums) {
  std::array<float*, kSlots> at{};
  for (size_t i = 0; i < slots.size(); ++i) at[slots[i]] = sums[i];
  rows.d_x_scale = at[kXScale];
  rows.branch_norm = {at[gain_of(kOfBranch)], at[bias_of(kOfBranch)]};
  rows.x_norm = {at[gain_of(kOfX)], at[bias_of(kOfX)]};
  rows.y_norm = {at[gain_of(kOfY)], at[bias_of(kOfY)]};
  rows.input_norm = {at[gain_of(kOfInput)], at[bias_of(kOfInput)]};
}

// The kernel knows one type for the branch and its input: bfloat16 if there is nothing else among them. Otherwise
// floats, which are rounded after it.
bool all_half(const JunctionPlan& plan, bool has_branch) {
  const bool branch_fits = !has_branch || plan.half_branch;
  const bool input_fits = !plan.makes_input() || plan.half_input;
  return branch_fits && input_fits && (plan.half_branch || plan.half_input);
}

template <class T>
at::Tensor as_element(const at::Tensor& tensor) {
  constexpr auto kType = std::is_same_v<T, float> ? at::kFloat : at::kBFloat16;
  return tensor.defined() ? tensor.to(kType).contiguous() : tensor;
}

template <class T>
const T* element_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? data_of<T>(tensor) : nullptr;
}

template <class T>
void kernel_forward(const PerSlot& given, const JunctionPlan& plan, const Made& made) {
  const auto& [y_sum, x_out, given_input, x_sum, statistics] = made;
  const at::Tensor& y = given[kY];
  const kernels::Junction numbers = pointed(plan, given, statistics);
  const at::Tensor branch = as_element<T>(given[kBranch]);
  const bool rounds = plan.makes_input() && plan.half_input && std::is_same_v<T, float>;
  const at::Tensor input = rounds ? empty_dense(y) : given_input;
  kernels::JunctionRowsOf<T> rows;
  rows.branch = element_or_null<T>(branch);
  rows.x = data_or_null(given[kX]);
  rows.y = data_or_null(y);
  if (plan.makes_y_sum()) rows.y_sum = y_sum.mutable_data_ptr<float>();
  if (plan.norms[kOfX]) rows.x_out = x_out.mutable_data_ptr<float>();
  // Without a norm of its own X is U.
  if (plan.adds_to_x()) rows.x_sum = (plan.norms[kOfX] ? x_sum : x_out).mutable_data_ptr<float>();
  if (plan.makes_input()) rows.input = writable_of<T>(input);
  const SampleRows samples(rows_of(y), samples_of(given));
  at::parallel_for(0, rows_of(y), row_grain(numbers.cols), [&](int64_t begin, int64_t end) {
    static thread_local std::vector<float> scratch;
    scratch.resize(static_cast<size_t>(kernels::kJunctionScratchRows * numbers.cols));
    kernels::JunctionRowsOf<T> mine = rows;
    mine.scratch = scratch.data();
    samples.for_each(begin, end, [&](int64_t first, int64_t last, int64_t sample) {
      kernels::junction_forward(gated(numbers, given[kGate], sample), mine, first, last);
    });
  });
  if (rounds) given_input.copy_(input);
}

// `in_place`: sums go to .grad where ops/gradient.h says so.
template <class T>
PerSlot kernel_backward(const Returning& returning, const JunctionPlan& plan, const Wanted& wanted, bool in_place) {
  const PerSlot given = all_dense(returning.saved);
  const at::Tensor statistics = returning.statistics.contiguous();
  const at::Tensor d_y_sum = dense(returning.d_y_sum);
  const at::Tensor d_x_out = dense(returning.d_x_out);
  const at::Tensor d_input = as_element<T>(returning.d_input);
  const at::Tensor branch =
      plan.norms[kOfBranch] || plan.has_gate ? as_element<T>(returning.saved[kBranch]) : at::Tensor();
  const at::Tensor& y = given[kY];
  const kernels::Junction numbers = pointed(plan, given, statistics);

  PerSlot gradients;
  if (reaches_branch(wanted)) {  // the way to its norm's gradients, too
    gradients[kBranch] = at::empty(y.sizes(), half_if(!std::is_same_v<T, float>, y));
  }
  if (wanted[kX]) gradients[kX] = empty_dense(y);
  if (wanted[kY]) gradients[kY] = empty_dense(y);
  kernels::JunctionGradientsOf<T> rows;
  rows.branch = element_or_null<T>(branch);
  rows.x_sum = data_or_null(given[kX]);
  rows.y_sum = data_or_null(y);
  rows.d_x_out = data_or_null(d_x_out);
  rows.d_y_sum = data_or_null(d_y_sum);
  rows.d_input = element_or_null<T>(d_input);
  rows.d_x = writable_or_null(gradients[kX]);
  rows.d_y = writable_or_null(gradients[kY]);
  if (gradients[kBranch].defined()) rows.d_branch = writable_of<T>(gradients[kBranch]);

  const std::vector<size_t> summed = summed_slots(wanted);
  RowPartials partials(rows_of(y), numbers.cols, static_cast<int>(summed.size()));
  SamplePartials gates(SampleRows(rows_of(y), samples_of(given)), numbers.cols, wanted[kGate]);
  partials.for_each([&](int64_t begin, int64_t end, float* const* sums) {
    static thread_local std::vector<float> scratch;
    scratch.resize(static_cast<size_t>(kernels::kJunctionScratchRows * numbers.cols));
    kernels::JunctionGradientsOf<T> mine = rows;
    mine.scratch = scratch.data();
    point_to_sums(mine, summed, sums);
    gates.for_each(begin, end, [&](int64_t first, int64_t last, int64_t sample, float* d_gate) {
      mine.d_gate = d_gate;
      kernels::junction_backward(gated(numbers, given[kGate], sample), mine, first, last);
    });
  });
  for (size_t i = 0; i < summed.size(); ++i) {
    const at::Tensor& parameter = returning.saved[summed[i]];
    if (in_place && adds_in_place(parameter)) {
      partials.add_total(static_cast<int>(i), parameter.grad());
    } else {
      gradients[summed[i]] = partials.total(static_cast<int>(i));
    }
  }
  if (wanted[kGate]) gradients[kGate] = gates.total();
  if (!wanted[kBranch]) gradients[kBranch] = at::Tensor();
  if (wanted[kBranch] && plan.half_branch) gradients[kBranch] = gradients[kBranch].to(at::kBFloat16);
  return gradients;
}

PerSlot kernel_backward_of(const Returning& returning, const JunctionPlan& plan, const Wanted& wanted, bool in_place) {
  const auto run = all_half(plan, reaches_branch(wanted)) ? kernel_backward<kernels::Bfloat16> : kernel_backward<float>;
  return run(returning, plan, wanted, in_place);
}

}  // namespace junction_kernels_detail

Made fused_forward(const PerSlot& strided, const JunctionPlan& plan) {
  using namespace junction_kernels_detail;
  check_tensors("junction", strided, plan);
  if (!has_kernel(strided[kY], plan)) return plain_forward(strided, plan);
  const PerSlot given = all_dense(strided);
  const Made made = empty_outputs(given[kY], plan);
  const auto run = all_half(plan, plan.has_branch) ? kernel_forward<kernels::Bfloat16> : kernel_forward<float>;
  run(given, plan, made);
  return made;
}

PerSlot fused_backward(const Returning& returning, const JunctionPlan& plan, const Wanted& wanted) {
  check_returning(returning, plan);
  if (!has_kernel(returning.saved[kY], plan)) return plain_backward(returning, plan, wanted);
  return junction_kernels_detail::kernel_backward_of(returning, plan, plan.within(wanted, returning.saved),
                                                     /*in_place=*/false);
}

PerSlot backward_in_place(const Returning& returning, const JunctionPlan& plan, const Wanted& wanted) {
  check_returning(returning, plan);
  return junction_kernels_detail::kernel_backward_of(returning, plan, plan.within(wanted, returning.saved),
                                                     /*in_place=*/true);
}

}  // namespace siamese::ops::junction_op

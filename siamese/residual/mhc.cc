#include "siamese/residual/mhc.h"

#include <cmath>

#include <ATen/ATen.h>

#include "siamese/ops/activation.h"
#include "siamese/ops/reduce.h"
#include "siamese/ops/row_linear.h"
#include "siamese/ops/sinkhorn.h"
#include "siamese/residual/many_streams.h"

namespace siamese::residual {
namespace {

using nn::Init;
using nn::ParameterKind;

// [n!, n]: row r is the r-th permutation in lexicographic order. Its Lehmer code is r in factorial digits; from the
// last place to the first, each digit moves those behind it that are not smaller up by one. Arithmetic on tensors, so
// that it is the same on any device and for a compiler that traces.
at::Tensor all_permutations(int64_t n, const at::TensorOptions& options) {
  int64_t count = 1;
  for (int64_t i = 2; i <= n; ++i) count *= i;
  const at::Tensor ranks = at::arange(count, options);
  std::vector<at::Tensor> places;
  for (int64_t i = 0; i < n; ++i) {
    count /= n - i;
    places.push_back(at::remainder(at::div(ranks, count, "floor"), n - i));
  }
  for (int64_t i = n - 2; i >= 0; --i) {
    const at::Tensor& here = places[static_cast<size_t>(i)];
    for (int64_t j = i + 1; j < n; ++j) {
      at::Tensor& behind = places[static_cast<size_t>(j)];
      behind = behind + (behind >= here).to(behind.scalar_type());
    }
  }
  return at::stack(places, -1);
}

// logits [..., n!] -> [..., n, n], what stream j takes of stream i: the weights of the permutations that send i to j.
at::Tensor mean_permutation(const at::Tensor& logits, int64_t n) {
  // Not at::softmax, whose backward cuts by threads.
  const at::Tensor weights = (logits - ops::log_sum_exp(logits).unsqueeze(-1)).exp();
  const at::TensorOptions whole = logits.options().dtype(at::kLong).requires_grad(false);
  const at::Tensor goes_to = all_permutations(n, whole).unsqueeze(1);                                 // [n!, 1, n]
  const at::Tensor sends = (goes_to == at::arange(n, whole).unsqueeze(-1)).to(logits.scalar_type());  // [n!, j, i]
  return ops::row_linear(weights, sends.flatten(1).t().contiguous()).unflatten(-1, {n, n});
}

class MhcJunction : public MixingJunction {
 public:
  MhcJunction(const MhcOptions& options, const nn::Scope& scope, const Site& at, const Build& build)
      : MixingJunction(scope, at, build), options_(options), width_(build.width), eps_(build.norm.eps) {
    const int64_t n = options.streams;
    const int64_t in = n * build.width;
    const int64_t out = options.res_logits() + 2 * n;
    const bool single = options.init == MhcInit::single;
    const Init xavier = Init::uniform(std::sqrt(6.0 / static_cast<double>(in + out)));
    phi_ = scope.child("mix").add("weight", ParameterKind::linear, {out, in}, single ? Init::zeros() : xavier);
    const bool mixes = options.res != MhcRes::identity;
    scale_ = scope.add("mix_scale", ParameterKind::scalar, {mixes ? 3 : 2}, {.constant = 0.01});
    const Init off{.constant = single ? -3.0 : 0.0};
    pre_bias_ = scope.add("pre_bias", ParameterKind::scalar, {n}, off);
    post_bias_ = scope.add("post_bias", ParameterKind::scalar, {n}, Init::zeros());
    add_res_bias(scope, single);
    if (single) nn::set_initial(pre_bias_, [&](at::Tensor value) { value[at.index % n] = 3; });
  }

 protected:
  Mixing mixing(std::vector<at::Tensor>& streams) const override {
    const int64_t n = options_.streams;
    // v phi and v^2 stream by stream: v itself would be a copy of all streams.
    at::Tensor product;
    at::Tensor squares;
    for (int64_t i = 0; i < n; ++i) {
      at::Tensor& stream = streams[static_cast<size_t>(i)];
      ops::RowProjection made = ops::row_project(stream, phi_.value().narrow(1, i * width_, width_));
      stream = std::move(made.x);
      product = i == 0 ? made.y : product + made.y;
      squares = i == 0 ? made.squares : squares + made.squares;
    }
    const at::Tensor raw = product * at::rsqrt(squares / static_cast<double>(n * width_) + eps_);
    const auto each = [&](const nn::Slot& parameter) { return for_each_token(parameter.value(), streams[0]); };
    const at::Tensor scale = each(scale_);
    const auto part = [&](int64_t which, int64_t first, int64_t count) {
      return scale.narrow(-1, which, 1) * raw.narrow(-1, first, count);
    };
    const at::Tensor pre = part(0, 0, n) + each(pre_bias_);
    const at::Tensor post = part(1, n, n) + each(post_bias_);
    at::Tensor res;
    switch (options_.res) {
      case MhcRes::sinkhorn:
        res = part(2, 2 * n, n * n).unflatten(-1, {n, n}) + each(res_bias_);
        return {ops::sigmoid(pre), ops::sinkhorn(res, options_.iterations), 2 * ops::sigmoid(post)};
      case MhcRes::identity:
        res = no_mixing(raw);
        break;
      case MhcRes::permutations:
        res = mean_permutation(part(2, 2 * n, options_.res_logits()) + each(res_bias_), n);
        break;
    }
    return {ops::sigmoid(pre), res, 2 * ops::sigmoid(post)};
  }

 private:
  void add_res_bias(const nn::Scope& scope, bool single) {
    const int64_t n = options_.streams;
    if (options_.res == MhcRes::sinkhorn) {
      res_bias_ = scope.add("res_bias", ParameterKind::scalar, {n, n}, {.constant = single ? -3.0 : 0.0});
      if (single) nn::set_initial(res_bias_, [](at::Tensor value) { value.fill_diagonal_(3); });
    } else if (options_.res == MhcRes::permutations) {
      const Init others{.constant = single ? -8.0 : 0.0};
      res_bias_ = scope.add("res_bias", ParameterKind::scalar, {options_.res_logits()}, others);
      nn::set_initial(res_bias_, [](at::Tensor value) { value[0] = 0; });  // the identity
    }
  }

  // The identity for each token of [..., k].
  at::Tensor no_mixing(const at::Tensor& raw) const {
    const int64_t n = options_.streams;
    c10::SymDimVector shape(raw.sym_sizes().begin(), raw.sym_sizes().end() - 1);
    shape.append({n, n});
    return at::eye(n, raw.options().requires_grad(false)).expand_symint(shape);
  }

  MhcOptions options_;
  int64_t width_;
  double eps_;
  nn::Slot phi_;
  nn::Slot scale_;
  nn::Slot pre_bias_;
  nn::Slot post_bias_;
  nn::Slot res_bias_;
};

class ManifoldHyperConnections : public ManyStreams {
 public:
  ManifoldHyperConnections(const MhcOptions& options, const nn::Scope& scope, const Build& build)
      : ManyStreams(scope, build, options.streams), options_(options) {}
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return std::make_unique<MhcJunction>(options_, scope, site, build());
  }

 private:
  MhcOptions options_;
};

}  // namespace

void MhcOptions::check() const {
  check_stream_count("mhc.streams", streams);
  if (iterations < 1 || iterations > 1000) {
    throw UsageError("mhc.iterations: expected a number from 1 to 1000, got " + std::to_string(iterations));
  }
  if (res != MhcRes::sinkhorn && iterations != MhcOptions().iterations) {
    throw UsageError("mhc.iterations: has no effect: it is used with res=sinkhorn, and res is " +
                     std::string(enum_text(res)));
  }
  if (res == MhcRes::permutations && streams > 5) {
    throw UsageError("mhc.streams: expected 5 or fewer with res=permutations, got " + std::to_string(streams) +
                     ": a token has a weight for each of n! permutations, 120 of 5 streams, 720 of 6");
  }
}

int64_t MhcOptions::res_logits() const {
  if (res == MhcRes::identity) return 0;
  if (res == MhcRes::sinkhorn) return streams * streams;
  int64_t count = 1;
  for (int64_t i = 2; i <= streams; ++i) count *= i;
  return count;
}

Scheme mhc_scheme() {
  return define_scheme<MhcOptions>(
      {.name = "mhc",
       .equation = "o = G(LN(H_pre x));  x <- Sinkhorn(H_res) x + H_post o;  out = LN(sum x)",
       .paper = "mHC, arXiv 2512.24880; res=permutations: mHC-lite, arXiv 2601.05732",
       .full = R"(x_0 = n copies of E
raw = v phi / sqrt(mean(v^2) + eps)           v = all n d numbers of the token
H_pre  = sigmoid( a_pre raw_pre + b_pre )
H_post = 2 sigmoid( a_post raw_post + b_post )
H_res  = Sinkhorn( a_res raw_res + b_res )    exp, then 20 times columns and rows to sum 1
         res=identity: I, and no a_res, b_res
         res=permutations: sum_r c_r P_r, c = softmax( a_res raw_res + b_res ) over the n! permutations
x  <- H_res x + H_post' G_i( LN_i( H_pre x ) )
output = LN_final( sum of the streams )
init: a = 0.01; single: phi = 0, b_pre = -3 but +3 at stream i mod n, b_post = 0, b_res = -3 but +3 on the diagonal;
      xavier: phi Xavier-uniform, biases 0; permutations, single: b_res = 0 for the identity, -8 for the others)"},
      [](const MhcOptions& options, const nn::Scope& scope, const Build& build) {
        return std::make_unique<ManifoldHyperConnections>(options, scope, build);
      });
}

}  // namespace siamese::residual

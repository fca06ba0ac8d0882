#include "siamese/residual/denseformer.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "siamese/ops/stream_mix.h"
#include "siamese/residual/one_stream.h"
#include "siamese/residual/pass.h"
#include "siamese/residual/pre.h"

namespace siamese::residual {
namespace {

std::string output_name(int64_t n) { return "y" + std::to_string(n); }

// The FFN site of block n-1, after which output n is there.
class DenseFormerFfn : public Junction {
 public:
  DenseFormerFfn(const DenseFormerOptions& options, const nn::Scope& scope, const Site& at, const Build& build)
      : Junction(at),
        output_(at.block + 1),
        kept_(options.kept(output_, at.blocks)),
        pre_(pre_junction(scope, at, build)) {
    if (!options.averages(output_)) return;
    taken_ = options.taken(output_);
    const auto count = static_cast<int64_t>(taken_.size());
    mix_ = scope.add("mix", nn::ParameterKind::stream_mix, {count}, nn::Init::zeros());
    nn::set_initial(mix_, [&](at::Tensor value) { value[count - 1] = 1; });
  }

  ReadResult read(const Streams& streams, Recorder* recorder) const override { return pre_->read(streams, recorder); }

  Streams write(const Streams& streams, const Branch& branch) const override {
    const bool kept_own = !kept_.empty() && kept_.back() == output_;
    if (taken_.empty() && !kept_own) return pre_->write(streams, branch);
    const Streams written = deferring_to_first(streams, branch);
    ops::Junction pass = pass_over_first(written);
    pass.half_input = false;  // no branch reads it here
    const at::Tensor own = ops::junction(pass).y;
    Streams outputs = streams;  // y_j, in order, with the own one last
    outputs.list.erase(outputs.list.begin());
    outputs.list.push_back({output_name(output_), at::alias(own)});
    const at::Tensor h = taken_.empty() ? own : averaged(outputs);
    Streams next;
    next.rounds_input = streams.rounds_input;
    next.list.push_back({"h", h});
    for (const int64_t j : kept_) next.list.push_back(*find(outputs, j));
    return next;
  }

 private:
  static std::vector<Stream>::iterator find(Streams& outputs, int64_t j) {
    const auto found = std::find_if(outputs.list.begin(), outputs.list.end(),
                                    [name = output_name(j)](const Stream& stream) { return stream.name == name; });
    if (found != outputs.list.end()) return found;
    throw UsageError("denseformer: expected the streams of this site's read with " + output_name(j) + ", got others");
  }

  // sum_j alpha_j y_j, as many at a time as one pass takes. The outputs go on as the passes hand them on.
  at::Tensor averaged(Streams& outputs) const {
    constexpr size_t kAtOnce = 4;
    at::Tensor sum;
    for (size_t first = 0; first < taken_.size();) {
      std::vector<at::Tensor> terms, weights;
      if (sum.defined()) {
        terms.push_back(sum);
        weights.push_back(at::ones({1}, mix_.value().options()));
      }
      const size_t count = std::min(kAtOnce - terms.size(), taken_.size() - first);
      weights.push_back(mix_.value().narrow(0, static_cast<int64_t>(first), static_cast<int64_t>(count)));
      for (size_t i = first; i < first + count; ++i) terms.push_back(find(outputs, taken_[i])->value);
      const ops::StreamRead made = ops::stream_read(terms, at::cat(weights).to(terms[0].scalar_type()), {});
      const size_t begin = terms.size() - count;
      for (size_t i = 0; i < count; ++i) find(outputs, taken_[first + i])->value = made.streams[begin + i];
      sum = made.input;
      first += count;
    }
    return sum;
  }

  int64_t output_;              // n
  std::vector<int64_t> kept_;   // outputs that later averages take
  std::vector<int64_t> taken_;  // outputs that this average takes; empty: none is made here
  std::unique_ptr<Junction> pre_;
  nn::Slot mix_;  // alpha
};

class DenseFormer : public OneStream {
 public:
  DenseFormer(const DenseFormerOptions& options, const nn::Scope& scope, const Build& build)
      : OneStream(scope, build), options_(options) {}

  Streams open(const at::Tensor& embedding) const override {
    Streams streams = OneStream::open(embedding);
    if (!options_.kept(0, build().blocks).empty()) streams.list.push_back({output_name(0), embedding});
    return streams;
  }
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    if (site.kind == SiteKind::attention) return pre_junction(scope, site, build());
    return std::make_unique<DenseFormerFfn>(options_, scope, site, build());
  }

 private:
  DenseFormerOptions options_;
};

}  // namespace

void DenseFormerOptions::check() const {
  for (const auto& [key, value] : {std::pair{"dilation", dilation}, std::pair{"period", period}}) {
    if (value >= 1 && value <= 1'000'000) continue;
    throw UsageError(std::string("denseformer.") + key + ": expected a number of blocks from 1 to 1000000, got " +
                     std::to_string(value));
  }
}

std::vector<int64_t> DenseFormerOptions::taken(int64_t n) const {
  std::vector<int64_t> outputs;
  for (int64_t j = n % dilation; j <= n; j += dilation) outputs.push_back(j);
  return outputs;
}

std::vector<int64_t> DenseFormerOptions::kept(int64_t n, int64_t blocks) const {
  std::vector<int64_t> outputs;
  for (int64_t j = 0; j <= n; ++j) {
    for (int64_t later = (n / period + 1) * period; later <= blocks; later += period) {
      if (later % dilation != j % dilation) continue;
      outputs.push_back(j);
      break;
    }
  }
  return outputs;
}

Scheme denseformer_scheme() {
  return define_scheme<DenseFormerOptions>(
      {.name = "denseformer",
       .equation = "h <- h + G(LN(h));  after block n: y_n = h, h <- sum_j alpha_nj y_j;  out = LN(h)",
       .paper = "DenseFormer, arXiv 2402.02622",
       .full = R"(h_0 = y_0 = E
h  <- h + G_i( LN_i(h) )
y_n = h                                       after n blocks, n = 1 ... L
h  <- sum_j alpha_n,j y_j                     over j <= n, j = n modulo dilation; only if period divides n
output = LN_final(h)
init: alpha_n = (0, ..., 0, 1): Pre-Norm)"},
      [](const DenseFormerOptions& options, const nn::Scope& scope, const Build& build) {
        return std::make_unique<DenseFormer>(options, scope, build);
      });
}

}  // namespace siamese::residual

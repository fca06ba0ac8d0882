#include "python/binding/python_scheme.h"

#include <memory>
#include <utility>

#include "python/binding/engine_model.h"

#include "siamese/base/check.h"
#include "siamese/residual/registry.h"

namespace siamese::python {
namespace {

// The object that has the verbs. Whoever lets go of it last need not hold the GIL.
class Verbs {
 public:
  explicit Verbs(py::object object) : object_(std::move(object)) {}
  ~Verbs() {
    const py::gil_scoped_acquire gil;
    object_ = py::object();
  }
  Verbs(const Verbs&) = delete;
  Verbs& operator=(const Verbs&) = delete;

  // What the function of this name returns; what it raises goes through.
  template <class Result, class... Arguments>
  Result call(const char* name, Arguments&&... arguments) const {
    const py::gil_scoped_acquire gil;
    return object_.attr(name)(std::forward<Arguments>(arguments)...).template cast<Result>();
  }

 private:
  py::object object_;
};

thread_local std::shared_ptr<const Verbs> verbs_in_use;

Tensors values_of(const residual::Streams& streams) {
  Tensors values;
  for (const auto& stream : streams.list) values.push_back(stream.value);
  return values;
}

residual::Streams streams_of(Tensors values) {
  residual::Streams streams;
  for (auto& value : values) streams.list.push_back({"s" + std::to_string(streams.list.size()), std::move(value)});
  return streams;
}

class PythonJunction : public residual::Junction {
 public:
  PythonJunction(std::shared_ptr<const Verbs> verbs, const residual::Site& site)
      : Junction(site), verbs_(std::move(verbs)) {}

  residual::ReadResult read(const residual::Streams& streams, residual::Recorder* recorder) const override {
    for (const auto& stream : streams.list) record(recorder, stream.name, stream.value, {});
    using Read = std::pair<Tensors, at::Tensor>;
    Read made = verbs_->call<Read>("read", site().index, values_of(streams));
    return {streams_of(std::move(made.first)), std::move(made.second)};
  }

  residual::Streams write(const residual::Streams& streams, const residual::Branch& branch) const override {
    const MaybeTensor gate = branch.gate.defined() ? MaybeTensor(branch.gate) : std::nullopt;
    return streams_of(verbs_->call<Tensors>("write", site().index, values_of(streams), branch.value, gate));
  }

 private:
  std::shared_ptr<const Verbs> verbs_;
};

class PythonTopology : public residual::Topology {
 public:
  explicit PythonTopology(std::shared_ptr<const Verbs> verbs) : verbs_(std::move(verbs)) {}

  residual::Streams open(const at::Tensor& embedding) const override {
    return streams_of(verbs_->call<Tensors>("open", embedding));
  }
  std::unique_ptr<residual::Junction> junction(const nn::Scope&, const residual::Site& site) const override {
    return std::make_unique<PythonJunction>(verbs_, site);
  }
  at::Tensor close(const residual::Streams& streams) const override {
    return verbs_->call<at::Tensor>("close", values_of(streams));
  }

  nn::AttentionNorm attention_norm(const residual::Site& site) const override {
    const auto name = verbs_->call<std::string>("attention_norm", site.index);
    const auto norm = enum_from_text<nn::AttentionNorm>(name);
    if (!norm) throw UsageError("hints: attention_norm: expected none, qk, qk_full or qkv, got '" + name + "'");
    return *norm;
  }
  residual::BranchInit branch_init(const residual::Site& site) const override {
    using Factors = std::tuple<double, double, double, bool>;
    const auto [value, ffn_input, output, depth_factor] = verbs_->call<Factors>("branch_init", site.index);
    return {value, ffn_input, output, depth_factor};
  }

 private:
  std::shared_ptr<const Verbs> verbs_;
};

std::unique_ptr<residual::Topology> make_python_topology() {
  if (verbs_in_use == nullptr) {
    throw UsageError(
        "residual scheme 'python': stands for a class, which siamesenorm.Model(config, scheme=...) takes; it has no "
        "meaning in a config");
  }
  return std::make_unique<PythonTopology>(verbs_in_use);
}

}  // namespace

void register_python_scheme() {
  residual::register_scheme(residual::define_scheme<residual::NoOptions>(
      {.name = kPythonScheme, .equation = "the four verbs of a class in Python", .paper = "", .full = ""},
      [](const residual::NoOptions&, const nn::Scope&, const residual::Build&) { return make_python_topology(); }));
}

PythonSchemeGuard::PythonSchemeGuard(py::object verbs) {
  if (!verbs.is_none()) verbs_in_use = std::make_shared<const Verbs>(std::move(verbs));
}

PythonSchemeGuard::~PythonSchemeGuard() { verbs_in_use.reset(); }

}  // namespace siamese::python

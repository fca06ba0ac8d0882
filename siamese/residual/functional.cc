#include "siamese/residual/functional.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/residual/registry.h"

namespace siamese::residual {
namespace functional_detail {

nn::Parameters shapes_only() { return nn::Parameters(0, at::kFloat, at::kMeta); }

std::vector<ParameterSpec> specs_of(const nn::Parameters& parameters) {
  std::vector<ParameterSpec> specs;
  for (const auto& parameter : parameters.list()) {
    specs.push_back({parameter.name, parameter.kind, parameter.value.sizes().vec()});
  }
  return specs;
}

nn::Parameters fresh(uint64_t seed, const at::TensorOptions& options) {
  return nn::Parameters(seed, c10::typeMetaToScalarType(options.dtype()), options.device());
}

nn::Scope scope_of(const nn::Parameters& parameters, const std::string& prefix) {
  const nn::Scope root(parameters);
  return prefix.empty() ? root : root.child(prefix);
}

// The list with or without a gate at its end.
Streams streams_of(StreamsLayout layout, at::TensorList tensors) {
  if (layout.pending && tensors.size() == layout.tensors() + 1) layout.pending->has_gate = true;
  return unflatten(layout, tensors);
}

}  // namespace functional_detail

FunctionalScheme::FunctionalScheme(const std::string& scheme, const Build& build)
    : text_(canonical_scheme(scheme)), build_(build), ends_{functional_detail::shapes_only(), nullptr, {}} {
  if (build.width < 1)
    throw UsageError("functional scheme: width: expected 1 or more, got " + std::to_string(build.width));
  if (build.blocks < 1) {
    throw UsageError("functional scheme: blocks: expected 1 or more, got " + std::to_string(build.blocks));
  }
  ends_.topology = make_topology(text_, nn::Scope(ends_.parameters), build);
  ends_.specs = functional_detail::specs_of(ends_.parameters);
  for (int64_t index = 0; index < 2 * build.blocks; ++index) {
    Place place{functional_detail::shapes_only(), nullptr, {}};
    place.junction = ends_.topology->junction(nn::Scope(place.parameters), site_at(index, build.blocks));
    place.specs = functional_detail::specs_of(place.parameters);
    sites_.push_back(std::move(place));
  }
  find_layouts();
}

void FunctionalScheme::find_layouts() {
  const c10::NoGradGuard no_grad;
  const at::TensorOptions host = at::TensorOptions().dtype(at::kFloat).device(at::kCPU);
  const at::Tensor token = at::zeros({1, 1, build_.width}, host);
  const nn::Parameters ends(0);
  const auto topology = make_topology(text_, nn::Scope(ends), build_);
  Streams streams = topology->open(token);
  for (const auto& place : sites_) {
    const nn::Parameters own(0);
    const auto junction = topology->junction(nn::Scope(own), place.junction->site());
    before_read_.push_back(flatten(streams).layout);
    const ReadResult read = junction->read(streams, nullptr);
    after_read_.push_back(flatten(read.streams).layout);
    streams = junction->write(read.streams, {token, {}});
  }
  before_read_.push_back(flatten(streams).layout);
}

const FunctionalScheme::Place& FunctionalScheme::place(int64_t site) const {
  if (site < 0 || site >= sites()) {
    throw UsageError(text_ + ": site: expected 0 to " + std::to_string(sites() - 1) + ", got " + std::to_string(site));
  }
  return sites_[static_cast<size_t>(site)];
}

const std::vector<ParameterSpec>& FunctionalScheme::site_parameters(int64_t site) const { return place(site).specs; }

std::vector<at::Tensor> FunctionalScheme::initial_ends(uint64_t seed, const at::TensorOptions& options,
                                                       const std::string& prefix) const {
  const nn::Parameters parameters = functional_detail::fresh(seed, options);
  make_topology(text_, functional_detail::scope_of(parameters, prefix), build_);
  return parameters.values();
}

std::vector<at::Tensor> FunctionalScheme::initial_site(int64_t site, uint64_t seed, const at::TensorOptions& options,
                                                       const std::string& prefix) const {
  const nn::Parameters parameters = functional_detail::fresh(seed, options);
  topology().junction(functional_detail::scope_of(parameters, prefix), place(site).junction->site());
  return parameters.values();
}

const StreamsLayout& FunctionalScheme::before_read(int64_t site) const {
  if (site != sites()) place(site);
  return before_read_[static_cast<size_t>(site)];
}

const StreamsLayout& FunctionalScheme::after_read(int64_t site) const {
  place(site);
  return after_read_[static_cast<size_t>(site)];
}

std::vector<at::Tensor> FunctionalScheme::open(at::TensorList ends, const at::Tensor& embedding) const {
  const nn::ParameterGuard guard(ends_.parameters, ends.vec());
  return flatten(topology().open(embedding)).tensors;
}

FunctionalScheme::Read FunctionalScheme::read(int64_t site, at::TensorList parameters, at::TensorList streams) const {
  const Place& here = place(site);
  const nn::ParameterGuard guard(here.parameters, parameters.vec());
  ReadResult result = here.junction->read(functional_detail::streams_of(before_read(site), streams), nullptr);
  return {flatten(result.streams).tensors, std::move(result.branch_input)};
}

std::vector<at::Tensor> FunctionalScheme::write(int64_t site, at::TensorList parameters, at::TensorList streams,
                                                const at::Tensor& branch, const at::Tensor& gate) const {
  const Place& here = place(site);
  const nn::ParameterGuard guard(here.parameters, parameters.vec());
  return flatten(here.junction->write(unflatten(after_read(site), streams), {branch, gate})).tensors;
}

at::Tensor FunctionalScheme::close(at::TensorList ends, at::TensorList streams) const {
  const nn::ParameterGuard guard(ends_.parameters, ends.vec());
  return topology().close(functional_detail::streams_of(before_read(sites()), streams));
}

}  // namespace siamese::residual

#include "siamese/residual/registry.h"

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/base/nearest.h"
#include "siamese/residual/attn_res.h"
#include "siamese/residual/deepnorm.h"
#include "siamese/residual/denseformer.h"
#include "siamese/residual/embed.h"
#include "siamese/residual/hc.h"
#include "siamese/residual/hybrid.h"
#include "siamese/residual/keel.h"
#include "siamese/residual/lambda.h"
#include "siamese/residual/lns.h"
#include "siamese/residual/mhc.h"
#include "siamese/residual/mixln.h"
#include "siamese/residual/mv_split.h"
#include "siamese/residual/olmo2.h"
#include "siamese/residual/orthogonal.h"
#include "siamese/residual/peri.h"
#include "siamese/residual/post.h"
#include "siamese/residual/pre.h"
#include "siamese/residual/resi_dual.h"
#include "siamese/residual/sandwich.h"
#include "siamese/residual/siamese.h"
#include "siamese/residual/span.h"

namespace siamese::residual {
namespace {

std::vector<Scheme>& list() {
  static std::vector<Scheme> all = {
      pre_scheme(),       post_scheme(),     embed_scheme(),  peri_scheme(),        sandwich_scheme(),
      olmo2_scheme(),     deepnorm_scheme(), mixln_scheme(),  lns_scheme(),         hybrid_scheme(),
      resi_dual_scheme(), span_scheme(),     keel_scheme(),   hc_scheme(),          mhc_scheme(),
      attn_res_scheme(),  siamese_scheme(),  lambda_scheme(), denseformer_scheme(), orthogonal_scheme(),
      mv_split_scheme(),
  };
  return all;
}

}  // namespace

const std::vector<Scheme>& schemes() { return list(); }

void register_scheme(Scheme scheme) {
  for (const auto& known : list()) {
    if (known.doc.name == scheme.doc.name)
      throw UsageError("residual scheme '" + known.doc.name + "' is registered already");
  }
  list().push_back(std::move(scheme));
}

const Scheme& find_scheme(const SchemeText& text) {
  std::vector<std::string> names;
  for (const auto& scheme : list()) {
    if (scheme.doc.name == text.name) return scheme;
    names.push_back(scheme.doc.name);
  }
  throw UsageError("unknown residual scheme '" + text.name + "'" + did_you_mean(text.name, names) +
                   "; known: " + join(names));
}

void check_factor(const char* key, double value) {
  if (!(value >= 1e-6 && value <= 1e6)) {
    throw UsageError(std::string(key) + ": expected a factor from 1e-6 to 1e6, got " + config::print(value).text);
  }
}

std::string canonical_scheme(const std::string& text) {
  SchemeText parsed = parse_scheme_text(text);
  parsed.arguments = find_scheme(parsed).canonical(parsed.arguments);
  return print_scheme_text(parsed);
}

std::unique_ptr<Topology> make_topology(const std::string& text, const nn::Scope& scope, const Build& build) {
  const SchemeText parsed = parse_scheme_text(text);
  auto topology = find_scheme(parsed).make(parsed.arguments, scope, build);
  if (build.causal && topology->mixes_tokens()) {
    throw UsageError("residual scheme '" + text +
                     "' looks across all tokens of a sample, and in a causal model (lm, moe) a token would see those "
                     "after it; expected a scheme that stays within a token, or a model of images (vit, dit)");
  }
  return topology;
}

}  // namespace siamese::residual

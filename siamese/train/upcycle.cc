#include "siamese/train/upcycle.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/config/fields.h"
#include "siamese/models/registry.h"
#include "siamese/models/stack.h"
#include "siamese/residual/lambda.h"
#include "siamese/residual/mhc.h"
#include "siamese/residual/mixln.h"
#include "siamese/residual/siamese.h"
#include "siamese/train/residual_warmup.h"

namespace siamese::train {
namespace {

// A parameter of a scheme by its place: "blocks.1.ffn_junction.y_norm.weight" is part y_norm, role weight of site 3.
struct Place {
  std::optional<residual::Site> site;  // none: the close
  std::string owner;                   // "blocks.1.ffn_junction", "close"
  std::string part;                    // "y_norm", "x_scale"
  std::string role;                    // "weight", "bias"; "" for what is no norm
};

struct Given {
  Origin origin;
  double factor = 1;  // scaled: on the source's gain and shift
};

// What makes the scheme Pre-Norm. `copied` and `scaled` take the source's norm of the same site; nothing: no rule.
using GivingRule = std::optional<Given> (*)(const Place& place, const nn::Parameters& target);

std::optional<Given> give_pre(const Place& place, const nn::Parameters&) {
  if (place.part == "norm") return Given{Origin::copied};
  return std::nullopt;
}

// s_l = 1 / sqrt(l + 1) multiplies what the norm returns, so its inverse on gain and shift undoes it.
std::optional<Given> give_lns(const Place& place, const nn::Parameters&) {
  if (place.part != "norm") return std::nullopt;
  if (!place.site) return Given{Origin::copied};
  return Given{Origin::scaled, std::sqrt(static_cast<double>(place.site->block + 1))};
}

// r = 1, m = 0 and beta = 0 leave the Pre-Norm block.
std::optional<Given> give_lambda(const Place& place, const nn::Parameters&) {
  if (place.part == "norm") return Given{Origin::copied};
  return Given{place.part == "scale" ? Origin::one : Origin::zero};
}

// Hyper-connections start as Pre-Norm: n equal streams, whose sum the last norm sees. So do attention residuals, the
// mean of their sources, of which every norm takes out the factor, and averages that are the last output alone.
std::optional<Given> give_norms(const Place& place, const nn::Parameters&) {
  return Given{place.part == "norm" ? Origin::copied : Origin::fresh};
}

std::optional<Given> give_siamese(const Place& place, const nn::Parameters& target) {
  if (place.part == "x_norm" || place.part == "x_scale") return Given{Origin::zero};
  const std::string merged = place.site ? "input_norm" : "norm";  // the norm of the sum, where there is one
  if (place.part == merged) return Given{Origin::copied};
  if (place.part != "y_norm") return std::nullopt;
  const bool followed = target.find(place.owner + "." + merged + ".weight") != nullptr;
  return Given{followed ? Origin::one : Origin::copied};
}

// Why these options of a scheme that can be Pre-Norm cannot; "" when they can.
using OptionCheck = std::string (*)(const residual::SchemeText& scheme, int64_t blocks);

std::string check_form(const residual::SchemeText& scheme, int64_t) {
  const auto options = residual::parse_options<residual::SiameseOptions>(scheme.name, scheme.arguments);
  if (options.form == residual::SiameseForm::read) return "";
  return "with form=write the first sublayer reads X = E before any norm of X; use form=read";
}

std::string check_post_blocks(const residual::SchemeText& scheme, int64_t blocks) {
  const auto options = residual::parse_options<residual::MixLnOptions>(scheme.name, scheme.arguments);
  const int64_t post_blocks = options.post_blocks(blocks);
  if (post_blocks == 0) return "";
  return "its first " + std::to_string(post_blocks) + " of " + std::to_string(blocks) +
         " blocks are Post-Norm, whose norms lie on the residual path; use post=0";
}

std::string check_raw_embedding(const residual::SchemeText& scheme, int64_t) {
  const auto options = residual::parse_options<residual::LambdaOptions>(scheme.name, scheme.arguments);
  return options.embed_norm ? "it normalises the embedding, and Pre-Norm's stream begins raw; use embed_norm=false"
                            : "";
}

// With phi = 0 and b_post = 0 every stream is written alike, and rows of the mixing matrix add up to 1.
std::string check_equal_streams(const residual::SchemeText& scheme, int64_t) {
  const auto options = residual::parse_options<residual::MhcOptions>(scheme.name, scheme.arguments);
  return options.init == residual::MhcInit::single ? "" : "with init=xavier its streams part at once; use init=single";
}

constexpr std::string_view kOnThePath = "its norms lie on the residual path, where Pre-Norm's stream runs raw";
constexpr std::string_view kOnTheBranch = "it normalises what a branch returns, which Pre-Norm adds as it is";

struct SchemeRule {
  std::string_view scheme;
  std::string_view refusal;   // why it can never be Pre-Norm; "" when it can
  GivingRule give = nullptr;  // unless refused
  bool exact = true;          // false: up to norm_eps at best
  OptionCheck check = nullptr;
};

constexpr SchemeRule kSchemeRules[] = {
    {"pre", "", give_pre},
    {"siamese", "", give_siamese, true, check_form},
    {"mixln", "", give_pre, true, check_post_blocks},
    {"lns", "", give_lns},
    {"hc", "", give_norms, /*exact=*/false},
    {"mhc", "", give_norms, /*exact=*/false, check_equal_streams},
    {"attn_res", "", give_norms, /*exact=*/false},
    {"lambda", "", give_lambda, true, check_raw_embedding},
    {"denseformer", "", give_norms},
    {"orthogonal", "it adds only what of a branch is orthogonal to the stream, and Pre-Norm adds all of it"},
    {"mv_split", "the mean of a branch takes the place of a share of the stream's mean, and Pre-Norm adds it whole"},
    {"embed", "it normalises the embedding, and Pre-Norm's stream begins raw"},
    {"post", kOnThePath},
    {"deepnorm", kOnThePath},
    {"hybrid", kOnThePath},
    {"span", kOnThePath},
    {"keel", kOnThePath},
    {"resi_dual", "every branch reads its Post-Norm stream, and no gain replaces that by the raw one"},
    {"peri", kOnTheBranch},
    {"sandwich", kOnTheBranch},
    {"olmo2", kOnTheBranch},
};

const SchemeRule& rule_for(const std::string& text, int64_t blocks) {
  const residual::SchemeText scheme = residual::parse_scheme_text(text);
  const auto refuse = [&](std::string_view why) {
    throw UsageError("upcycling to " + text + ": it cannot compute what a Pre-Norm model does: " + std::string(why));
  };
  const auto* const rule = std::find_if(std::begin(kSchemeRules), std::end(kSchemeRules),
                                        [&](const SchemeRule& known) { return known.scheme == scheme.name; });
  if (rule == std::end(kSchemeRules)) {
    throw UsageError("upcycling to " + text + ": no rule says at which parameters this scheme is Pre-Norm");
  }
  if (!rule->refusal.empty()) refuse(rule->refusal);
  const std::string why = rule->check != nullptr ? rule->check(scheme, blocks) : "";
  if (!why.empty()) refuse(why);
  return *rule;
}

// The norms inside attention stay as they are: an explicit model.attention_norm is kept, and `scheme` means none both
// in pre and in a scheme that asks for none. What the scheme asks for beyond that would be new parameters.
void check_attention_norms(const models::ModelConfig& source, const models::ModelConfig& target) {
  const residual::Build build{.width = target.width, .blocks = target.blocks, .norm = target.norm_spec()};
  nn::Parameters shapes(0, at::kFloat, at::kMeta);  // not used, but a topology needs a place for them
  const auto hints = residual::make_topology(target.residual, nn::Scope(shapes).child("target"), build);
  const auto pre = residual::make_topology(source.residual, nn::Scope(shapes).child("source"), build);
  for (int64_t index = 0; index < 2 * target.blocks; index += 2) {
    const residual::Site site = residual::site_at(index, target.blocks);
    const nn::AttentionNorm wanted = hints->attention_norm(site);
    const nn::AttentionNorm had = models::attention_norm(source, *pre, site);
    if (wanted == nn::AttentionNorm::none || wanted == had) continue;
    const std::string name(enum_text(wanted));
    throw UsageError("upcycling to " + target.residual + ": it asks for the attention norms " + name +
                     ", and the source has " + std::string(enum_text(had)) +
                     "; train the Pre-Norm model with model.attention_norm=" + name);
  }
}

// nullopt: a parameter of a sublayer, the embedding or the head.
std::optional<Place> place_of(const std::string& name, const std::vector<residual::Site>& sites) {
  Place place;
  const auto below = [&](const std::string& owner) {
    if (!name.starts_with(owner + ".")) return false;
    place.owner = owner;
    place.part = name.substr(owner.size() + 1);
    return true;
  };
  if (!below("close")) {
    const auto site = std::find_if(sites.begin(), sites.end(),
                                   [&](const residual::Site& at) { return below(residual::junction_name(at)); });
    if (site == sites.end()) return std::nullopt;
    place.site = *site;
  }
  for (const std::string role : {"weight", "bias"}) {
    if (!place.part.ends_with("." + role)) continue;
    place.role = role;
    place.part.resize(place.part.size() - role.size() - 1);
    break;
  }
  return place;
}

std::vector<residual::Site> all_sites(int64_t blocks) {
  std::vector<residual::Site> sites;
  for (int64_t index = 0; index < 2 * blocks; ++index) sites.push_back(residual::site_at(index, blocks));
  return sites;
}

// Fills a fresh model of the new scheme. Every parameter of the source must end up somewhere, and every parameter of
// the target come from somewhere: anything else would be another function.
std::vector<FilledParameter> fill(const models::Model& target, const nn::Parameters& source, GivingRule give,
                                  int64_t blocks) {
  const c10::NoGradGuard no_grad;
  const std::vector<residual::Site> sites = all_sites(blocks);
  std::vector<FilledParameter> filled;
  std::set<std::string> used;
  const auto take = [&](const std::string& name, const at::Tensor& value, double factor) {
    const nn::Parameter* const from = source.find(name);
    SIAMESE_INVARIANT(from != nullptr && from->value.sizes() == value.sizes());
    value.copy_(factor == 1 ? from->value : from->value * factor);
    used.insert(name);
  };
  for (const auto& [name, kind, value, matrices] : target.parameters().list()) {
    const auto place = place_of(name, sites);
    if (!place) {
      take(name, value, 1);
      filled.push_back({name, Origin::copied, false});
      continue;
    }
    const std::optional<Given> given = give(*place, target.parameters());
    SIAMESE_INVARIANT(given.has_value());
    Origin origin = given->origin;
    if (origin == Origin::one && place->role == "bias") origin = Origin::zero;  // the identity has no shift
    switch (origin) {
      case Origin::copied:
      case Origin::scaled:
        take(place->owner + ".norm." + place->role, value, given->factor);
        break;
      case Origin::zero:
        value.zero_();
        break;
      case Origin::one:
        value.fill_(1);
        break;
      case Origin::fresh:
        break;
    }
    filled.push_back({name, origin, true});
  }
  SIAMESE_INVARIANT(used.size() == source.list().size());
  return filled;
}

}  // namespace

Upcycled upcycle(const LoadedModel& source, const std::string& scheme) {
  if (!source.branch_scales.empty()) check_warmed_up(source.checkpoint);
  const models::ModelConfig& before = source.config.model;
  if (before.modulated()) {
    throw UsageError(source.checkpoint.string() + ": upcycling takes models of family lm, moe and vit; this one is " +
                     std::string(enum_text(before.family)) + ", whose norms have no gains to copy");
  }
  if (residual::parse_scheme_text(before.residual).name != "pre") {
    throw UsageError(source.checkpoint.string() + ": upcycling starts from a Pre-Norm model; this one is " +
                     before.residual);
  }
  if (before.norm_spec().pointwise()) {
    throw UsageError(source.checkpoint.string() + ": upcycling needs norms of which a second changes nothing, rms or " +
                     "layer; model.norm of this one is " + std::string(enum_text(before.norm)));
  }
  Upcycled result;
  result.config = source.config;
  result.config.model.residual = residual::canonical_scheme(scheme);
  result.config.init.from.clear();  // what the source itself began with does not fit the new scheme
  // Its branches are written whole: another warm-up would begin by leaving them out.
  result.config.train.residual_warmup = ResidualWarmup::none;
  result.config.train.residual_warmup_steps = 0;
  const SchemeRule& rule = rule_for(result.config.model.residual, before.blocks);
  check_attention_norms(before, result.config.model);
  const nn::Parameters& parameters = source.model->parameters();
  result.model =
      models::make_model(result.config.model, result.config.init, result.config.train.seed,
                         parameters.options().device(), c10::typeMetaToScalarType(parameters.options().dtype()));
  result.filled = fill(*result.model, parameters, rule.give, before.blocks);
  // A norm's gain of 1 stands before a second norm.
  result.exact = rule.exact && std::none_of(result.filled.begin(), result.filled.end(), [](const auto& filled) {
                   return filled.origin == Origin::one && filled.name.ends_with("norm.weight");
                 });
  return result;
}

}  // namespace siamese::train

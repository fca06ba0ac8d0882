#include "siamese/train/upcycle.h"

#include <cmath>
#include <map>

#include "tests/models/small_lm.h"
#include "tests/train/tiny_run.h"

#include "siamese/base/check.h"
#include "siamese/models/weights.h"
#include "siamese/residual/pre.h"
#include "siamese/train/trainer.h"

namespace siamese::train {
namespace {

using models::AttentionNormChoice;
using models::LanguageModel;

struct UpcycleCase {
  const char* scheme;
  AttentionNormChoice attention_norm = AttentionNormChoice::scheme;  // of the source
};

// The same function to rounding.
constexpr UpcycleCase kExactCases[] = {
    {"pre"},
    {"pre", AttentionNormChoice::qk_full},
    {"siamese(input_norm=false, final_norm=false)"},
    {"siamese(input_norm=false, final_norm=false)", AttentionNormChoice::qkv},
    {"siamese(input_norm=false, depth_scale=none, final_norm=false)"},
    {"siamese(x=hybrid, input_norm=false, final_norm=false)", AttentionNormChoice::qkv},
    {"mixln"},  // a quarter of three blocks is none
    {"mixln(post=0)", AttentionNormChoice::qk},
    {"lns"},
    {"lns", AttentionNormChoice::qkv},
    {"lambda(backout=none, embed_norm=false)"},
    {"lambda(embed_norm=false)", AttentionNormChoice::qk},
    {"lambda(x0=false, embed_norm=false)"},
    {"denseformer"},
    {"denseformer(dilation=2, period=2)", AttentionNormChoice::qkv},
};

// The same function up to norm_eps: somewhere a norm follows a norm.
constexpr UpcycleCase kEpsCases[] = {
    {"siamese"},
    {"siamese", AttentionNormChoice::qk},
    {"siamese(input_norm=false)"},
    {"siamese(depth_scale=sublayer, final_norm=false)"},
    {"siamese(x=hybrid)", AttentionNormChoice::qkv},
    {"siamese(x=hybrid, input_norm=false)", AttentionNormChoice::qkv},
    {"siamese(x=hybrid, final_norm=false)", AttentionNormChoice::qkv},
    {"hc"},
    {"hc(streams=2, dynamic=false)", AttentionNormChoice::qkv},
    {"mhc"},
    {"mhc(streams=2, res=identity)"},
    {"mhc(streams=3, res=permutations)", AttentionNormChoice::qk},
    {"attn_res"},
    {"attn_res(block=2)", AttentionNormChoice::qk},
};

struct RefusedCase {
  const char* scheme;
  const char* words;
};
constexpr RefusedCase kRefusedCases[] = {
    {"post", "norms lie on the residual path"},
    {"hybrid", "norms lie on the residual path"},
    {"hybrid(first=pre)", "norms lie on the residual path"},
    {"deepnorm", "norms lie on the residual path"},
    {"span", "norms lie on the residual path"},
    {"keel", "norms lie on the residual path"},
    {"mixln(post=0.5)", "its first 1 of 3 blocks are Post-Norm"},
    {"resi_dual", "every branch reads its Post-Norm stream"},
    {"embed", "normalises the embedding"},
    {"peri", "normalises what a branch returns"},
    {"sandwich", "normalises what a branch returns"},
    {"olmo2", "normalises what a branch returns"},
    {"mhc(init=xavier)", "its streams part at once; use init=single"},
    {"mhc(res=permutations, init=xavier)", "its streams part at once; use init=single"},
    {"lambda", "normalises the embedding, and Pre-Norm's stream begins raw; use embed_norm=false"},
    {"orthogonal", "orthogonal to the stream"},
    {"mv_split", "a share of the stream's mean"},
    {"siamese(form=write)", "use form=read"},
};

struct SourceOptions {
  AttentionNormChoice attention_norm = AttentionNormChoice::scheme;
  nn::NormKind norm = nn::NormKind::rms;
  double eps = 1e-5;
  at::ScalarType dtype = at::kDouble;
  const char* scheme = "pre";
};

// A model as training could have left it: no gain is 1 and no shift 0.
LoadedModel trained_model(const SourceOptions& options) {
  LoadedModel source;
  source.checkpoint = "some/step7";
  source.config.train.seed = 7;
  models::ModelConfig& model = source.config.model;
  model = models::small_config(options.scheme);
  model.attention_norm = options.attention_norm;
  model.norm = options.norm;
  model.bias = options.norm == nn::NormKind::layer;
  model.norm_eps = options.eps;
  auto lm = models::make_lm(model, 3, options.dtype);
  const c10::NoGradGuard no_grad;
  uint64_t seed = 100;
  for (const auto& parameter : lm->parameters().list()) {
    if (parameter.kind != nn::ParameterKind::norm && parameter.kind != nn::ParameterKind::bias) continue;
    parameter.value.add_(testing::randn(parameter.value.sizes(), ++seed, options.dtype), 0.3);
  }
  source.model = std::move(lm);
  return source;
}

at::Tensor logits_of(const models::Model& model) {
  const c10::NoGradGuard no_grad;
  const auto& lm = dynamic_cast<const LanguageModel&>(model);
  return lm.logits(lm.hidden(models::random_inputs(lm.config(), 3, 11).tokens.narrow(1, 0, lm.config().context)));
}

double loss_of(const models::Model& model) {
  const c10::NoGradGuard no_grad;
  const auto& config = dynamic_cast<const LanguageModel&>(model).config();
  const models::Inputs inputs = models::random_inputs(config, 3, 11);
  return model.losses(inputs, {.normalizer = 3.0 * static_cast<double>(config.context)}).loss.item<double>();
}

double logit_difference(const UpcycleCase& given, SourceOptions options) {
  options.attention_norm = given.attention_norm;
  const LoadedModel source = trained_model(options);
  const Upcycled result = upcycle(source, given.scheme);
  EXPECT_EQ(result.model->parameters().options().dtype(), source.model->parameters().options().dtype());
  return testing::largest_difference(logits_of(*source.model), logits_of(*result.model));
}

template <class Check>
void for_norms_and_types(const Check& check) {
  for (const auto norm : {nn::NormKind::rms, nn::NormKind::layer}) {
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(std::string(enum_text(norm)) + (dtype == at::kDouble ? " double" : " float"));
      check(norm, dtype);
    }
  }
}

TEST(Upcycle, IsTheSameFunctionToRoundingWhereNoNormFollowsANorm) {
  for_norms_and_types([](nn::NormKind norm, at::ScalarType dtype) {
    for (const auto& given : kExactCases) {
      EXPECT_LE(logit_difference(given, {.norm = norm, .dtype = dtype}), dtype == at::kDouble ? 1e-12 : 1e-5)
          << given.scheme;
    }
  });
}

TEST(Upcycle, SiameseWithoutANormOfTheSumKeepsTheBits) {
  for_norms_and_types([](nn::NormKind norm, at::ScalarType dtype) {
    const LoadedModel source = trained_model({.norm = norm, .dtype = dtype});
    const Upcycled result = upcycle(source, "siamese(input_norm=false, final_norm=false)");
    testing::expect_same_bits(logits_of(*result.model), logits_of(*source.model), "logits");
  });
}

TEST(Upcycle, IsTheSameFunctionUpToEpsWhereANormFollowsANorm) {
  for_norms_and_types([](nn::NormKind norm, at::ScalarType dtype) {
    for (const auto& given : kEpsCases) {
      EXPECT_LE(logit_difference(given, {.norm = norm, .eps = 1e-12, .dtype = dtype}),
                dtype == at::kDouble ? 1e-9 : 1e-5)
          << given.scheme;
    }
  });
}

// The second norm divides by sqrt(r + eps) with r = ms / (ms + eps), ms the mean square of the stream: an error
// proportional to eps. At the usual 1e-5 it is there, and the loss does not jump.
TEST(Upcycle, TheErrorIsProportionalToEps) {
  for (const auto& given : kEpsCases) {
    const double coarse = logit_difference(given, {.eps = 1e-4});
    const double fine = logit_difference(given, {.eps = 1e-6});
    EXPECT_GT(fine, 1e-9) << given.scheme;
    EXPECT_GT(coarse / fine, 80) << given.scheme;
    EXPECT_LT(coarse / fine, 120) << given.scheme;
    const LoadedModel source =
        trained_model({.attention_norm = given.attention_norm, .eps = 1e-5, .dtype = at::kFloat});
    const double before = loss_of(*source.model);
    EXPECT_NEAR(loss_of(*upcycle(source, given.scheme).model), before, 1e-4 * before) << given.scheme;
  }
}

TEST(Upcycle, SaysWhetherItIsExact) {
  for (const auto& given : kExactCases) {
    EXPECT_TRUE(upcycle(trained_model({given.attention_norm}), given.scheme).exact) << given.scheme;
  }
  for (const auto& given : kEpsCases) {
    EXPECT_FALSE(upcycle(trained_model({given.attention_norm}), given.scheme).exact) << given.scheme;
  }
}

bool on_the_x_side(const std::string& name) {
  return name.find(".x_norm.") != std::string::npos || name.ends_with(".x_scale");
}

TEST(Upcycle, EveryGainOfXIsZeroAndHasAGradient) {
  const auto check = [](const UpcycleCase& given) {
    if (std::string(given.scheme).rfind("siamese", 0) != 0) return;
    for_norms_and_types([&](nn::NormKind norm, at::ScalarType dtype) {
      const LoadedModel source = trained_model({.attention_norm = given.attention_norm, .norm = norm, .dtype = dtype});
      const Upcycled result = upcycle(source, given.scheme);
      const auto& parameters = result.model->parameters();
      models::loss_and_gradients(*result.model, models::random_inputs(result.config.model, 3, 11), {});
      int found = 0;
      for (const auto& [name, kind, value, matrices] : parameters.list()) {
        if (!on_the_x_side(name)) continue;
        ++found;
        EXPECT_EQ(testing::largest(value), 0) << name;
        ASSERT_TRUE(value.grad().defined()) << name;
        EXPECT_GT(testing::largest(value.grad()), 1e-8) << given.scheme << " " << name;
      }
      // Six sites and the end; c1 is a norm's gain without a shift.
      const bool hybrid = std::string(given.scheme).find("x=hybrid") != std::string::npos;
      const int shifts = norm == nn::NormKind::layer ? (hybrid ? 4 : 7) : 0;
      EXPECT_EQ(found, 7 + shifts) << given.scheme;
    });
  };
  for (const auto& given : kExactCases) check(given);
  for (const auto& given : kEpsCases) check(given);
}

TEST(Upcycle, SaysWhatWasDoneToEachParameter) {
  const auto origins = [](const std::string& scheme, nn::NormKind norm) {
    std::map<Origin, int> counts;
    const Upcycled result = upcycle(trained_model({.norm = norm}), scheme);
    EXPECT_EQ(result.filled.size(), result.model->parameters().list().size());
    for (const auto& filled : result.filled) {
      if (filled.of_scheme) ++counts[filled.origin];
    }
    return counts;
  };
  using Counts = std::map<Origin, int>;
  EXPECT_EQ(origins("pre", nn::NormKind::rms), (Counts{{Origin::copied, 7}}));
  EXPECT_EQ(origins("siamese", nn::NormKind::rms), (Counts{{Origin::zero, 7}, {Origin::one, 7}, {Origin::copied, 7}}));
  // LayerNorm with shifts: P's and Q's are 0.
  EXPECT_EQ(origins("siamese", nn::NormKind::layer),
            (Counts{{Origin::zero, 21}, {Origin::one, 7}, {Origin::copied, 14}}));
  EXPECT_EQ(origins("siamese(input_norm=false)", nn::NormKind::rms),
            (Counts{{Origin::zero, 7}, {Origin::one, 1}, {Origin::copied, 7}}));
}

TEST(Upcycle, KeepsTheConfigButForTheScheme) {
  LoadedModel source = trained_model({.attention_norm = AttentionNormChoice::qkv});
  source.config.optim.lr = 0.0123;
  source.config.init.from = "where/it/began";
  RunConfig expected = source.config;
  expected.model.residual = "siamese(final_norm=false)";
  expected.init.from = "";
  EXPECT_EQ(config_text(upcycle(source, "siamese( final_norm=false,x=post)").config), config_text(expected));
}

std::string refusal_of(const LoadedModel& source, const std::string& scheme) {
  try {
    upcycle(source, scheme);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

void expect_words(const std::string& said, const std::string& words) {
  EXPECT_NE(said.find(words), std::string::npos) << "said: " << said;
}

TEST(Upcycle, RefusesWhatCannotBePreNorm) {
  const LoadedModel source = trained_model({});
  for (const auto& [scheme, words] : kRefusedCases) {
    expect_words(refusal_of(source, scheme), words);
    expect_words(refusal_of(source, scheme), std::string("upcycling to ") + scheme);
  }
  expect_words(refusal_of(source, "simese"), "did you mean 'siamese'?");
  expect_words(refusal_of(source, "siamese(y=1)"), "unknown key");
  residual::Scheme unknown = residual::pre_scheme();
  unknown.doc.name = "a_scheme_without_a_rule";
  residual::register_scheme(unknown);
  expect_words(refusal_of(source, unknown.doc.name), "no rule says at which parameters this scheme is Pre-Norm");
}

TEST(Upcycle, RefusesAttentionNormsTheSourceDoesNotHave) {
  const auto refused = [](AttentionNormChoice norm) {
    return refusal_of(trained_model({.attention_norm = norm}), "siamese(x=hybrid)");
  };
  for (const auto norm : {AttentionNormChoice::scheme, AttentionNormChoice::none}) {
    expect_words(refused(norm), "asks for the attention norms qkv, and the source has none");
    expect_words(refused(norm), "train the Pre-Norm model with model.attention_norm=qkv");
  }
  expect_words(refused(AttentionNormChoice::qk), "and the source has qk;");
}

TEST(Upcycle, StartsFromPreNormOnly) {
  for (const char* const scheme : {"post", "siamese", "siamese(x=hybrid)"}) {
    expect_words(refusal_of(trained_model({.scheme = scheme}), "siamese"),
                 std::string("some/step7: upcycling starts from a Pre-Norm model; this one is ") + scheme);
  }
}

TEST(Upcycle, TrainsOnFromTheSavedWeights) {
  const TemporaryFolder folder("upcycle");
  start_run(tiny_config({"model.residual=pre"}), folder / "pre", false, "", {});
  const auto first_loss = [](const std::string& scheme, const std::filesystem::path& from) {
    Trainer trainer(tiny_config({"model.residual=" + scheme, "init.from=" + from.string()}));
    const double loss = trainer.step().loss;
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(std::isfinite(trainer.step().loss));
    for (const auto& [name, kind, value, matrices] : trainer.model().parameters().list()) {
      if (on_the_x_side(name)) {
        EXPECT_GT(testing::largest(value), 0) << name;
      }
    }
    return loss;
  };
  const double before = first_loss("pre", folder / "pre");
  for (const auto& [scheme, tolerance] :
       {std::pair{"siamese(input_norm=false, final_norm=false)", 1e-6}, std::pair{"siamese", 1e-3}}) {
    const Upcycled result = upcycle(load_model(folder / "pre"), scheme);
    save_weights(folder / "up" / "here", result.config, *result.model, true);
    EXPECT_NEAR(first_loss(scheme, folder / "up" / "here"), before, tolerance) << scheme;
    const LoadedModel loaded = load_model(folder / "up" / "here");
    EXPECT_EQ(config_text(loaded.config), config_text(result.config));
    EXPECT_EQ(loaded.step, 0);
  }
}

template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SavedWeights, CannotBeResumed) {
  const TemporaryFolder folder("weights_resume");
  const RunConfig config = tiny_config({"model.residual=pre"});
  save_weights(folder / "weights", config, Trainer(config).model(), true);
  const std::string said = error_of([&] { resume_run(folder / "weights", {}); });
  expect_words(said, "weights: nothing to resume");
  expect_words(said, "trainer.json");
  expect_words(said, "init.from=");
  EXPECT_FALSE(std::filesystem::exists(folder / "weights" / "metrics.jsonl"));
}

TEST(SavedWeights, OfAnotherSchemeAreNamedByInitFrom) {
  const TemporaryFolder folder("weights_scheme");
  const RunConfig pre = tiny_config({"model.residual=pre"});
  save_weights(folder / "pre", pre, Trainer(pre).model(), true);
  const std::string from = "init.from=" + (folder / "pre").string();
  const std::string said = error_of([&] { Trainer(tiny_config({"model.residual=siamese", from})); });
  expect_words(said, "init.from: expected a model with residual scheme siamese, got pre (`siamese upcycle`");
  // Also when every tensor would fit: post has the names and shapes of pre and is another function.
  const std::string fitting = error_of([&] { Trainer(tiny_config({"model.residual=post", from})); });
  expect_words(fitting, "expected a model with residual scheme post, got pre");
  // The same scheme of another shape is not a matter of schemes.
  const std::string shape = error_of([&] { Trainer(tiny_config({"model.residual=pre", "model.width=32", from})); });
  EXPECT_EQ(shape.find("residual scheme"), std::string::npos) << shape;
  expect_words(shape, "embedding.weight: expected");
}

TEST(SavedWeights, MustBeThoseOfTheConfigBesideThem) {
  const TemporaryFolder folder("weights_config");
  const RunConfig pre = tiny_config({"model.residual=pre"});
  save_weights(folder / "pre", pre, Trainer(pre).model(), true);
  io::write_file_atomic(folder / "pre" / "config.yaml", config_text(tiny_config({"model.residual=post"})));
  expect_words(error_of([&] { load_model(folder / "pre"); }),
               "config.yaml: model.residual: post, and the weights were saved under pre");
}

TEST(SavedWeights, ReplaceOnlyTheirLike) {
  const TemporaryFolder folder("weights_free");
  const RunConfig config = tiny_config({"model.residual=pre"});
  const auto said = [&](const std::string& name, bool overwrite) {
    return error_of([&] { check_free_for_weights(folder / name, overwrite); });
  };
  EXPECT_EQ(said("nothing", false), "accepted");
  std::filesystem::create_directory(folder / "empty");
  EXPECT_EQ(said("empty", false), "accepted");
  save_weights(folder / "weights", config, Trainer(config).model(), true);
  expect_words(said("weights", false), "exists already; --overwrite replaces it");
  EXPECT_EQ(said("weights", true), "accepted");
  std::ofstream(folder / "weights" / "notes.txt") << "mine";
  expect_words(said("weights", true), "holds something else than config.yaml and model.safetensors");
  std::ofstream(folder / "file") << "mine";
  expect_words(said("file", false), "holds something else than config.yaml and model.safetensors");
}

}  // namespace
}  // namespace siamese::train

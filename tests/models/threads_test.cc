// Whole models of every family, fused and plain, at 1, 2, 3, 4 and 7 threads: the same loss and the same gradients, bit
// for bit. Batches of 1 to 17 samples give products of as many rows (vit's head, dit's conditions), a context of one
// token the same in language models.
#include "tests/support/threads.h"

#include "tests/models/small_families.h"

#include "siamese/ops/mode.h"

namespace siamese::models {
namespace threads_test {

void expect_same_pass(const ModelConfig& config, int64_t batch, const std::string& what) {
  const auto model = make_small(config);
  perturb(*model);
  const Inputs inputs = family_inputs(config, batch, 2);
  testing::expect_same_at_any_thread_count(what + ", batch " + std::to_string(batch), [&] {
    const auto [loss, gradients] = loss_and_gradients(*model, inputs, family_options(config, batch));
    std::vector<at::Tensor> made = {at::scalar_tensor(loss, at::kDouble)};
    for (const auto& gradient : gradients) made.push_back(gradient.clone());
    return made;
  });
}

template <class Check>
void fused_and_plain(const Check& check) {
  for (const auto mode : {ops::Mode::automatic, ops::Mode::plain}) {
    const ops::ModeGuard guard(mode);
    check(mode == ops::Mode::plain ? " plain" : " fused");
  }
}

TEST(Threads, EveryFamilyAtFewAndOddRows) {
  for (const Family family : all_families()) {
    ModelConfig config = small_family(family, "siamese");
    config.blocks = 2;
    config.width = 40;
    config.ffn_width = 70;
    config.classes = 33;
    if (config.sees_images()) {
      config.patch = config.image;  // a token or two: rows as few as samples
    } else {
      config.context = 1;
    }
    resolve(config, {});
    fused_and_plain([&](const std::string& mode) {
      for (int64_t batch = 1; batch <= 17; ++batch)
        expect_same_pass(config, batch, case_name(family, "siamese") + mode);
    });
  }
}

TEST(Threads, EverySchemeAtOddShapes) {
  for (const Family family : all_families()) {
    for (const auto& scheme : schemes_of(family)) {
      ModelConfig config = small_family(family, scheme);
      config.blocks = 2;
      fused_and_plain([&](const std::string& mode) { expect_same_pass(config, 5, case_name(family, scheme) + mode); });
    }
  }
}

TEST(Threads, ElementWiseNormsAtOddShapes) {
  for (const Family family : all_families()) {
    for (const nn::NormKind kind : {nn::NormKind::dyt, nn::NormKind::derf}) {
      ModelConfig config = small_family(family, "siamese");
      config.blocks = 2;
      config.norm = kind;
      resolve(config, {});
      fused_and_plain([&](const std::string& mode) {
        expect_same_pass(config, 5, case_name(family, std::string(enum_text(kind))) + mode);
      });
    }
  }
}

// Past 32768 elements ATen shares its loops.
TEST(Threads, EveryFamilyPastTheSizeWhereLoopsAreShared) {
  for (const Family family : all_families()) {
    const std::vector<std::string> taken = schemes_of(family);
    for (const std::string scheme : {"siamese(x=hybrid)", "mhc", "mhc(streams=3, res=permutations)", "lambda",
                                     "denseformer", "orthogonal", "orthogonal(over=sample)", "mv_split"}) {
      if (std::find(taken.begin(), taken.end(), scheme) == taken.end()) continue;  // matrix_test.cc has the refusal
      ModelConfig config = small_family(family, scheme);
      config.blocks = 1;
      config.width = 72;
      config.ffn_width = 150;
      config.positions = family == Family::lm ? Positions::learned : config.positions;
      resolve(config, {});
      fused_and_plain(
          [&](const std::string& mode) { expect_same_pass(config, 450, case_name(family, scheme) + mode); });
    }
  }
}

}  // namespace threads_test
}  // namespace siamese::models

// Each scheme against its published equations, written out by hand in double precision.
#include "tests/residual/harness.h"

namespace siamese::residual {
namespace {

TEST(Equations, Pre) {
  expect_equation("pre", [](const Toy& toy, const at::Tensor& e) {
    at::Tensor h = e;
    for (size_t i = 0; i < toy.depth(); ++i) h = h + toy.sublayer(i, toy.at_site(i, "norm", h));
    return toy.normed("close.norm", h);
  });
}

TEST(Equations, Post) {
  const auto body = [](const Toy& toy, const at::Tensor& e) {
    at::Tensor x = e;
    for (size_t i = 0; i < toy.depth(); ++i) x = toy.at_site(i, "norm", x + toy.sublayer(i, x));
    return x;
  };
  expect_equation("post", [&](const Toy& toy, const at::Tensor& e) { return toy.normed("close.norm", body(toy, e)); });
  expect_equation("post(final_norm=false)", body);
}

TEST(Equations, Embed) {
  expect_equation("embed", [](const Toy& toy, const at::Tensor& e) {
    at::Tensor h = toy.normed("open.norm", e);
    for (size_t i = 0; i < toy.depth(); ++i) h = h + toy.sublayer(i, toy.at_site(i, "norm", h));
    return toy.normed("close.norm", h);
  });
}

TEST(Equations, PeriAndSandwich) {
  const auto body = [](const Toy& toy, at::Tensor h) {
    for (size_t i = 0; i < toy.depth(); ++i) {
      h = h + toy.at_site(i, "output_norm", toy.sublayer(i, toy.at_site(i, "input_norm", h)));
    }
    return toy.normed("close.norm", h);
  };
  expect_equation("peri", [&](const Toy& toy, const at::Tensor& e) { return body(toy, toy.normed("open.norm", e)); });
  expect_equation("peri(embed_norm=false)", body);
  expect_equation("sandwich", body);
}

TEST(Equations, Olmo2) {
  expect_equation("olmo2", [](const Toy& toy, const at::Tensor& e) {
    at::Tensor h = e;
    for (size_t i = 0; i < toy.depth(); ++i) h = h + toy.at_site(i, "output_norm", toy.sublayer(i, h));
    return toy.normed("close.norm", h);
  });
}

TEST(Equations, DeepNorm) {
  expect_equation("deepnorm", [](const Toy& toy, const at::Tensor& e) {
    const double alpha = std::sqrt(std::sqrt(2.0 * static_cast<double>(toy.blocks)));
    at::Tensor x = e;
    for (size_t i = 0; i < toy.depth(); ++i) x = toy.at_site(i, "norm", alpha * x + toy.sublayer(i, x));
    return x;
  });
}

TEST(Equations, MixLn) {
  // Of 3 and of 4 blocks: how many are Post-Norm.
  const auto equation = [](size_t of_three, size_t of_four) {
    return [=](const Toy& toy, const at::Tensor& e) {
      const size_t post_blocks = toy.blocks == 3 ? of_three : of_four;
      at::Tensor x = e;
      for (size_t i = 0; i < toy.depth(); ++i) {
        if (i < 2 * post_blocks) {
          x = toy.at_site(i, "norm", x + toy.sublayer(i, x));
        } else {
          x = x + toy.sublayer(i, toy.at_site(i, "norm", x));
        }
      }
      return toy.normed("close.norm", x);
    };
  };
  expect_equation("mixln", equation(0, 1));
  expect_equation("mixln(post=0.5)", equation(1, 2));
  expect_equation("mixln(post=0)", equation(0, 0));
  expect_equation("mixln(post=1)", equation(3, 4));
}

TEST(Equations, Lns) {
  expect_equation("lns", [](const Toy& toy, const at::Tensor& e) {
    at::Tensor h = e;
    for (size_t i = 0; i < toy.depth(); ++i) {
      const double block = static_cast<double>(i / 2);
      h = h + toy.sublayer(i, toy.at_site(i, "norm", h) / std::sqrt(block + 1));
    }
    return toy.normed("close.norm", h);
  });
}

TEST(Equations, ResiDual) {
  const auto equation = [](double s, double a, double final_eps) {
    return [=](const Toy& toy, const at::Tensor& e) {
      at::Tensor x = e;
      at::Tensor r = s * e;
      for (size_t i = 0; i < toy.depth(); ++i) {
        const at::Tensor o = toy.sublayer(i, x);
        r = r + s * o;
        x = toy.at_site(i, "norm", x + o);
      }
      return a * x + toy.normed("close.r_norm", r, final_eps);
    };
  };
  expect_equation("resi_dual", equation(1, 1, 0));
  expect_equation("resi_dual(residual_scale=0.05, x_weight=0.5, final_eps=1e-7)", equation(0.05, 0.5, 1e-7));
}

TEST(Equations, Span) {
  const auto equation = [](const Toy& toy, const at::Tensor& e) {
    at::Tensor x = e;
    for (size_t i = 0; i < toy.depth(); i += 2) {
      const at::Tensor u = i == 0 ? toy.at_site(0, "input_norm", x) : x;
      const at::Tensor y = toy.at_site(i, "norm", x + toy.sublayer(i, u));
      x = toy.at_site(i + 1, "norm", x + toy.sublayer(i + 1, y));
    }
    return x;
  };
  expect_equation("span", equation);
  expect_equation("span(final_norm=true)",
                  [&](const Toy& toy, const at::Tensor& e) { return toy.normed("close.norm", equation(toy, e)); });
  expect_equation("span(reading=c)", [](const Toy& toy, const at::Tensor& e) {
    at::Tensor x = e;
    for (size_t i = 0; i < toy.depth(); ++i) {
      x = toy.at_site(i, "norm", x + toy.sublayer(i, toy.at_site(i, "input_norm", x)));
    }
    return x;
  });
}

TEST(Equations, Keel) {
  const auto equation = [](bool outer_norm_in_block_0) {
    return [=](const Toy& toy, const at::Tensor& e) {
      const double alpha = static_cast<double>(2 * toy.blocks);
      at::Tensor x = e + toy.sublayer(0, toy.at_site(0, "norm", e));
      if (outer_norm_in_block_0) {
        x = toy.at_site(1, "norm", x + toy.sublayer(1, toy.at_site(1, "input_norm", x)));
      } else {
        x = x + toy.sublayer(1, toy.at_site(1, "norm", x));
      }
      for (size_t i = 2; i < toy.depth(); ++i) {
        x = toy.at_site(i, "norm", alpha * x + toy.sublayer(i, toy.at_site(i, "input_norm", x)));
      }
      return toy.normed("close.norm", x);
    };
  };
  expect_equation("keel", equation(false));
  expect_equation("keel(variant=b)", equation(true));
}

TEST(Equations, Hybrid) {
  expect_equation("hybrid", [](const Toy& toy, const at::Tensor& e) {
    at::Tensor x = e;
    for (size_t i = 0; i < toy.depth(); i += 2) {
      const at::Tensor y = x + toy.sublayer(i, x);
      const at::Tensor z = toy.at_site(i + 1, "norm", y);
      x = z + toy.sublayer(i + 1, z);
    }
    return toy.normed("close.norm", x);
  });
}

TEST(Equations, HybridWithAPreNormFirstBlock) {
  expect_equation("hybrid(first=pre)", [](const Toy& toy, const at::Tensor& e) {
    at::Tensor x = e;
    for (size_t i = 0; i < toy.depth(); i += 2) {
      if (i == 0) {
        const at::Tensor y = x + toy.sublayer(0, toy.at_site(0, "norm", x));
        x = y + toy.sublayer(1, toy.at_site(1, "norm", y));
        continue;
      }
      const at::Tensor y = x + toy.sublayer(i, x);
      const at::Tensor z = toy.at_site(i + 1, "norm", y);
      x = z + toy.sublayer(i + 1, z);
    }
    return toy.normed("close.norm", x);
  });
}

}  // namespace
}  // namespace siamese::residual

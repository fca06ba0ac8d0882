// One junction to be tested: its data, the kernel's results, and what the double reference gives for them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/junction.h"
#include "siamese/kernels/reference/junction.h"

namespace siamese::kernels {

struct JunctionCase {
  std::string name;
  bool two_streams, branch, branch_norm, x_norm, x_scale, y_norm, input_norm;
  double x_branch, y_branch, y_skip, input_scale;
};

// Every combination that a scheme makes, and the first site of each, where nothing is pending.
inline const std::vector<JunctionCase>& scheme_junctions() {
  static const std::vector<JunctionCase> cases = {
      {"pre", false, true, false, false, false, true, false, 0, 1, 1, 1},
      {"pre first", false, false, false, false, false, true, false, 0, 0, 1, 1},
      {"lns", false, true, false, false, false, true, false, 0, 1, 1, 0.5},
      {"peri", false, true, true, false, false, true, false, 0, 1, 1, 1},
      {"olmo2", false, true, true, false, false, false, false, 0, 1, 1, 1},
      {"deepnorm", false, true, false, false, false, true, false, 0, 1, 1.7, 1},
      {"siamese", true, true, false, true, false, true, true, 0.7071, 1, 1, 1},
      {"siamese first", true, false, false, true, false, true, true, 0, 0, 1, 1},
      {"siamese without input norm", true, true, false, true, false, true, false, 0.5, 1, 1, 1},
      {"siamese hybrid attention", true, true, false, false, true, true, false, 0.5, 1, 1, 1},
  };
  return cases;
}

// Every set of norms with one and with two streams, whether or not a scheme makes it.
inline std::vector<JunctionCase> all_junctions() {
  std::vector<JunctionCase> all;
  for (const bool two : {false, true}) {
    for (const bool branch : {true, false}) {
      for (int norms = 0; norms < 16; ++norms) {
        JunctionCase c{"",
                       two,
                       branch,
                       (norms & 1) != 0,
                       (norms & 2) != 0,
                       two && (norms & 5) == 4,
                       (norms & 4) != 0,
                       (norms & 8) != 0,
                       two ? 0.7071 : 0,
                       1.25,
                       (norms & 4) != 0 ? 1.5 : 1,
                       0.75};
        if ((!two && c.x_norm) || (!branch && c.branch_norm)) continue;
        c.name = std::string(two ? "two streams" : "one stream") + (branch ? ", branch" : "") +
                 (c.branch_norm ? ", R" : "") + (c.x_norm ? ", P" : "") + (c.x_scale ? ", x_scale" : "") +
                 (c.y_norm ? ", Q" : "") + (c.input_norm ? ", I" : "");
        all.push_back(std::move(c));
      }
    }
  }
  return all;
}

struct JunctionResults {
  using Tensor = std::pair<std::string, std::vector<float>>;
  std::vector<Tensor> forward, backward;
};

struct JunctionExpectations {
  using Tensor = std::pair<std::string, reference::Row>;
  std::vector<Tensor> forward, backward;
};

class JunctionExample {
 public:
  static constexpr int64_t kRows = 3;

  // Bits of what comes back and of what is wanted; a missing one is a null pointer for the kernel.
  enum Given { kXOut = 1, kYSum = 2, kInput = 4, kAllGiven = 7 };
  enum Wanted { kX = 1, kY = 2, kBranch = 4, kParameters = 8, kAllWanted = 15 };

  JunctionExample(const JunctionCase& its_case, bool layer, int64_t cols) : c(its_case), is_layer(layer), width(cols) {
    const int64_t size = kRows * cols;
    inputs = {{"z", random_floats(size, "z")},
              {"x", random_floats(size, "x", 0.2)},
              {"y", random_floats(size, "y", -0.1, 2)},
              {"d_x_out", random_floats(size, "d_x_out")},
              {"d_y_sum", random_floats(size, "d_y_sum")},
              {"d_input", random_floats(size, "d_input")},
              {"x_scale", random_floats(cols, "x_scale", 1, 0.3)}};
    for (const char* name : {"branch", "x", "y", "input"}) {
      inputs.emplace_back(std::string(name) + " gain", random_floats(cols, std::string(name) + "gain", 1, 0.5));
      inputs.emplace_back(std::string(name) + " bias", layer ? random_floats(cols, std::string(name) + "bias", 0, 0.5)
                                                             : std::vector<float>(static_cast<size_t>(cols), 0.0F));
    }
  }

  // Whether anything reads this input.
  bool reads(size_t input) const {
    const bool norms[] = {c.branch_norm, c.x_norm, c.y_norm, c.input_norm};
    if (input == 0) return c.branch;
    if (input == 1 || input == 3) return c.two_streams;
    if (input == 6) return c.x_scale;
    if (input < 7) return true;
    return norms[(input - 7) / 2] && (is_layer || (input - 7) % 2 == 0);
  }

  JunctionResults run(int given = kAllGiven, int wanted = kAllWanted, int64_t split = 1, int64_t offset = 0) const;
  JunctionExpectations expected(int given = kAllGiven, int wanted = kAllWanted) const;

  bool sums() const { return c.branch || c.y_skip != 1; }

  JunctionCase c;
  bool is_layer;
  int64_t width;
  std::vector<std::pair<std::string, std::vector<float>>> inputs;

 private:
  reference::JunctionRow reference_row() const;
};

// The kernel's side of an example: arrays, and the structs that point into them.
class JunctionRun {
 public:
  JunctionRun(const JunctionExample& example, int given, int wanted, int64_t offset)
      : e_(example), c_(example.c), arrays_(offset) {
    junction_.layer = e_.is_layer;
    junction_.cols = e_.width;
    junction_.x_branch = static_cast<float>(c_.x_branch);
    junction_.y_branch = static_cast<float>(c_.y_branch);
    junction_.y_skip = static_cast<float>(c_.y_skip);
    junction_.input_scale = static_cast<float>(c_.input_scale);
    junction_.x_scale = array_if(c_.x_scale, 6);
    add_norm(c_.branch_norm, 7, junction_.branch_norm);
    add_norm(c_.x_norm, 9, junction_.x_norm);
    add_norm(c_.y_norm, 11, junction_.y_norm);
    add_norm(c_.input_norm, 13, junction_.input_norm);
    rows_.branch = array_if(c_.branch, 0);
    rows_.x = array_if(c_.two_streams, 1);
    rows_.y = array_if(true, 2);
    rows_.x_sum = result_if(e_.sums() && c_.two_streams);
    rows_.y_sum = result_if(e_.sums());
    rows_.x_out = result_if(c_.x_norm);
    rows_.input = result_if(true);
    rows_.scratch = arrays_.add(std::vector<float>(static_cast<size_t>(kJunctionScratchRows * e_.width), kUntouched));
    point_gradients(given, wanted);
  }

  JunctionResults operator()(int64_t split) {
    constexpr int64_t kRows = JunctionExample::kRows;
    junction_forward(junction_, rows_, 0, split);
    junction_forward(junction_, rows_, split, kRows);
    junction_backward(junction_, g_, 0, kRows - split);
    junction_backward(junction_, g_, kRows - split, kRows);
    JunctionResults results;
    const auto keep = [](auto& list, const char* name, const float* from, int64_t size) {
      if (from != nullptr) list.emplace_back(name, std::vector<float>(from, from + size));
    };
    const int64_t size = kRows * e_.width;
    keep(results.forward, "input", rows_.input, size);
    keep(results.forward, "U", rows_.x_sum, size);
    keep(results.forward, "V", rows_.y_sum, size);
    keep(results.forward, "X", rows_.x_out, size);
    keep(results.backward, "dz", g_.d_branch, size);
    keep(results.backward, "dx", g_.d_x, size);
    keep(results.backward, "dy", g_.d_y, size);
    keep(results.backward, "d x_scale", g_.d_x_scale, e_.width);
    for (const RowNormGradient* norm : {&g_.branch_norm, &g_.x_norm, &g_.y_norm, &g_.input_norm}) {
      keep(results.backward, "d gain", norm->gain, e_.width);
      keep(results.backward, "d bias", norm->bias, e_.width);
    }
    return results;
  }

 private:
  void point_gradients(int given, int wanted) {
    g_.branch = rows_.branch;
    g_.x_sum = rows_.x_sum == nullptr ? rows_.x : rows_.x_sum;
    g_.y_sum = rows_.y_sum == nullptr ? rows_.y : rows_.y_sum;
    g_.d_x_out = array_if(c_.two_streams && (given & JunctionExample::kXOut) != 0, 3);
    g_.d_y_sum = array_if((given & JunctionExample::kYSum) != 0, 4);
    g_.d_input = array_if((given & JunctionExample::kInput) != 0, 5);
    g_.d_x = result_if(c_.two_streams && (wanted & JunctionExample::kX) != 0);
    g_.d_y = result_if((wanted & JunctionExample::kY) != 0);
    g_.d_branch = result_if(c_.branch && (wanted & JunctionExample::kBranch) != 0);
    g_.scratch = arrays_.add(std::vector<float>(static_cast<size_t>(kJunctionScratchRows * e_.width), kUntouched));
    if ((wanted & JunctionExample::kParameters) == 0) return;
    const auto zeros_if = [&](bool there) {
      return there ? arrays_.add(std::vector<float>(static_cast<size_t>(e_.width), 0.0F)) : nullptr;
    };
    g_.d_x_scale = zeros_if(c_.x_scale);
    // Nothing goes through R when the branch's gradient is not wanted.
    g_.branch_norm = {zeros_if(g_.d_branch != nullptr && c_.branch_norm),
                      zeros_if(g_.d_branch != nullptr && c_.branch_norm && e_.is_layer)};
    g_.x_norm = {zeros_if(c_.x_norm), zeros_if(c_.x_norm && e_.is_layer)};
    g_.y_norm = {zeros_if(c_.y_norm), zeros_if(c_.y_norm && e_.is_layer)};
    g_.input_norm = {zeros_if(c_.input_norm), zeros_if(c_.input_norm && e_.is_layer)};
  }

  float* array_if(bool there, size_t index) { return there ? arrays_.add(e_.inputs[index].second) : nullptr; }
  float* result_if(bool there) {
    const auto size = static_cast<size_t>(JunctionExample::kRows * e_.width);
    return there ? arrays_.add(std::vector<float>(size, kUntouched)) : nullptr;
  }
  void add_norm(bool there, size_t gain, RowNorm& norm) {
    if (!there) return;
    const std::vector<float> statistics(static_cast<size_t>(JunctionExample::kRows), kUntouched);
    norm = {true,
            1e-5F,
            array_if(true, gain),
            array_if(e_.is_layer, gain + 1),
            e_.is_layer ? arrays_.add(statistics) : nullptr,
            arrays_.add(statistics)};
  }

  const JunctionExample& e_;
  const JunctionCase& c_;
  LineArrays arrays_;
  Junction junction_{.past_cache = true};  // the other way is seen in the tests of the op
  JunctionRows rows_;
  JunctionGradients g_;
};

inline JunctionResults JunctionExample::run(int given, int wanted, int64_t split, int64_t offset) const {
  return JunctionRun(*this, given, wanted, offset)(split);
}

inline reference::JunctionRow JunctionExample::reference_row() const {
  const auto rounded = [](double value) { return static_cast<double>(static_cast<float>(value)); };
  const auto norm = [&](bool there, size_t gain) {
    return reference::Norm{there, is_layer, rounded(1e-5), widen(inputs[gain].second), widen(inputs[gain + 1].second)};
  };
  reference::JunctionRow row;
  row.two_streams = c.two_streams;
  row.has_branch = c.branch;
  row.x_branch = rounded(c.x_branch);
  row.y_branch = rounded(c.y_branch);
  row.y_skip = rounded(c.y_skip);
  row.input_scale = rounded(c.input_scale);
  row.x_scale = c.x_scale ? widen(inputs[6].second) : reference::Row(static_cast<size_t>(width), 1.0);
  row.branch_norm = norm(c.branch_norm, 7);
  row.x_norm = norm(c.x_norm, 9);
  row.y_norm = norm(c.y_norm, 11);
  row.input_norm = norm(c.input_norm, 13);
  return row;
}

inline JunctionExpectations JunctionExample::expected(int given, int wanted) const {
  const auto cols = static_cast<size_t>(width);
  const reference::JunctionRow slow = reference_row();
  const auto row_of = [&](size_t index, int64_t row) {
    return reference::Row(inputs[index].second.begin() + row * width, inputs[index].second.begin() + (row + 1) * width);
  };
  const auto given_row = [&](int bit, size_t index, int64_t row) {
    return (given & bit) != 0 ? row_of(index, row) : reference::Row(cols, 0.0);
  };
  const auto append = [](reference::Row& to, const reference::Row& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  reference::Row x_sum, y_sum, x_out, result, dz, dx, dy;
  reference::JunctionRowGradients g;
  for (auto* const sum : {&g.x_scale, &g.branch_gain, &g.branch_bias, &g.x_gain, &g.x_bias, &g.y_gain, &g.y_bias,
                          &g.input_gain, &g.input_bias}) {
    sum->assign(cols, 0.0);
  }
  for (int64_t row = 0; row < kRows; ++row) {
    const auto state = reference::forward(slow, row_of(0, row), row_of(1, row), row_of(2, row));
    append(x_sum, state.x_sum);
    append(y_sum, state.y_sum);
    append(x_out, state.x_out);
    append(result, state.result);
    reference::backward(slow, state, given_row(kXOut, 3, row), given_row(kYSum, 4, row), given_row(kInput, 5, row), g);
    append(dz, g.z);
    append(dx, g.x);
    append(dy, g.y);
  }

  JunctionExpectations all;
  all.forward.emplace_back("input", result);
  if (sums() && c.two_streams) all.forward.emplace_back("U", x_sum);
  if (sums()) all.forward.emplace_back("V", y_sum);
  if (c.x_norm) all.forward.emplace_back("X", x_out);
  const bool branch = c.branch && (wanted & kBranch) != 0;
  if (branch) all.backward.emplace_back("dz", dz);
  if (c.two_streams && (wanted & kX) != 0) all.backward.emplace_back("dx", dx);
  if ((wanted & kY) != 0) all.backward.emplace_back("dy", dy);
  if ((wanted & kParameters) == 0) return all;
  if (c.x_scale) all.backward.emplace_back("d x_scale", g.x_scale);
  const auto add_norm = [&](bool there, const reference::Row& gain, const reference::Row& bias) {
    if (!there) return;
    all.backward.emplace_back("d gain", gain);
    if (is_layer) all.backward.emplace_back("d bias", bias);
  };
  add_norm(branch && c.branch_norm, g.branch_gain, g.branch_bias);
  add_norm(c.x_norm, g.x_gain, g.x_bias);
  add_norm(c.y_norm, g.y_gain, g.y_bias);
  add_norm(c.input_norm, g.input_gain, g.input_bias);
  return all;
}

}  // namespace siamese::kernels

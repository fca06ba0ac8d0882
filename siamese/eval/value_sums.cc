#include "siamese/eval/value_sums.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/kernels/partition.h"

namespace siamese::eval {

namespace value_sums_detail {

// The parts of all rows, added in their order. Part: () -> Sums; row(Sums&, index).
template <class Sums, class Row>
Sums over_rows(int64_t rows, int64_t width, const Row& row) {
  Sums total;
  if (rows == 0) return total;
  const kernels::Partition partition = kernels::partition_rows(rows, width);
  std::vector<Sums> parts(static_cast<size_t>(partition.parts));
  at::parallel_for(0, partition.parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      for (int64_t i = partition.begin(part); i < partition.end(part); ++i) row(parts[static_cast<size_t>(part)], i);
    }
  });
  for (const Sums& part : parts) total += part;
  return total;
}

struct Moments {
  double norms = 0, max = 0;
  std::array<double, 4> powers{};

  void operator+=(const Moments& other) {
    norms += other.norms;
    max = std::max(max, other.max);
    for (size_t i = 0; i < powers.size(); ++i) powers[i] += other.powers[i];
  }
};

struct Sum {
  double value = 0;
  void operator+=(const Sum& other) { value += other.value; }
};

double ratio(double sum, double count) { return count > 0 ? sum / count : runs::kNone; }

}  // namespace value_sums_detail

at::Tensor float_rows(const at::Tensor& values) {
  return values.detach().to(at::kCPU, at::kFloat).reshape({-1, values.size(-1)}).contiguous();
}

void ValueSums::add(const at::Tensor& values) {
  const at::Tensor rows = float_rows(values);
  const int64_t width = rows.size(1);
  const float* const data = rows.const_data_ptr<float>();
  const auto sums = value_sums_detail::over_rows<value_sums_detail::Moments>(
      rows.size(0), width, [&](value_sums_detail::Moments& of, int64_t row) {
        double one = 0, two = 0, three = 0, four = 0;
        float largest = 0;
        for (int64_t i = row * width; i < (row + 1) * width; ++i) {
          const double x = data[i], square = x * x;
          one += x;
          two += square;
          three += square * x;
          four += square * square;
          largest = std::max(largest, std::abs(data[i]));
        }
        of.norms += std::sqrt(two);
        of.max = std::max(of.max, static_cast<double>(largest));
        of.powers[0] += one;
        of.powers[1] += two;
        of.powers[2] += three;
        of.powers[3] += four;
      });
  count_ += static_cast<double>(rows.numel());
  rows_ += static_cast<double>(rows.size(0));
  norms_ += sums.norms;
  max_ = std::max(max_, sums.max);
  for (size_t i = 0; i < powers_.size(); ++i) powers_[i] += sums.powers[i];
}

runs::ValueStatistics ValueSums::statistics() const {
  if (count_ == 0) return {};
  const double mean = powers_[0] / count_, two = powers_[1] / count_, three = powers_[2] / count_,
               four = powers_[3] / count_;
  const double variance = two - mean * mean;
  const double fourth = four - 4 * mean * three + 6 * mean * mean * two - 3 * mean * mean * mean * mean;
  return {.norm = norms_ / rows_,
          .rms = std::sqrt(two),
          .max = max_,
          .kurtosis = variance > 0 ? fourth / (variance * variance) : runs::kNone};
}

void CosineSums::add(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor first = float_rows(a), second = float_rows(b);
  const int64_t width = first.size(1);
  const float* const x = first.const_data_ptr<float>();
  const float* const y = second.const_data_ptr<float>();
  const auto sum = value_sums_detail::over_rows<value_sums_detail::Sum>(
      first.size(0), width, [&](value_sums_detail::Sum& of, int64_t row) {
        double xx = 0, yy = 0, xy = 0;
        for (int64_t i = row * width; i < (row + 1) * width; ++i) {
          xx += static_cast<double>(x[i]) * x[i];
          yy += static_cast<double>(y[i]) * y[i];
          xy += static_cast<double>(x[i]) * y[i];
        }
        if (xx > 0 && yy > 0) of.value += xy / std::sqrt(xx * yy);
      });
  rows_ += static_cast<double>(first.size(0));
  sum_ += sum.value;
}

double CosineSums::mean() const { return value_sums_detail::ratio(sum_, rows_); }

void TokenMeanSums::add(const at::Tensor& values) {
  const int64_t samples = values.size(0), tokens = values.size(1), width = values.size(2);
  const at::Tensor rows = float_rows(values);
  const float* const data = rows.const_data_ptr<float>();
  const auto sum = value_sums_detail::over_rows<value_sums_detail::Sum>(
      samples, tokens * width, [&](value_sums_detail::Sum& of, int64_t sample) {
        std::vector<double> mean(static_cast<size_t>(width));
        double squares = 0;
        for (int64_t token = 0; token < tokens; ++token) {
          const float* const row = data + (sample * tokens + token) * width;
          for (int64_t i = 0; i < width; ++i) {
            mean[static_cast<size_t>(i)] += row[i];
            squares += static_cast<double>(row[i]) * row[i];
          }
        }
        double of_mean = 0;
        for (const double total : mean) of_mean += total * total;
        if (squares > 0) of.value += of_mean / (static_cast<double>(tokens) * squares);
      });
  samples_ += static_cast<double>(samples);
  sum_ += sum.value;
}

double TokenMeanSums::mean() const { return value_sums_detail::ratio(sum_, samples_); }

}  // namespace siamese::eval

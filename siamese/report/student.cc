#include "siamese/report/student.h"

#include <cmath>
#include <limits>

namespace siamese::report {

namespace {

// The continued fraction of I_x(a, b) by Lentz's method; it converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr int kMost = 10000;
  const auto away_from_zero = [](double value) { return std::fabs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double result = d;
  for (int m = 1; m <= kMost; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    result *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    result *= d * c;
    if (std::fabs(d * c - 1) < 1e-16) break;
  }
  return result;
}

}  // namespace

double incomplete_beta(double a, double b, double x) {
  if (!(a > 0 && b > 0 && x >= 0 && x <= 1)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0 || x == 1) return x;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_two_sided(double t, double freedom) {
  if (!(freedom > 0) || std::isnan(t)) return std::numeric_limits<double>::quiet_NaN();
  if (std::isinf(t)) return 0;
  // Near t = 0 the first form is 1 minus something small, so the complement is taken there.
  const double square = t * t;
  if (square < freedom) return 1 - incomplete_beta(0.5, freedom / 2, square / (freedom + square));
  return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + square));
}

double student_quantile(double p, double freedom) {
  if (!(p > 0 && p < 1 && freedom > 0)) return std::numeric_limits<double>::quiet_NaN();
  double low = 0;
  double high = 1;
  while (student_two_sided(high, freedom) > p) {
    low = high;
    high *= 2;
    if (std::isinf(high)) return high;
  }
  // Bisection: monotone, and a table asks for few.
  for (int i = 0; i < 200 && high - low > 1e-15 * high; ++i) {
    const double middle = low + (high - low) / 2;
    (student_two_sided(middle, freedom) > p ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

}  // namespace siamese::report

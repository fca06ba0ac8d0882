// Student's t against exact cases, written out here, and against the printed tables.
#include "siamese/report/student.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace siamese::report {
namespace {

TEST(IncompleteBeta, ExactCases) {
  for (double x : {1e-12, 1e-3, 0.2, 0.5, 0.7, 0.999, 1 - 1e-9}) {
    EXPECT_NEAR(incomplete_beta(1, 1, x), x, 1e-15);
    EXPECT_NEAR(incomplete_beta(3.5, 1, x) / std::pow(x, 3.5), 1, 1e-13);
    EXPECT_NEAR(incomplete_beta(1, 2.5, x), 1 - std::pow(1 - x, 2.5), 1e-14);
    const double y = 1 - x;
    // From the side on which the root does not round away what is left of 1.
    const double arc = 2 / std::numbers::pi * std::asin(std::sqrt(std::min(x, y)));
    EXPECT_NEAR(incomplete_beta(0.5, 0.5, x), x < y ? arc : 1 - arc, 1e-14);
    // Whole a and b: the tail of a binomial distribution of 5 throws, at least 3 hits.
    EXPECT_NEAR(incomplete_beta(3, 3, x), 10 * x * x * x * y * y + 5 * x * x * x * x * y + x * x * x * x * x, 1e-14);
    EXPECT_NEAR(incomplete_beta(2.3, 40.1, x) + incomplete_beta(40.1, 2.3, y), 1, 1e-13);
  }
  EXPECT_EQ(incomplete_beta(2, 3, 0), 0);
  EXPECT_EQ(incomplete_beta(2, 3, 1), 1);
  EXPECT_TRUE(std::isnan(incomplete_beta(0, 1, 0.5)));
  EXPECT_TRUE(std::isnan(incomplete_beta(1, 1, 1.5)));
}

// With 1, 2 and 4 degrees of freedom the distribution has a closed form.
TEST(Student, ClosedForms) {
  for (double t : {0.0, 1e-8, 0.1, 1.0, 2.5, 12.7, 1000.0}) {
    EXPECT_NEAR(student_two_sided(t, 1), 1 - 2 / std::numbers::pi * std::atan(t), 1e-14);
    EXPECT_NEAR(student_two_sided(t, 2), 1 - t / std::sqrt(2 + t * t), 1e-14);
    const double sine = t / std::sqrt(4 + t * t);
    EXPECT_NEAR(student_two_sided(t, 4), 1 - sine * (1 + (1 - sine * sine) / 2), 1e-14);
    EXPECT_EQ(student_two_sided(-t, 3), student_two_sided(t, 3));
  }
  // Far out there is still a number, not 0: 1 - t / sqrt(2 + t^2) ~ 1 / t^2.
  EXPECT_NEAR(student_two_sided(1e6, 2) * 1e12, 1, 1e-9);
  EXPECT_EQ(student_two_sided(HUGE_VAL, 2), 0);
  EXPECT_TRUE(std::isnan(student_two_sided(1, 0)));
}

TEST(Student, QuantilesAsPrintedInTables) {
  const std::vector<std::pair<double, double>> two_sided_95{{1, 12.706}, {2, 4.303},  {3, 3.182},  {4, 2.776},
                                                            {5, 2.571},  {9, 2.262},  {10, 2.228}, {20, 2.086},
                                                            {30, 2.042}, {60, 2.000}, {120, 1.980}};
  for (const auto& [freedom, t] : two_sided_95) EXPECT_NEAR(student_quantile(0.05, freedom), t, 6e-4) << freedom;
  EXPECT_NEAR(student_quantile(0.01, 2), 9.925, 6e-4);
  EXPECT_NEAR(student_quantile(0.01, 10), 3.169, 6e-4);
  EXPECT_NEAR(student_quantile(0.001, 5), 6.869, 6e-4);
  EXPECT_NEAR(student_quantile(0.05, 1e7), 1.959964, 1e-5);  // the normal distribution's
  // Exact: v = 1 is tan, v = 2 is c sqrt(2 / (1 - c^2)) with c = 1 - p.
  EXPECT_NEAR(student_quantile(0.05, 1), std::tan(std::numbers::pi / 2 * 0.95), 1e-11);
  EXPECT_NEAR(student_quantile(0.05, 2), 0.95 * std::sqrt(2 / (1 - 0.95 * 0.95)), 1e-12);
  for (double p : {0.9, 0.3, 1e-6}) EXPECT_NEAR(student_two_sided(student_quantile(p, 7), 7) / p, 1, 1e-12) << p;
  EXPECT_TRUE(std::isnan(student_quantile(0, 3)));
}

}  // namespace
}  // namespace siamese::report

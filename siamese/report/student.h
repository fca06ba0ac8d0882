// Student's t distribution, computed in double.
//   I_x(a, b)     the regularised incomplete beta function, by its continued fraction
//   P(|T| > t)    = I_{v / (v + t^2)}(v / 2, 1 / 2) for v degrees of freedom
#pragma once

namespace siamese::report {

// a, b > 0, 0 <= x <= 1; NaN otherwise.
double incomplete_beta(double a, double b, double x);

// How probable a value at least as far from 0 as t is. NaN unless freedom > 0.
double student_two_sided(double t, double freedom);

// The t > 0 that |T| exceeds with probability `p`, 0 < p < 1: half the width of a confidence interval in standard
// errors.
double student_quantile(double p, double freedom);

}  // namespace siamese::report

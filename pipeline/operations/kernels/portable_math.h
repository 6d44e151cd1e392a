// Exponential and logarithm using only IEEE's exact operations: libm's may differ by a bit between processors, and
// random draws must not.
#pragma once

#include <cmath>

namespace headrace {

// Returns e^x; 0 or infinity if a double cannot hold it.
inline double exponential(double x) {
  int halvings = 0;
  for (; std::abs(x) > 0.5; x /= 2) ++halvings;
  double sum = 1;
  double term = 1;
  for (int k = 1; k <= 16; ++k) {
    term *= x / k;
    sum += term;
  }
  for (; halvings > 0; --halvings) sum *= sum;
  return sum;
}

// Returns ln(x) for finite x > 0: 2 artanh((x - 1) / (x + 1)) after square roots brought x near 1.
inline double logarithm(double x) {
  double factor = 2;
  for (; x < 0.7 || x > 1.5; factor *= 2) x = std::sqrt(x);
  const double z = (x - 1) / (x + 1);
  double sum = 0;
  double power = z;
  for (int k = 1; k <= 31; k += 2) {
    sum += power / k;
    power *= z * z;
  }
  return factor * sum;
}

}  // namespace headrace

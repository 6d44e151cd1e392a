// Exponential, logarithm, sine and cosine using only IEEE's exact operations: libm's may differ by a bit between
// processors, and random draws must not.
#pragma once

#include <cmath>
#include <cstdint>

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

struct SineCosine {
  double sine = 0, cosine = 1;
};
// Returns both for an angle of |degrees| < 2^31; exact for multiples of 90.
inline SineCosine sine_cosine(double degrees) {
  const auto quarters = static_cast<std::int64_t>(degrees / 90 + (degrees < 0 ? -0.5 : 0.5));
  const double x = (degrees - 90.0 * static_cast<double>(quarters)) * (3.14159265358979323846 / 180);
  double sine = 0, cosine = 0, term = 1;  // x^k / k!
  for (int k = 0; k <= 18; ++k) {
    double& sum = k % 2 == 0 ? cosine : sine;
    sum += k % 4 < 2 ? term : -term;
    term *= x / (k + 1);
  }
  switch (quarters & 3) {
    case 0: return {.sine = sine, .cosine = cosine};
    case 1: return {.sine = cosine, .cosine = -sine};
    case 2: return {.sine = -sine, .cosine = -cosine};
    default: return {.sine = -cosine, .cosine = sine};
  }
}

}  // namespace headrace

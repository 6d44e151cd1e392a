// Oracle of batch normalisation of a matrix (rows, channels) of which the first `real` rows count.
#pragma once

#include <cmath>

#include "headrace/tests/support/reference.h"

namespace headrace::test {

struct NormSizes {
  std::size_t rows, real, channels;
};

struct Statistics {
  Reals mean, variance;  // biased
};

inline Statistics statistics(const NormSizes& s, const Reals& x) {
  Statistics of{Reals(s.channels), Reals(s.channels)};
  const auto count = static_cast<double>(s.real);
  for (std::size_t i = 0; i < s.real * s.channels; ++i) of.mean[i % s.channels] += x[i] / count;
  for (std::size_t i = 0; i < s.real * s.channels; ++i) {
    const double distance = x[i] - of.mean[i % s.channels];
    of.variance[i % s.channels] += distance * distance / count;
  }
  return of;
}

inline Reals normalized(const NormSizes& s, const Reals& x, const Statistics& by, const Reals& gamma,
                        const Reals& beta, double epsilon) {
  Reals y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i % s.channels;
    y[i] = (x[i] - by.mean[c]) / std::sqrt(by.variance[c] + epsilon) * gamma[c] + beta[c];
  }
  return y;
}

}  // namespace headrace::test

// Oracle of softmax and its cross-entropy for one row.
#pragma once

#include <algorithm>
#include <cmath>

#include "headrace/tests/support/reference.h"

namespace headrace::test {

inline Reals softmax(const Reals& logits) {
  const double maximum = *std::max_element(logits.begin(), logits.end());
  Reals p(logits);
  double sum = 0;
  for (double& value : p) sum += value = std::exp(value - maximum);
  for (double& value : p) value /= sum;
  return p;
}

// Against (1 - smoothing) of the label and smoothing spread over all classes.
inline double cross_entropy(const Reals& logits, std::size_t label, double smoothing) {
  const double maximum = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double value : logits) sum += std::exp(value - maximum);
  double loss = 0;
  for (std::size_t k = 0; k < logits.size(); ++k) {
    const double target = (k == label ? 1 - smoothing : 0) + smoothing / static_cast<double>(logits.size());
    loss -= target * (logits[k] - maximum - std::log(sum));
  }
  return loss;
}

}  // namespace headrace::test

// Oracles of softmax and of losses for one row.
#pragma once

#include <algorithm>
#include <cmath>

#include "headrace/devices/kernels.h"
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

// Against (1 - smoothing) of each target and smoothing spread over all classes.
inline double soft_cross_entropy(const Reals& logits, const Reals& targets, double smoothing) {
  const double maximum = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double value : logits) sum += std::exp(value - maximum);
  double loss = 0;
  for (std::size_t k = 0; k < logits.size(); ++k) {
    const double target = (1 - smoothing) * targets[k] + smoothing / static_cast<double>(logits.size());
    loss -= target * (logits[k] - maximum - std::log(sum));
  }
  return loss;
}

inline double cross_entropy(const Reals& logits, std::size_t label, double smoothing) {
  Reals targets(logits.size());
  targets[label] = 1;
  return soft_cross_entropy(logits, targets, smoothing);
}

inline double element_loss(ElementLoss loss, double x, double t) {
  switch (loss) {
    case ElementLoss::kSquaredError: return (x - t) * (x - t);
    case ElementLoss::kAbsoluteError: return std::abs(x - t);
    case ElementLoss::kBinaryFromLogits: x = 1 / (1 + std::exp(-x)); break;
    case ElementLoss::kBinaryFromProbabilities: break;
    case ElementLoss::kHuber: return std::abs(x - t) > 1 ? std::abs(x - t) - 0.5 : (x - t) * (x - t) / 2;
    case ElementLoss::kHinge: return std::max(0.0, 1 - (t > 0 ? x : -x));
    case ElementLoss::kKullbackLeibler: return std::max(t, 1e-7) * std::log(std::max(t, 1e-7) / x);
    case ElementLoss::kMatchesOfLogits: return (x > 0) == (t >= 0.5) ? 1 : 0;
    case ElementLoss::kMatchesOfProbabilities: return (x > 0.5) == (t >= 0.5) ? 1 : 0;
  }
  return -t * std::log(x) - (1 - t) * std::log(1 - x);
}

// The mean over a row's elements, or their sum.
inline double element_loss(ElementLoss loss, const Reals& x, const Reals& targets) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += element_loss(loss, x[i], targets[i]);
  return sums_elements(loss) ? sum : sum / static_cast<double>(x.size());
}

// Minus the cosine of the angle between them.
inline double cosine_loss(const Reals& x, const Reals& target) {
  double squares = 0, target_squares = 0, products = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    squares += x[k] * x[k];
    target_squares += target[k] * target[k];
    products += x[k] * target[k];
  }
  return -products / std::sqrt(squares * target_squares);
}

}  // namespace headrace::test

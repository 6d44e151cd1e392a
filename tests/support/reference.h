// What the oracles in reference_*.h share: everything is a vector of f64, computed the plainest way.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "headrace/devices/base/rng.h"
#include "headrace/devices/kernels.h"

namespace headrace::test {

using Reals = std::vector<double>;

inline Reals reals(const std::vector<float>& values) { return {values.begin(), values.end()}; }

// `count` numbers in [-1, 1), the same for the same seed.
inline std::vector<float> random_floats(std::int64_t count, std::uint64_t seed) {
  Philox random({.seed = seed});
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = 2 * random.uniform() - 1;
  return values;
}

// The gradient at `x` of the sum over `weights` * function(x), by central differences.
inline Reals differences(const std::function<Reals(const Reals&)>& function, Reals x, const Reals& weights) {
  constexpr double kStep = 1e-5;
  const auto weighted = [&](const Reals& at) {
    const Reals y = function(at);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += weights[i] * y[i];
    return sum;
  };
  Reals gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double middle = x[i];
    x[i] = middle + kStep;
    const double above = weighted(x);
    x[i] = middle - kStep;
    gradient[i] = (above - weighted(x)) / (2 * kStep);
    x[i] = middle;
  }
  return gradient;
}

// Oracles of the functions of one element, of bias and of rounding.

inline double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone: return x;
    case Activation::kRelu: return x > 0 ? x : 0;
    case Activation::kGelu: return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kSilu: return x / (1 + std::exp(-x));
    case Activation::kSigmoid: return 1 / (1 + std::exp(-x));
    case Activation::kTanh: return std::tanh(x);
    case Activation::kLeakyRelu: return x > 0 ? x : static_cast<double>(kLeakySlope) * x;
    case Activation::kElu: return x > 0 ? x : std::expm1(x);
    case Activation::kSoftplus: return std::log1p(std::exp(-std::abs(x))) + (x > 0 ? x : 0);
    case Activation::kSoftmax: break;
  }
  return x;
}

inline double activation_slope(Activation activation, double x) {
  constexpr double kDensity = 0.39894228040143268;  // 1 / sqrt(2 pi)
  const double sigmoid = 1 / (1 + std::exp(-x));
  switch (activation) {
    case Activation::kNone: return 1;
    case Activation::kRelu: return x > 0 ? 1 : 0;
    case Activation::kGelu: return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * kDensity * std::exp(-0.5 * x * x);
    case Activation::kSilu: return sigmoid + x * sigmoid * (1 - sigmoid);
    case Activation::kSigmoid: return sigmoid * (1 - sigmoid);
    case Activation::kTanh: return 1 - std::tanh(x) * std::tanh(x);
    case Activation::kLeakyRelu: return x > 0 ? 1 : static_cast<double>(kLeakySlope);
    case Activation::kElu: return x > 0 ? 1 : std::exp(x);
    case Activation::kSoftplus: return sigmoid;
    case Activation::kSoftmax: break;
  }
  return 1;
}

inline Reals activated(Activation activation, Reals x) {
  for (double& value : x) value = activated(activation, value);
  return x;
}

// The nearest number with a significand of 8 bits, ties to even: exact for every x that is an f32.
inline double rounded_to_bf16(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent = 0;
  const double significand = std::frexp(x, &exponent);  // in [0.5, 1)
  return std::ldexp(std::nearbyint(std::ldexp(significand, 8)), exponent - 8);
}

inline Reals in_precision(Precision precision, Reals x) {
  if (precision == Precision::kBF16) {
    for (double& value : x) value = rounded_to_bf16(value);
  }
  return x;
}

// Oracles of softmax and of losses for one row.

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

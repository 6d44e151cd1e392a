// Oracles of the functions of one element, of bias and of rounding.
#pragma once

#include <cmath>

#include "headrace/devices/kernels.h"
#include "headrace/tests/support/reference.h"

namespace headrace::test {

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

}  // namespace headrace::test

// Activation functions of one element and their derivatives. Private to the CUDA backend.
#pragma once

#include <cmath>
#include <type_traits>

#include "headrace/devices/cuda/math/host_device.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// The normal distribution's Phi.
HEADRACE_HOST_DEVICE float normal_distribution(float x) { return 0.5F + 0.5F * erff(x * 0.707106781F); }
HEADRACE_HOST_DEVICE float sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }

HEADRACE_HOST_DEVICE float activated(Activation activation, float x) {
  switch (activation) {
    case Activation::kNone: break;
    case Activation::kRelu: return x > 0 ? x : 0.0F;
    case Activation::kGelu: return x * normal_distribution(x);
    case Activation::kSilu: return x * sigmoid(x);
  }
  return x;
}

HEADRACE_HOST_DEVICE float activation_slope(Activation activation, float x) {
  switch (activation) {
    case Activation::kNone: break;
    case Activation::kRelu: return x > 0 ? 1.0F : 0.0F;
    case Activation::kGelu: return normal_distribution(x) + x * (0.398942280F * expf(-0.5F * (x * x)));
    case Activation::kSilu: {
      const float s = sigmoid(x);
      return s + x * s * (1.0F - s);
    }
  }
  return 1;
}

// The gradient of x from that of activated(activation, x). A relu's slope times an infinite gradient is 0, as dy
// is chosen, not multiplied.
HEADRACE_HOST_DEVICE float activation_gradient(Activation activation, float x, float dy) {
  if (activation == Activation::kNone) return dy;
  if (activation == Activation::kRelu) return x > 0 ? dy : 0.0F;
  return dy * activation_slope(activation, x);
}

// function(integral_constant) with the activation: kernels of one activation do not carry the code of others.
template <typename Function>
void by_activation(Activation activation, const Function& function) {
  switch (activation) {
    case Activation::kNone: break;
    case Activation::kRelu: return function(std::integral_constant<Activation, Activation::kRelu>{});
    case Activation::kGelu: return function(std::integral_constant<Activation, Activation::kGelu>{});
    case Activation::kSilu: return function(std::integral_constant<Activation, Activation::kSilu>{});
  }
  function(std::integral_constant<Activation, Activation::kNone>{});
}

}  // namespace headrace::cuda

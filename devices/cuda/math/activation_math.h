// Activation functions of one element and their derivatives. Private to the CUDA backend.
#pragma once

#include <cmath>
#include <type_traits>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/cuda/element.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// 2^x and 1 / x, each a single GPU instruction: a few units in the last place off, numbers below 2^-126 are zeros.
HEADRACE_HOST_DEVICE float quick_exp2(float x) {
#ifdef __CUDA_ARCH__
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return exp2f(x);
#endif
}
HEADRACE_HOST_DEVICE float quick_reciprocal(float x) {
#ifdef __CUDA_ARCH__
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return 1.0F / x;
#endif
}

// Returns a * b rounded to f32, as a CPU does. nvcc would contract the product with an addition that follows:
// subtracting the same product, already rounded, would then leave its rounding error instead of 0.
HEADRACE_HOST_DEVICE float rounded_product(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

// The density of the normal distribution, and its distribution function Phi.
struct Normal {
  float density, distribution;
};

template <typename T>
struct ActivationMath;

// Exact to f32 precision.
template <>
struct ActivationMath<float> {
  HEADRACE_HOST_DEVICE static Normal normal(float x) {
    return {0.398942280F * expf(-0.5F * (x * x)), 0.5F + 0.5F * erff(x * 0.707106781F)};
  }
  HEADRACE_HOST_DEVICE static float sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }
};

// For results that are rounded to bf16: branchless, relative errors below 2e-5, even in the far tails. For at
// least 99 % of bf16 numbers the activation and the slope equal those of the exact functions, for the others a
// neighbour (activation_math_test.cpp).
template <>
struct ActivationMath<BFloat16> {
  // Phi(-a) = e^(-a^2 / 2) s Q(s), s = 1 / (1 + 0.3 a), for a >= 0: Q is a polynomial fitted by Remez exchange on
  // the relative error over [0, 14] (8.3e-6).
  HEADRACE_HOST_DEVICE static Normal normal(float x) {
    const float s = quick_reciprocal(1.0F + 0.3F * fabsf(x));
    float q = -0.0770973184F;
    q = q * s + 0.216036782F;
    q = q * s - 0.0169477986F;
    q = q * s + 0.144196256F;
    q = q * s + 0.113741953F;
    q = q * s + 0.12007423F;
    const float bell = quick_exp2(-0.721347520F * (x * x));
    const float tail = bell * (q * s);
    return {0.398942280F * bell, x < 0 ? tail : 1.0F - tail};
  }
  HEADRACE_HOST_DEVICE static float sigmoid(float x) {
    return quick_reciprocal(1.0F + quick_exp2(-1.44269504F * x));
  }
};

// T is the type of the stored result: f32 or bf16.
template <typename T>
HEADRACE_HOST_DEVICE float activated(Activation activation, float x) {
  switch (activation) {
    case Activation::kNone: break;
    case Activation::kRelu: return x <= 0 ? 0.0F : x;  // NaN passes, as in all of them
    case Activation::kGelu: return x * ActivationMath<T>::normal(x).distribution;
    case Activation::kSilu: return x * ActivationMath<T>::sigmoid(x);
    case Activation::kSigmoid: return ActivationMath<T>::sigmoid(x);
    case Activation::kTanh: return tanhf(x);
    case Activation::kLeakyRelu: return x > 0 ? x : kLeakySlope * x;
    case Activation::kElu: return x > 0 ? x : expm1f(x);
    case Activation::kSoftplus: return (x > 0 ? x : 0.0F) + log1pf(expf(-fabsf(x)));
    case Activation::kSoftmax: break;
  }
  return x;
}

// Takes the result as x if slope_from_result().
template <typename T>
HEADRACE_HOST_DEVICE float activation_slope(Activation activation, float x) {
  switch (activation) {
    case Activation::kNone: break;
    case Activation::kRelu: return x <= 0 ? 0.0F : 1.0F;
    case Activation::kGelu: {
      const Normal normal = ActivationMath<T>::normal(x);
      return normal.distribution + x * normal.density;
    }
    case Activation::kSilu: {
      const float s = ActivationMath<T>::sigmoid(x);
      return s + x * s * (1.0F - s);
    }
    case Activation::kSigmoid: return x * (1.0F - x);
    case Activation::kTanh: return 1.0F - x * x;
    case Activation::kLeakyRelu: return x > 0 ? 1.0F : kLeakySlope;
    case Activation::kElu: return x > 0 ? 1.0F : x + 1.0F;
    case Activation::kSoftplus: return -expm1f(-x);
    case Activation::kSoftmax: break;
  }
  return 1;
}

// Returns the gradient of x from that of activated<T>(activation, x), rounded to f32 even if it is then added.
// Relu selects dy rather than multiplying it, so its slope 0 times an infinite gradient is 0.
template <typename T>
HEADRACE_HOST_DEVICE float activation_gradient(Activation activation, float x, float dy) {
  if (activation == Activation::kNone) return dy;
  if (activation == Activation::kRelu) return x <= 0 ? 0.0F : dy;
  return rounded_product(dy, activation_slope<T>(activation, x));
}

// Calls function(integral_constant) with the activation: a kernel of one activation contains no code of others.
// REQUIRES: is_fused().
template <typename Function>
void by_fused_activation(Activation activation, const Function& function) {
  switch (activation) {
    case Activation::kNone: break;
    case Activation::kRelu: return function(std::integral_constant<Activation, Activation::kRelu>{});
    case Activation::kGelu: return function(std::integral_constant<Activation, Activation::kGelu>{});
    case Activation::kSilu: return function(std::integral_constant<Activation, Activation::kSilu>{});
    default: break;
  }
  function(std::integral_constant<Activation, Activation::kNone>{});
}

// The same of any function of single elements.
template <typename Function>
void by_activation(Activation activation, const Function& function) {
  switch (activation) {
    case Activation::kSigmoid: return function(std::integral_constant<Activation, Activation::kSigmoid>{});
    case Activation::kTanh: return function(std::integral_constant<Activation, Activation::kTanh>{});
    case Activation::kLeakyRelu: return function(std::integral_constant<Activation, Activation::kLeakyRelu>{});
    case Activation::kElu: return function(std::integral_constant<Activation, Activation::kElu>{});
    case Activation::kSoftplus: return function(std::integral_constant<Activation, Activation::kSoftplus>{});
    default: by_fused_activation(activation, function);
  }
}

}  // namespace headrace::cuda

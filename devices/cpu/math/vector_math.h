// Functions of one float without branches or calls, for loops that become vector code. Private to the CPU
// backend. Stated errors are the maximum found over all inputs of the range by the unit test.
#pragma once

#include <cmath>
#include <cstdint>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/base/simd.h"
#include "headrace/devices/kernels.h"

namespace headrace {

// Returns e^x, relative error below 2e-7; clamped to [e^-87, e^88]; NaN stays NaN. Cody-Waite reduction to |r| <=
// ln(2) / 2 and the Taylor polynomial of degree 7, whose remainder is below 6e-9.
HEADRACE_INLINE float fast_exp(float x) noexcept {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer, kept in the low bits
  x = x < -87.0F ? -87.0F : x;
  x = x > 88.0F ? 88.0F : x;
  const float shifted = x * 1.44269504F + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
  float p = 1.0F / 5040;
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * (r * r) + r + 1.0F;
  const std::uint32_t exponent =
      __builtin_bit_cast(std::uint32_t, shifted) - __builtin_bit_cast(std::uint32_t, kRound);
  return p * __builtin_bit_cast(float, (exponent + 127U) << 23);
}

// The density of the normal distribution, relative error below 5e-6 for |x| < 6, and its distribution function
// Phi(x), absolute error below 2.5e-7.
struct Normal {
  float density;
  float distribution;
};

// Phi(-a) = e^(-a^2 / 2) Q(1 / (1 + 0.3 a)) for a >= 0: Q is a polynomial fitted by Remez exchange on the
// relative error over [0, 14] (1.5e-7).
HEADRACE_INLINE Normal fast_normal(float x) noexcept {
  const float a = x < 0 ? -x : x;
  const float t = 1.0F / (1.0F + 0.3F * a);
  float q = 0.0356747693F;
  q = q * t - 0.157203063F;
  q = q * t + 0.206353474F;
  q = q * t - 0.0536836156F;
  q = q * t + 0.128561612F;
  q = q * t + 0.0999134962F;
  q = q * t + 0.120753955F;
  q = q * t + 0.119629299F;
  const float bell = fast_exp(-0.5F * (a * a));
  const float tail = bell * (q * t);
  return {.density = 0.398942280F * bell, .distribution = x < 0 ? tail : 1.0F - tail};
}

// Returns e^x - 1 for x <= 0. Near 0 the difference has few digits; the Taylor polynomial is used there, whose
// remainder is below 2e-8 of the result.
HEADRACE_INLINE float fast_exp_minus_1(float x) noexcept {
  const float near =
      x * (1.0F + x * (1.0F / 2) * (1.0F + x * (1.0F / 3) * (1.0F + x * (1.0F / 4) * (1.0F + x * (1.0F / 5)))));
  return x > -0.1F ? near : fast_exp(x) - 1.0F;
}

// NaN passes, as in all of them.
HEADRACE_INLINE float relu(float x) noexcept { return x <= 0 ? 0.0F : x; }
HEADRACE_INLINE float sigmoid(float x) noexcept { return 1.0F / (1.0F + fast_exp(-x)); }
HEADRACE_INLINE float silu(float x) noexcept { return x * sigmoid(x); }
HEADRACE_INLINE float gelu(float x) noexcept { return x * fast_normal(x).distribution; }

// Near 0 the difference of two numbers near 1 has few digits; the Taylor polynomial is used there, whose remainder
// is below 6e-8 of the result.
HEADRACE_INLINE float fast_tanh(float x) noexcept {
  const float far = 2.0F * sigmoid(2.0F * x) - 1.0F;
  const float s = x * x;
  const float near = x * (1.0F + s * (-1.0F / 3 + s * (2.0F / 15 + s * (-17.0F / 315))));
  return s < 0.04F ? near : far;
}
HEADRACE_INLINE float leaky_relu(float x) noexcept { return x > 0 ? x : kLeakySlope * x; }
HEADRACE_INLINE float elu(float x) noexcept { return x > 0 ? x : fast_exp_minus_1(x); }
// Returns log(1 + t) for 0 <= t <= 1 as 2 atanh(t / (2 + t)), by its Taylor polynomial; the remainder is below
// 1e-8 of the result.
HEADRACE_INLINE float fast_log_1_plus(float t) noexcept {
  const float u = t / (2.0F + t), s = u * u;
  const float tail = 1.0F / 9 + s * (1.0F / 11 + s * (1.0F / 13 + s * (1.0F / 15)));
  return 2.0F * u * (1.0F + s * (1.0F / 3 + s * (1.0F / 5 + s * (1.0F / 7 + s * tail))));
}
HEADRACE_INLINE float softplus(float x) noexcept {
  return (x > 0 ? x : 0.0F) + fast_log_1_plus(fast_exp(x > 0 ? -x : x));
}

// Their derivatives.
HEADRACE_INLINE float silu_slope(float x) noexcept {
  const float s = sigmoid(x);
  return s + x * s * (1.0F - s);
}
HEADRACE_INLINE float gelu_slope(float x) noexcept {
  const Normal normal = fast_normal(x);
  return normal.distribution + x * normal.density;
}

// The value of a compile-time activation, and the gradient of its input from that of its result: x is the input
// or, if slope_from_result(), the result. Relu selects dy rather than multiplying it, so its slope 0 times an
// infinite gradient is 0.
template <Activation kActivation>
HEADRACE_INLINE float activated(float x) noexcept {
  if constexpr (kActivation == Activation::kRelu) return relu(x);
  if constexpr (kActivation == Activation::kGelu) return gelu(x);
  if constexpr (kActivation == Activation::kSilu) return silu(x);
  if constexpr (kActivation == Activation::kSigmoid) return sigmoid(x);
  if constexpr (kActivation == Activation::kTanh) return fast_tanh(x);
  if constexpr (kActivation == Activation::kLeakyRelu) return leaky_relu(x);
  if constexpr (kActivation == Activation::kElu) return elu(x);
  if constexpr (kActivation == Activation::kSoftplus) return softplus(x);
  return x;
}
template <Activation kActivation>
HEADRACE_INLINE float activation_gradient(float x, float dy) noexcept {
  if constexpr (kActivation == Activation::kRelu) return x <= 0 ? 0.0F : dy;
  if constexpr (kActivation == Activation::kGelu) return dy * gelu_slope(x);
  if constexpr (kActivation == Activation::kSilu) return dy * silu_slope(x);
  if constexpr (kActivation == Activation::kSigmoid) return dy * (x * (1.0F - x));
  if constexpr (kActivation == Activation::kTanh) return dy * (1.0F - x * x);
  if constexpr (kActivation == Activation::kLeakyRelu) return x > 0 ? dy : kLeakySlope * dy;
  if constexpr (kActivation == Activation::kElu) return x > 0 ? dy : dy * (x + 1.0F);
  if constexpr (kActivation == Activation::kSoftplus) return -dy * fast_exp_minus_1(-x);
  return dy;
}

// Returns x rounded to the nearest bf16, ties to even, as an f32. NaN stays NaN.
HEADRACE_INLINE float round_to_bf16(float x) noexcept { return widened(nearest_bf16(x)); }

}  // namespace headrace

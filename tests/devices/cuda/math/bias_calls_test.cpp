#include "headrace/devices/cuda/math/bias_calls.h"

#include <gtest/gtest.h>

#include <vector>

#include "headrace/tests/support/host_launcher.h"
#include "headrace/tests/support/reference_elementwise.h"

namespace headrace::cuda {
namespace {

constexpr Activation kActivations[] = {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kSilu};

// Widths of packs, of none, and more rows than one block has.
const std::vector<Shape> kShapes{{1, 1}, {3, 10}, {5, 24}, {700, 64}, {2, 3, 3, 2056}};

std::vector<float> shifted(std::int64_t elements, std::uint64_t seed) {
  std::vector<float> values = test::random_floats(elements, seed);
  for (float& value : values) value *= 3;
  return values;
}

TEST(BiasEpilogueWork, AddsTheBiasThenActivates) {
  for (const Shape& shape : kShapes) {
    std::vector<float> bias = shifted(shape.back(), 2);
    for (const Activation activation : kActivations) {
      for (const bool with_bias : {true, false}) {
        std::vector<float> y = shifted(shape.elements(), 1);
        const std::vector<float> given = y;
        const test::HostLauncher launch;
        const TensorView biases = with_bias ? TensorView{bias.data(), {shape.back()}, DType::kF32} : TensorView{};
        submit_bias_activation(launch, {y.data(), shape, DType::kF32}, biases, activation);
        for (std::size_t i = 0; i < y.size(); ++i) {
          const float sum = with_bias ? given[i] + bias[i % bias.size()] : given[i];
          ASSERT_NEAR(y[i], test::activated(activation, sum), 2e-6) << shape.to_string() << " at " << i;
        }
      }
    }
  }
}

TEST(BiasEpilogueWork, InBf16RoundsOnceBehindTheActivation) {
  for (const Shape& shape : kShapes) {
    std::vector<float> bias = shifted(shape.back(), 2);
    for (const Activation activation : kActivations) {
      std::vector<BFloat16> y;
      for (const float value : shifted(shape.elements(), 1)) y.push_back(nearest_bf16(value));
      const std::vector<BFloat16> given = y;
      const test::HostLauncher launch;
      submit_bias_activation(launch, {y.data(), shape, DType::kBF16}, {bias.data(), {shape.back()}, DType::kF32},
                             activation);
      for (std::size_t i = 0; i < y.size(); ++i) {
        const double wanted = test::activated(activation, widened(given[i]) + bias[i % bias.size()]);
        ASSERT_NEAR(widened(y[i]), wanted, std::abs(wanted) * (0x1p-8 + 3e-5) + 1e-36)
            << shape.to_string() << " at " << i;
      }
    }
  }
}

}  // namespace
}  // namespace headrace::cuda

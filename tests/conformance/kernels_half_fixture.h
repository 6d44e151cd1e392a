// Tensors in bf16 for the suites of Kernels, and what a result in bf16 may differ by.
#pragma once

#include "headrace/tests/conformance/kernels_fixture.h"

namespace headrace::test {

template <typename Target>
class KernelsHalfFixture : public KernelsFixture<Target> {
 protected:
  // Of the largest, where the slope of a GELU or SiLU is as exact as bf16 needs it (2e-5 of itself and of what
  // cancels in it: devices/cuda/math/activation_math.h).
  static constexpr double kQuick = 2e-5;

  // Widths that fill packs of eight, that do not, and more than one block.
  static inline const std::vector<Shape> kShapes{{1}, {3, 5, 5, 3}, {7, 8}, {33, 64}, {2, 70001}};

  TensorView half(const Shape& shape, const std::vector<float>& values) {
    std::vector<BFloat16> rounded;
    for (const float value : values) rounded.push_back(nearest_bf16(value));
    return this->tensor(shape, rounded);
  }
  TensorView half(const Shape& shape, std::uint64_t seed, float magnitude = 1) {
    auto values = random_floats(shape.elements(), seed);
    for (float& value : values) value *= magnitude;
    return half(shape, values);
  }
  TensorView half_result(const Shape& shape) { return this->result(shape, DType::kBF16); }

  // Each element within one rounding to bf16 (2^-9 of itself) of the expected, and what f32 arithmetic of this
  // relative error of the largest adds, which may also tip the rounding over to the next number.
  void expect_rounded(const TensorView& actual, const Reals& expected, double arithmetic,
                      const std::string& what) {
    const Reals values = this->read_reals(actual);
    ASSERT_EQ(values.size(), expected.size()) << what;
    double scale = 0;
    for (const double value : expected) scale = std::max(scale, std::abs(value));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double allowed = std::abs(expected[i]) / 256 + arithmetic * Target::slack() * std::max(scale, 1e-3);
      ASSERT_NEAR(values[i], expected[i], allowed) << what << " at " << i;
    }
  }
};

}  // namespace headrace::test

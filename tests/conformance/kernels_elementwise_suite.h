// What the elementwise and dropout kernels of every device must compute.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "headrace/tests/conformance/kernels_fixture.h"
#include "headrace/tests/support/reference.h"

namespace headrace::test {

template <typename Target>
class KernelsElementwiseSuite : public KernelsFixture<Target> {
 protected:
  static inline const std::vector<Shape> kShapes{{1}, {7}, {3, 5, 5, 3}, {33, 65}, {2, 70001}};
  static inline const std::vector<Activation> kActivations{
      Activation::kNone, Activation::kRelu,      Activation::kGelu, Activation::kSilu,    Activation::kSigmoid,
      Activation::kTanh, Activation::kLeakyRelu, Activation::kElu,  Activation::kSoftplus};

  // Numbers from -8 to 8: past where the activations bend.
  TensorView wide(const Shape& shape, std::uint64_t seed) {
    auto values = random_floats(shape.elements(), seed);
    for (float& value : values) value *= 8;
    return this->tensor(shape, values);
  }

  // Of u8 or f32.
  Reals scaled(const TensorView& x, float factor) {
    Reals values;
    if (x.dtype == DType::kU8) {
      for (const std::uint8_t byte : this->template read<std::uint8_t>(x)) values.push_back(byte);
    } else {
      values = this->read_reals(x);
    }
    for (double& value : values) value *= static_cast<double>(factor);
    return values;
  }

  std::vector<float> drop(const TensorView& x, float rate, std::uint64_t seed, int layer, const StepScalars& at) {
    const TensorView y = this->result(x.shape);
    const StepScalars* scalars = this->scalars(at);
    this->run([&](Stream& stream) { this->kernels().dropout(stream, {x, y, rate, seed, layer, scalars}); }, {y});
    return this->template read<float>(y);
  }
};
TYPED_TEST_SUITE_P(KernelsElementwiseSuite);

TYPED_TEST_P(KernelsElementwiseSuite, ActivationForward) {
  for (const Shape& shape : this->kShapes) {
    for (const Activation activation : this->kActivations) {
      const TensorView x = this->wide(shape, 1), y = this->result(shape);
      this->run([&](Stream& stream) { this->kernels().activation_forward(stream, {activation, x, y}); }, {y});
      this->expect_close(y, activated(activation, this->read_reals(x)), 2e-7, shape.to_string());
    }
  }
}

TYPED_TEST_P(KernelsElementwiseSuite, ActivationBackward) {
  for (const Shape& shape : this->kShapes) {
    for (const Activation activation : this->kActivations) {
      const TensorView x = this->wide(shape, 2), dy = this->random(shape, 3), dx = this->result(shape);
      const TensorView y = this->result(shape);
      this->kernels().activation_forward(this->stream(), {activation, x, y});
      const TensorView& known = slope_from_result(activation) ? y : x;
      this->run(
          [&](Stream& stream) {
            this->kernels().activation_backward(stream, {activation, known, dy, dx});
          },
          {dx});
      constexpr double kStep = 1e-5;
      Reals expected = this->read_reals(dy);
      const Reals xs = this->read_reals(x);
      for (std::size_t i = 0; i < xs.size(); ++i) {
        expected[i] *= (activated(activation, xs[i] + kStep) - activated(activation, xs[i] - kStep)) / (2 * kStep);
      }
      // Differences are wrong within a step of a corner.
      const bool bent = activation == Activation::kRelu || activation == Activation::kLeakyRelu;
      for (std::size_t i = 0; bent && i < xs.size(); ++i) {
        if (std::abs(xs[i]) <= kStep) expected[i] = this->read_reals(dy)[i] * activation_slope(activation, xs[i]);
      }
      this->expect_close(dx, expected, 2e-6, shape.to_string());
      // In place, and for the relu from its result.
      const TensorView& from = activation == Activation::kRelu ? y : known;
      this->run(
          [&](Stream& stream) {
            this->kernels().activation_backward(stream, {activation, from, dy, dy});
          },
          {dy});
      this->expect_close(dy, expected, 2e-6, shape.to_string());
    }
  }
}

// NaN in one place of a vector, or in the last: every function gives NaN there and what it gave before elsewhere.
TYPED_TEST_P(KernelsElementwiseSuite, NaNPassesEveryActivation) {
  constexpr std::int64_t kRows = 3, kColumns = 37;
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const Shape shape{kRows, kColumns};
  const auto expect_nan = [&](const TensorView& y, const std::vector<bool>& where, const std::string& what) {
    const Reals values = this->read_reals(y);
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(std::isnan(values[i]), where[i]) << what << i;
  };
  for (const std::int64_t at : {std::int64_t{0}, std::int64_t{5}, kRows * kColumns - 1}) {
    auto values = random_floats(shape.elements(), 1);
    values[static_cast<std::size_t>(at)] = kNaN;
    std::vector<bool> own(values.size()), row(values.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      own[i] = static_cast<std::int64_t>(i) == at;
      row[i] = static_cast<std::int64_t>(i) / kColumns == at / kColumns;
    }
    const TensorView wide = this->tensor(shape, values), weights = this->random({kColumns, kColumns}, 2);
    const TensorView dy = this->random(shape, 3), image_weights = this->random({kColumns, 1, 1, kColumns}, 4);
    for (const DType type : {DType::kF32, DType::kBF16}) {
      const TensorView x = this->result(shape, type), y = this->result(shape, type),
                       from = this->result(shape, type);
      this->kernels().convert(this->stream(), {wide, x});
      this->kernels().convert(this->stream(), {dy, from});
      for (const Activation activation : this->kActivations) {
        const std::string what = fmt::format("{} {} ", static_cast<int>(activation), to_string(type));
        this->kernels().activation_forward(this->stream(), {activation, x, y});
        expect_nan(y, own, "forward " + what);
        const TensorView dx = this->result(shape, type);
        this->kernels().activation_backward(this->stream(),
                                            {activation, slope_from_result(activation) ? y : x, from, dx});
        const bool flat = activation == Activation::kNone || activation == Activation::kRelu ||
                          activation == Activation::kLeakyRelu;  // dy passes, or a share of it
        if (flat) {
          EXPECT_NE(this->read_reals(dx)[static_cast<std::size_t>(at)], 0) << what;
        } else {
          expect_nan(dx, own, "backward " + what);
        }
        if (!is_fused(activation)) continue;
        const Precision precision = type == DType::kBF16 ? Precision::kBF16 : Precision::kF32;
        const TensorView stored = this->result(shape, this->kernels().activation_type(precision));
        for (const TensorView& bias : {this->random({kColumns}, 5), TensorView{}}) {
          this->poison(stored);
          this->kernels().dense_forward(this->stream(), {wide, weights, bias, stored, activation, precision});
          expect_nan(stored, row, "dense " + what);
          const auto image = [&](const TensorView& view) {
            return TensorView{view.data, {1, kRows, 1, kColumns}, view.dtype};
          };
          this->poison(stored);
          this->kernels().conv_forward(
              this->stream(),
              {image(wide), image_weights, bias, image(stored), {.precision = precision}, activation});
          expect_nan(stored, row, "conv " + what);
          this->kernels().depthwise_forward(
              this->stream(), {image(x), this->random({kColumns, 1, 1, 1}, 6), bias, image(y), {}, activation});
          expect_nan(y, own, "depthwise " + what);
          this->kernels().convert(this->stream(), {wide, y});
          if (bias.defined()) this->kernels().add_bias(this->stream(), {bias, y, activation});
          expect_nan(y, own, "bias " + what);
        }
        const TensorView ones = this->tensor({kColumns}, std::vector<float>(kColumns, 1));
        this->kernels().batch_norm_infer(this->stream(), {x,
                                                          y,
                                                          {.gamma = ones,
                                                           .beta = ones,
                                                           .running_mean = ones,
                                                           .running_var = ones,
                                                           .saved_mean = {},
                                                           .saved_inv_std = {},
                                                           .activation = activation}});
        expect_nan(y, own, "norm " + what);
      }
    }
    this->kernels().clamp(this->stream(), {wide, 0.5F});
    expect_nan(wide, own, "clamp ");
  }
}

// Numbers in bf16, and functions that are small near 0: they keep their digits.
TYPED_TEST_P(KernelsElementwiseSuite, ActivationsOfBf16AndOfSmallNumbers) {
  const Shape shape{33, 65};
  for (const Activation activation : this->kActivations) {
    const TensorView wide = this->wide(shape, 5), x = this->result(shape, DType::kBF16);
    this->kernels().convert(this->stream(), {wide, x});
    const TensorView y = this->result(shape, DType::kBF16);
    this->run([&](Stream& stream) { this->kernels().activation_forward(stream, {activation, x, y}); }, {y});
    this->expect_close(y, activated(activation, this->read_reals(x)), 4e-3, to_string(DType::kBF16));
  }
  const std::vector<float> values{1e-20F, -1e-5F, 1e-3F, 0.05F, -0.05F, -0.099F, -0.19F, 0.21F, 0.0F};
  const TensorView x = this->tensor({static_cast<std::int64_t>(values.size())}, values), y = this->result(x.shape);
  for (const Activation activation : {Activation::kTanh, Activation::kElu}) {
    this->kernels().activation_forward(this->stream(), {activation, x, y});
    const auto results = this->template read<float>(y);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double expected = activated(activation, static_cast<double>(values[i]));
      EXPECT_NEAR(results[i], expected, 1e-6 * std::abs(expected)) << values[i];
    }
  }
  EXPECT_THROW(this->kernels().activation_forward(this->stream(), {Activation::kSoftmax, x, y}), ConfigError);
  this->stream().synchronize();
}

// u8 and whole numbers become floats.
TYPED_TEST_P(KernelsElementwiseSuite, WholeNumbersBecomeFloats) {
  const std::vector<std::int64_t> numbers{0, 1, -7, 255, 65'537, (1 << 24) - 1, 3, 1'000'003, 12};
  const TensorView x = this->tensor({3, 3}, numbers), y = this->result({3, 3});
  this->run([&](Stream& stream) { this->kernels().scale(stream, {x, y, 1.0F}); }, {y});
  const auto results = this->template read<float>(y);
  for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(results[i], static_cast<float>(numbers[i]));
}

TYPED_TEST_P(KernelsElementwiseSuite, AddAndAccumulate) {
  for (const Shape& shape : this->kShapes) {
    const TensorView a = this->random(shape, 4), b = this->random(shape, 5), sum = this->result(shape);
    Reals expected = this->read_reals(a);
    const Reals bs = this->read_reals(b);
    for (std::size_t i = 0; i < bs.size(); ++i) expected[i] += bs[i];
    this->run([&](Stream& stream) { this->kernels().add(stream, {a, b, sum}); }, {sum});
    this->expect_close(sum, expected, 1e-7);
    this->run([&](Stream& stream) { this->kernels().accumulate(stream, {b, a}); }, {a});
    this->expect_close(a, expected, 1e-7);
    for (std::size_t i = 0; i < bs.size(); ++i) expected[i] += bs[i];
    this->run([&](Stream& stream) { this->kernels().add(stream, {a, b, a}); }, {a});
    this->expect_close(a, expected, 2e-7);
  }
}

// The sum of a tree is that of its halves: the same bits however many devices share the parts.
TYPED_TEST_P(KernelsElementwiseSuite, SumTreeAddsPairs) {
  for (const Shape& shape : this->kShapes) {
    std::vector<TensorView> parts;
    for (int i = 0; i < 7; ++i) parts.push_back(this->random(shape, 20 + i));
    const std::span all(parts);
    for (const std::size_t count : {1, 2, 3, 4, 7}) {
      const TensorView sum = this->result(shape);
      this->run([&](Stream& stream) { this->kernels().sum_tree(stream, {all.first(count), sum}); }, {sum});
      Reals expected(static_cast<std::size_t>(shape.elements()));
      for (const TensorView& part : all.first(count)) {
        const Reals values = this->read_reals(part);
        for (std::size_t i = 0; i < values.size(); ++i) expected[i] += values[i];
      }
      this->expect_close(sum, expected, 1e-6, shape.to_string());
    }
    const TensorView whole = this->result(shape), left = this->result(shape), right = this->result(shape);
    this->run([&](Stream& stream) { this->kernels().sum_tree(stream, {all.first(4), whole}); }, {whole});
    this->run([&](Stream& stream) { this->kernels().sum_tree(stream, {all.first(2), left}); }, {left});
    this->run([&](Stream& stream) { this->kernels().sum_tree(stream, {all.subspan(2, 2), right}); }, {right});
    this->run([&](Stream& stream) { this->kernels().sum_tree(stream, {std::array{left, right}, left}); }, {left});
    EXPECT_EQ(this->template read<float>(left), this->template read<float>(whole)) << shape.to_string();
  }
}

TYPED_TEST_P(KernelsElementwiseSuite, ScaleByANumberAndByOneInDeviceMemory) {
  constexpr float kFactor = -0.3F;
  const float* const stored = this->constant(kFactor);
  for (const Shape& shape : this->kShapes) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(shape.elements()));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 37);
    for (const TensorView& x : {this->random(shape, 8), this->tensor(shape, bytes)}) {
      const Reals expected = this->scaled(x, kFactor);
      for (const Factor& factor : {Factor(kFactor), Factor(stored)}) {
        const TensorView y = this->result(shape);
        this->run([&](Stream& stream) { this->kernels().scale(stream, {x, y, factor}); }, {y});
        this->expect_close(y, expected, 2e-7, shape.to_string());
      }
      if (x.dtype != DType::kF32) continue;
      this->run([&](Stream& stream) { this->kernels().scale(stream, {x, x, kFactor}); }, {x});
      this->expect_close(x, expected, 2e-7, shape.to_string());
    }
  }
}

// A captured call reads a stored factor again each time.
TYPED_TEST_P(KernelsElementwiseSuite, StoredFactorsMayChangeBetweenLaunches) {
  const TensorView x = this->random({33, 65}, 1), y = this->result({33, 65});
  const TensorView factor = this->tensor({1}, std::vector<float>{2});
  this->stream().begin_capture();
  this->kernels().scale(this->stream(), {x, y, factor.template as<const float>()});
  const auto captured = this->stream().end_capture();
  for (const float value : {2.0F, -7.5F}) {
    this->write(factor, std::vector<float>{value});
    this->stream().launch(*captured);
    this->expect_close(y, this->scaled(x, value), 1e-7);
  }
}

TYPED_TEST_P(KernelsElementwiseSuite, ConvertRoundsToTheNearestAndWidensExactly) {
  for (const Shape& shape : this->kShapes) {
    const TensorView x = this->wide(shape, 9), half = this->result(shape, DType::kBF16),
                     back = this->result(shape);
    this->run([&](Stream& stream) { this->kernels().convert(stream, {x, half}); }, {half});
    const Reals rounded = in_precision(Precision::kBF16, this->read_reals(x));
    EXPECT_EQ(this->read_reals(half), rounded) << shape.to_string();
    this->run([&](Stream& stream) { this->kernels().convert(stream, {half, back}); }, {back});
    EXPECT_EQ(this->read_reals(back), rounded) << shape.to_string();
    this->run([&](Stream& stream) { this->kernels().convert(stream, {x, back}); }, {back});
    EXPECT_EQ(this->read_reals(back), this->read_reals(x)) << shape.to_string();
  }
  const TensorView halfway =
      this->tensor({4}, std::vector<float>{1.00390625F, 1.01171875F, -1.00390625F, 3.4e38F});
  const TensorView half = this->result({4}, DType::kBF16);
  this->kernels().convert(this->stream(), {halfway, half});
  EXPECT_EQ(this->read_reals(half), (Reals{1, 1.015625, -1, std::numeric_limits<double>::infinity()}));
  EXPECT_THROW(this->kernels().convert(this->stream(), {halfway, this->result({4}, DType::kU8)}), ConfigError);
  EXPECT_THROW(this->kernels().convert(this->stream(), {halfway, this->result({5})}), ConfigError);
}

TYPED_TEST_P(KernelsElementwiseSuite, DropoutMaskIsTheStatedFunction) {
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 7}, Shape{4, 5, 5, 3}, Shape{2, 1000}}) {
    const TensorView x = this->random(shape, 9);
    const auto xs = this->template read<float>(x);
    const StepScalars at{.step = 0x1234567890ULL, .first_row = 0xFFFFFFFFULL};
    constexpr float kRate = 0.3F;
    const auto y = this->drop(x, kRate, 0xABCDEF0123456789ULL, 513, at);
    const std::size_t elements = xs.size() / static_cast<std::size_t>(shape[0]);
    for (std::size_t row = 0; row * elements < xs.size(); ++row) {
      Philox words(
          {.seed = 0xABCDEF0123456789ULL, .epoch = 0x34567890U, .record = at.first_row + row, .operation = 513});
      for (std::size_t e = row * elements; e < (row + 1) * elements; ++e) {
        const bool kept = words.next_u32() >= std::llround(static_cast<double>(kRate) * 0x1p32);
        ASSERT_FLOAT_EQ(y[e], kept ? xs[e] / (1 - kRate) : 0.0F) << shape.to_string() << " at " << e;
      }
    }
  }
}

TYPED_TEST_P(KernelsElementwiseSuite, DropoutKeepsItsShareAndForgetsTheReplicas) {
  const TensorView ones = this->tensor(Shape{64, 1024}, std::vector<float>(64 * 1024, 1.0F));
  const auto whole = this->drop(ones, 0.25F, 5, 1, {.step = 3, .first_row = 100});
  double mean = 0;
  for (const float value : whole) mean += value / static_cast<double>(whole.size());
  EXPECT_NEAR(mean, 1, 0.012);  // five standard deviations
  // Half of the rows, as another replica would have them.
  const TensorView half = this->tensor(Shape{32, 1024}, std::vector<float>(32 * 1024, 1.0F));
  const auto second = this->drop(half, 0.25F, 5, 1, {.step = 3, .first_row = 132});
  EXPECT_TRUE(std::equal(second.begin(), second.end(), whole.begin() + 32 * 1024));
  EXPECT_NE(this->drop(ones, 0.25F, 5, 1, {.step = 4, .first_row = 100}), whole);
  EXPECT_NE(this->drop(ones, 0.25F, 5, 2, {.step = 3, .first_row = 100}), whole);
  EXPECT_NE(this->drop(ones, 0.25F, 6, 1, {.step = 3, .first_row = 100}), whole);
  EXPECT_EQ(this->drop(ones, 0.0F, 5, 1, {}), this->template read<float>(ones));
}

TYPED_TEST_P(KernelsElementwiseSuite, WrongArgumentsAreRefusedAtOnce) {
  const TensorView a = this->random({2, 3}, 1), b = this->random({3, 2}, 1);
  EXPECT_THROW(this->kernels().add(this->stream(), {a, b, a}), ConfigError);
  EXPECT_THROW(this->kernels().accumulate(this->stream(), {a, {}}), ConfigError);
  EXPECT_THROW(this->kernels().scale(this->stream(), {a, b, 2.0F}), ConfigError);
  EXPECT_THROW(this->kernels().scale(this->stream(), {a, this->result({2, 3}, DType::kU8), 2.0F}), ConfigError);
  const StepScalars* scalars = this->scalars({});
  EXPECT_THROW(this->kernels().dropout(this->stream(), {a, a, 1.0F, 0, 0, scalars}), ConfigError);
  EXPECT_THROW(this->kernels().dropout(this->stream(), {a, a, -0.1F, 0, 0, scalars}), ConfigError);
  EXPECT_THROW(this->kernels().dropout(this->stream(), {a, a, 0.5F, 0, 1 << 16, scalars}), ConfigError);
}

REGISTER_TYPED_TEST_SUITE_P(KernelsElementwiseSuite, ActivationForward, ActivationBackward,
                            NaNPassesEveryActivation, ActivationsOfBf16AndOfSmallNumbers, WholeNumbersBecomeFloats,
                            AddAndAccumulate, SumTreeAddsPairs, ScaleByANumberAndByOneInDeviceMemory,
                            StoredFactorsMayChangeBetweenLaunches, ConvertRoundsToTheNearestAndWidensExactly,
                            DropoutMaskIsTheStatedFunction, DropoutKeepsItsShareAndForgetsTheReplicas,
                            WrongArgumentsAreRefusedAtOnce);

}  // namespace headrace::test

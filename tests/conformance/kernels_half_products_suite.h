// Products and convolutions of activations in bf16 (kernels_half_suite.h), with weights in either type.
#pragma once

#include "headrace/tests/conformance/kernels_fixture.h"
#include "headrace/tests/support/reference.h"
#include "headrace/tests/support/reference_layers.h"

namespace headrace::test {

template <typename Target>
class KernelsHalfProductsSuite : public KernelsHalfFixture<Target> {};
TYPED_TEST_SUITE_P(KernelsHalfProductsSuite);

TYPED_TEST_P(KernelsHalfProductsSuite, DenseTakesEachActivationInEitherType) {
  for (const DenseSizes& s : {DenseSizes{7, 33, 5}, DenseSizes{32, 256, 10}, DenseSizes{300, 24, 40}}) {
    const Shape of_x{static_cast<std::int64_t>(s.rows), static_cast<std::int64_t>(s.inputs)};
    const Shape of_y{of_x[0], static_cast<std::int64_t>(s.outputs)}, of_weights{of_y[1], of_x[1]};
    const TensorView weights = this->random(of_weights, 1), bias = this->random({of_y[1]}, 2);
    const TensorView x = this->half(of_x, 3), half_dy = this->half(of_y, 4);
    const Reals xs = this->read_reals(x), dys = this->read_reals(half_dy);
    const Reals ws = in_precision(Precision::kBF16, this->read_reals(weights));
    const Reals linear = dense_forward(s, xs, ws, this->read_reals(bias));
    const double tolerance = 2e-7 * (4 + std::sqrt(static_cast<double>(std::max(s.inputs, s.rows))));
    for (const DType type : {DType::kBF16, DType::kF32}) {
      for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kGelu}) {
        const TensorView y = this->result(of_y, type);
        this->run(
            [&](Stream& stream) {
              this->kernels().dense_forward(stream, {x, weights, bias, y, activation, Precision::kBF16});
            },
            {y});
        // Where the activation is a pass of its own what it reads may have been rounded before: another 2^-9.
        this->expect_rounded(y, activated(activation, linear), type == DType::kF32 ? tolerance : 1.0 / 256,
                             to_string(type));
      }
      TensorView dy = half_dy;
      if (type == DType::kF32) {
        dy = this->result(of_y);
        this->kernels().convert(this->stream(), {half_dy, dy});
      }
      const TensorView dx = this->half_result(of_x);
      this->run(
          [&](Stream& stream) {
            this->kernels().dense_backward_data(stream, {dy, weights, dx, Precision::kBF16});
          },
          {dx});
      this->expect_rounded(dx, dense_backward_data(s, dys, ws), tolerance, to_string(type));
      const TensorView dweights = this->result(of_weights), dbias = this->result({of_y[1]});
      this->run(
          [&](Stream& stream) {
            this->kernels().dense_backward_weights(stream, {x, dy, dweights, dbias, Precision::kBF16});
          },
          {dweights, dbias});
      this->expect_close(dweights, dense_backward_weights(s, xs, dys), tolerance, to_string(type));
      this->expect_close(dbias, column_sums(dys, s.outputs), tolerance, to_string(type));
    }
  }
}

// Some of the shapes of kernels of our own, which have no groups and no uneven strides.
TYPED_TEST_P(KernelsHalfProductsSuite, Convolution) {
  constexpr ConvOptions kSame{
      .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1, .precision = Precision::kBF16};
  constexpr ConvOptions kGrouped{
      .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1, .groups = 2, .precision = Precision::kBF16};
  constexpr ConvOptions kDepthwise{.groups = 8, .precision = Precision::kBF16};
  constexpr ConvOptions kUneven{.stride = {2, 1}, .precision = Precision::kBF16};
  for (const ConvSizes& s :
       {ConvSizes{2, 8, 8, 3, 24, 2, 2, {.precision = Precision::kBF16}},
        ConvSizes{3, 9, 7, 1, 8, 3, 3, {.stride = 2, .precision = Precision::kBF16}},
        ConvSizes{2, 7, 7, 24, 64, 3, 3, kSame}, ConvSizes{3, 6, 6, 32, 32, 3, 3, kSame},
        ConvSizes{2, 7, 7, 48, 64, 3, 3, kGrouped}, ConvSizes{5, 7, 6, 8, 16, 3, 3, kDepthwise},
        ConvSizes{2, 7, 9, 3, 24, 2, 2, kUneven}}) {
    const Shape of_x{s.images, s.height, s.width, s.channels},
        of_y{s.images, s.out_height(), s.out_width(), s.outputs};
    const Shape of_weights{s.outputs, s.kernel_height, s.kernel_width, s.group_channels()};
    const TensorView x = this->half(of_x, 1), weights = this->random(of_weights, 2),
                     bias = this->random({s.outputs}, 3);
    const TensorView dy = this->half(of_y, 4), y = this->half_result(of_y), dx = this->half_result(of_x);
    const TensorView dweights = this->result(of_weights), dbias = this->result({s.outputs});
    const Reals xs = this->read_reals(x), dys = this->read_reals(dy);
    const Reals ws = in_precision(Precision::kBF16, this->read_reals(weights));
    for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kGelu}) {
      this->run(
          [&](Stream& stream) {
            this->kernels().conv_forward(stream, {x, weights, bias, y, s.options, activation});
          },
          {y});
      const Reals linear = conv_forward(s, xs, ws, this->read_reals(bias));
      this->expect_rounded(y, activated(activation, linear), 1.0 / 256, of_x.to_string());
    }
    this->run(
        [&](Stream& stream) {
          this->kernels().conv_backward_data(stream, {dy, weights, dx, s.options});
        },
        {dx});
    this->expect_rounded(dx, conv_backward_data(s, dys, ws), 3e-6, of_x.to_string());
    this->run(
        [&](Stream& stream) {
          this->kernels().conv_backward_weights(stream, {x, dy, dweights, dbias, s.options});
        },
        {dweights, dbias});
    // A device may sum in f32 and store the gradient through bf16.
    this->expect_close(dweights, conv_backward_weights(s, xs, dys), 1.0 / 256, of_x.to_string());
    this->expect_close(dbias, column_sums(dys, static_cast<std::size_t>(s.outputs)), 3e-6, of_x.to_string());
  }
}

// What a GPU computes by kernels of its own (own_kernels.h) if weights and results are bf16, too.
TYPED_TEST_P(KernelsHalfProductsSuite, ConvolutionOf24Channels) {
  constexpr ConvOptions kSame{
      .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1, .precision = Precision::kBF16};
  for (const ConvSizes& s : {ConvSizes{1, 1, 1, 24, 64, 3, 3, kSame}, ConvSizes{2, 5, 4, 24, 64, 3, 3, kSame},
                             ConvSizes{5, 31, 31, 24, 64, 3, 3, kSame}, ConvSizes{2, 17, 64, 24, 64, 3, 3, kSame},
                             ConvSizes{1, 6, 65, 24, 64, 3, 3, kSame}}) {
    const Shape of_x{s.images, s.height, s.width, s.channels}, of_y{s.images, s.height, s.width, s.outputs};
    const Shape of_weights{s.outputs, 3, 3, s.channels};
    const TensorView x = this->half(of_x, 1), weights = this->half(of_weights, 2), dy = this->half(of_y, 3);
    const TensorView y = this->half_result(of_y), dx = this->half_result(of_x),
                     dweights = this->result(of_weights);
    this->run(
        [&](Stream& stream) {
          this->kernels().conv_forward(stream, {x, weights, {}, y, s.options, Activation::kNone});
          this->kernels().conv_backward_data(stream, {dy, weights, dx, s.options});
          this->kernels().conv_backward_weights(stream, {x, dy, dweights, {}, s.options});
        },
        {y, dx, dweights});
    const Reals xs = this->read_reals(x), ws = this->read_reals(weights), dys = this->read_reals(dy);
    this->expect_rounded(y, conv_forward(s, xs, ws, {}), 3e-6, of_x.to_string());
    this->expect_rounded(dx, conv_backward_data(s, dys, ws), 3e-6, of_x.to_string());
    this->expect_close(dweights, conv_backward_weights(s, xs, dys), 1.0 / 256, of_x.to_string());
  }
}

TYPED_TEST_P(KernelsHalfProductsSuite, BiasGradientThroughAnActivationThatIsComputedAgain) {
  for (const ConvSizes& s : {ConvSizes{9, 8, 8, 3, 24, 2, 2, {.precision = Precision::kBF16}},
                             ConvSizes{3, 9, 7, 1, 8, 3, 3, {.stride = 2, .precision = Precision::kBF16}}}) {
    const Shape of_x{s.images, s.height, s.width, s.channels},
        of_y{s.images, s.out_height(), s.out_width(), s.outputs};
    const Shape of_weights{s.outputs, s.kernel_height, s.kernel_width, s.channels};
    const TensorView x = this->half(of_x, 1), bias = this->random({s.outputs}, 3), dy = this->half(of_y, 4);
    const TensorView weights = this->random(of_weights, 2), rounded = this->half(of_weights, 2);
    const Reals linear = conv_forward(s, this->read_reals(x), this->read_reals(rounded), this->read_reals(bias));
    for (const Activation activation : {Activation::kRelu, Activation::kGelu, Activation::kSilu}) {
      std::vector<std::vector<float>> results;
      for (const TensorView& w : {weights, rounded}) {
        const TensorView dbias = this->result({s.outputs});
        this->run(
            [&](Stream& stream) {
              this->kernels().conv_bias_backward(stream, {x, w, bias, dy, dbias, s.options, activation});
            },
            {dbias});
        Reals gradients = this->read_reals(dy);
        for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] *= activation_slope(activation, linear[i]);
        this->expect_close(dbias, column_sums(gradients, static_cast<std::size_t>(s.outputs)), 5 * this->kQuick,
                           of_x.to_string());
        results.push_back(this->template read<float>(dbias));
      }
      EXPECT_EQ(results[0], results[1]) << "weights rounded beforehand";
    }
  }
}

// Rounding the weights beforehand is the same as leaving it to the products, to the last bit.
TYPED_TEST_P(KernelsHalfProductsSuite, DenseTakesWeightsInEitherType) {
  const Shape of_x{33, 24}, of_y{33, 10};
  const TensorView x = this->half(of_x, 1), dy = this->half(of_y, 2);
  const TensorView weights = this->random({10, 24}, 3), rounded = this->half({10, 24}, 3);
  std::vector<std::vector<std::uint16_t>> results;
  for (const TensorView& w : {weights, rounded}) {
    const TensorView y = this->half_result(of_y), dx = this->half_result(of_x);
    this->run(
        [&](Stream& stream) {
          this->kernels().dense_forward(stream, {x, w, {}, y, Activation::kRelu, Precision::kBF16});
          this->kernels().dense_backward_data(stream, {dy, w, dx, Precision::kBF16});
        },
        {y, dx});
    results.push_back(this->bits(y));
    results.push_back(this->bits(dx));
  }
  EXPECT_EQ(results[0], results[2]);
  EXPECT_EQ(results[1], results[3]);
  const TensorView wide = this->random(of_x, 1), wide_y = this->result(of_y);
  EXPECT_THROW(this->kernels().dense_forward(this->stream(),
                                             {wide, rounded, {}, wide_y, Activation::kNone, Precision::kF32}),
               ConfigError);
  EXPECT_THROW(this->kernels().dense_backward_weights(this->stream(), {x, dy, rounded, {}, Precision::kBF16}),
               ConfigError)
      << "gradients are f32";
}

// Also where the stride is not 1, which may be another way to go back.
TYPED_TEST_P(KernelsHalfProductsSuite, ConvolutionTakesWeightsInEitherType) {
  const Shape of_x{2, 8, 8, 24}, of_weights{32, 3, 3, 24};
  const TensorView x = this->half(of_x, 1), bias = this->random({32}, 4);
  const TensorView weights = this->random(of_weights, 3), rounded = this->half(of_weights, 3);
  for (const int stride : {1, 2}) {
    const ConvOptions options{.stride = stride,
                              .pad_top = 1,
                              .pad_left = 1,
                              .pad_bottom = 1,
                              .pad_right = 1,
                              .precision = Precision::kBF16};
    const Shape of_y{2, 8 / stride, 8 / stride, 32};
    const TensorView dy = this->half(of_y, 2);
    std::vector<std::vector<std::uint16_t>> results;
    for (const TensorView& w : {weights, rounded}) {
      const TensorView y = this->half_result(of_y), dx = this->half_result(of_x);
      this->run(
          [&](Stream& stream) {
            this->kernels().conv_forward(stream, {x, w, bias, y, options, Activation::kRelu});
            this->kernels().conv_backward_data(stream, {dy, w, dx, options});
          },
          {y, dx});
      results.push_back(this->bits(y));
      results.push_back(this->bits(dx));
    }
    EXPECT_EQ(results[0], results[2]) << stride;
    EXPECT_EQ(results[1], results[3]) << stride;
    ConvOptions wide = options;
    wide.precision = Precision::kF32;
    EXPECT_THROW(this->kernels().conv_backward_data(this->stream(),
                                                    {this->random(of_y, 2), rounded, this->result(of_x), wide}),
                 ConfigError);
    EXPECT_THROW(this->kernels().conv_backward_weights(this->stream(), {x, dy, rounded, {}, options}),
                 ConfigError);
  }
}

REGISTER_TYPED_TEST_SUITE_P(KernelsHalfProductsSuite, DenseTakesEachActivationInEitherType, Convolution,
                            ConvolutionOf24Channels, BiasGradientThroughAnActivationThatIsComputedAgain,
                            DenseTakesWeightsInEitherType, ConvolutionTakesWeightsInEitherType);

}  // namespace headrace::test

// What the convolution kernels of every device must compute.
#pragma once

#include "headrace/tests/conformance/kernels_fixture.h"
#include "headrace/tests/support/reference.h"
#include "headrace/tests/support/reference_layers.h"

namespace headrace::test {

template <typename Target>
class KernelsConvSuite : public KernelsFixture<Target> {
 protected:
  static constexpr ConvOptions kSame{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
  static ConvOptions in_groups(int groups, ConvOptions options) {
    options.groups = groups;
    return options;
  }
  // images, height, width, channels, outputs, kernel height, kernel width
  static inline const std::vector<ConvSizes> kSizes{
      {1, 1, 1, 1, 1, 1, 1},
      {2, 8, 8, 3, 32, 3, 3, kSame},
      {2, 9, 7, 16, 24, 3, 3, kSame},
      {3, 6, 6, 32, 32, 3, 3, kSame},
      {2, 7, 5, 5, 7, 3, 3},
      {2, 6, 6, 3, 24, 2, 2},
      {3, 7, 9, 3, 24, 2, 2, {.stride = 2}},
      {40, 9, 8, 1, 8, 3, 3},
      {2, 8, 8, 16, 32, 3, 3, {.stride = 2, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1}},
      {2, 8, 9, 17, 9, 3, 3, {.stride = 2, .pad_bottom = 1, .pad_right = 1}},
      {8, 4, 4, 2, 3, 3, 3, {.stride = 2, .pad_bottom = 1, .pad_right = 1}},
      {8, 4, 4, 2, 2, 3, 3, {.stride = 2, .pad_bottom = 1, .pad_right = 1}},
      {5, 6, 5, 8, 16, 3, 3, {.stride = 2, .pad_top = 2, .pad_bottom = 1, .pad_right = 1}},
      {1, 7, 8, 6, 10, 4, 3, {.pad_top = 1, .pad_left = 0, .pad_bottom = 2, .pad_right = 1}},
      {2, 5, 5, 20, 12, 1, 1},
      {2, 6, 6, 8, 16, 1, 1, {.stride = 2}},
      {1, 4, 4, 4, 6, 2, 2, {.pad_top = 2, .pad_left = 1, .pad_bottom = 1, .pad_right = 2}},
      {2, 9, 8, 16, 24, 3, 3, {.dilation = 2, .pad_top = 2, .pad_left = 2, .pad_bottom = 2, .pad_right = 2}},
      {2, 8, 9, 5, 7, 3, 3, {.dilation = 3}},
      {3, 7, 9, 3, 24, 2, 2, {.dilation = 2}},
      {5, 7, 6, 1, 8, 3, 3, {.dilation = 2}},
      {2, 9, 8, 8, 16, 3, 3, {.stride = 2, .dilation = 2, .pad_top = 1, .pad_bottom = 2, .pad_right = 3}},
      {1, 8, 9, 6, 10, 4, 3, {.dilation = 2, .pad_top = 3, .pad_left = 2, .pad_bottom = 3, .pad_right = 2}},
      {1, 4, 4, 4, 6, 2, 2, {.dilation = 2, .pad_top = 3, .pad_left = 1, .pad_bottom = 1, .pad_right = 2}},
      {2, 5, 5, 4, 6, 1, 1, {.dilation = 4}},
      {2, 9, 8, 6, 10, 1, 7, {.pad_left = 3, .pad_right = 3}},
      {2, 9, 8, 8, 16, 3, 3, {.stride = {2, 1}, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1}},
      {3, 7, 9, 3, 24, 2, 2, {.stride = {1, 2}}},
      {2, 9, 8, 5, 7, 3, 2, {.dilation = {1, 3}, .pad_top = 1, .pad_left = 2, .pad_right = 1}},
      {2, 8, 9, 5, 7, 3, 2, {.stride = {1, 3}, .dilation = {2, 1}, .pad_top = 1, .pad_bottom = 2}},
      {2, 8, 8, 32, 64, 3, 3, in_groups(8, kSame)},
      {2, 7, 6, 32, 32, 3, 3, in_groups(2, kSame)},
      {2, 7, 6, 12, 8, 3, 3, {.stride = 2, .pad_top = 1, .pad_left = 1, .pad_right = 1, .groups = 4}},
      {2, 6, 5, 16, 16, 1, 1, {.groups = 2}},
      {5, 7, 6, 8, 16, 3, 3, {.groups = 8}},
      {2, 7, 8, 6, 6, 3, 2, {.dilation = {1, 2}, .pad_top = 1, .pad_bottom = 1, .pad_right = 2, .groups = 6}},
      {2, 8, 5, 6, 9, 2, 3, {.stride = {2, 1}, .pad_left = 1, .pad_right = 1, .groups = 3}},
  };

  static std::vector<ConvSizes> in_both_precisions() {
    std::vector<ConvSizes> all;
    for (ConvSizes sizes : kSizes) {
      for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
        sizes.options.precision = precision;
        all.push_back(sizes);
      }
    }
    return all;
  }

  static Shape x_shape(const ConvSizes& s) { return {s.images, s.height, s.width, s.channels}; }
  static Shape y_shape(const ConvSizes& s) { return {s.images, s.out_height(), s.out_width(), s.outputs}; }
  static Shape weights_shape(const ConvSizes& s) {
    return {s.outputs, s.kernel_height, s.kernel_width, s.group_channels()};
  }
  static std::string label(const ConvSizes& s) {
    return x_shape(s).to_string() + " by " + weights_shape(s).to_string() + " " + window_text(s.options) +
           (s.options.precision == Precision::kBF16 ? " bf16" : " f32");
  }
  Reals inputs(const ConvSizes& s, const TensorView& view) {
    return in_precision(s.options.precision, this->read_reals(view));
  }
  static constexpr double kTolerance = 3e-6;
};
TYPED_TEST_SUITE_P(KernelsConvSuite);

TYPED_TEST_P(KernelsConvSuite, Forward) {
  for (const ConvSizes& s : this->in_both_precisions()) {
    const TensorView x = this->random(this->x_shape(s), 1), weights = this->random(this->weights_shape(s), 2);
    const TensorView bias = this->random({s.outputs}, 3), y = this->result(this->y_shape(s));
    for (const TensorView& b : {bias, TensorView{}}) {
      const Reals linear = conv_forward(s, this->inputs(s, x), this->inputs(s, weights),
                                        b.defined() ? this->read_reals(b) : Reals{});
      for (const Activation activation :
           {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kSilu}) {
        this->poison(y);
        this->run(
            [&](Stream& stream) {
              this->kernels().conv_forward(stream, {x, weights, b, y, s.options, activation});
            },
            {y});
        this->expect_close(y, activated(activation, linear), this->kTolerance, this->label(s));
      }
    }
  }
}

TYPED_TEST_P(KernelsConvSuite, BackwardData) {
  for (const ConvSizes& s : this->in_both_precisions()) {
    const TensorView dy = this->random(this->y_shape(s), 4), weights = this->random(this->weights_shape(s), 5);
    const TensorView dx = this->result(this->x_shape(s));
    this->run(
        [&](Stream& stream) {
          this->kernels().conv_backward_data(stream, {dy, weights, dx, s.options});
        },
        {dx});
    this->expect_close(dx, conv_backward_data(s, this->inputs(s, dy), this->inputs(s, weights)), this->kTolerance,
                       this->label(s));
  }
}

TYPED_TEST_P(KernelsConvSuite, BackwardWeights) {
  for (const ConvSizes& s : this->in_both_precisions()) {
    const TensorView x = this->random(this->x_shape(s), 6), dy = this->random(this->y_shape(s), 7);
    const TensorView dweights = this->result(this->weights_shape(s)), dbias = this->result({s.outputs});
    const Reals expected = conv_backward_weights(s, this->inputs(s, x), this->inputs(s, dy));
    for (const TensorView& b : {dbias, TensorView{}}) {
      this->poison(dweights);
      const auto outputs = b.defined() ? std::vector{dweights, b} : std::vector{dweights};
      this->run(
          [&](Stream& stream) {
            this->kernels().conv_backward_weights(stream, {x, dy, dweights, b, s.options});
          },
          outputs);
      this->expect_close(dweights, expected, this->kTolerance, this->label(s));
    }
    // A device may sum the rounded gradients or those given.
    this->expect_close(dbias, column_sums(this->read_reals(dy), static_cast<std::size_t>(s.outputs)),
                       s.options.precision == Precision::kBF16 ? 0.02 : this->kTolerance, this->label(s));
  }
}

TYPED_TEST_P(KernelsConvSuite, BiasGradientAlone) {
  for (const ConvSizes& s : this->in_both_precisions()) {
    const TensorView x = this->random(this->x_shape(s), 6), dy = this->random(this->y_shape(s), 7);
    const TensorView dbias = this->result({s.outputs});
    this->run(
        [&](Stream& stream) {
          this->kernels().conv_backward_weights(stream, {x, dy, {}, dbias, s.options});
        },
        {dbias});
    this->expect_close(dbias, column_sums(this->read_reals(dy), s.outputs),
                       s.options.precision == Precision::kF32 ? 3e-6 : 5e-3, this->label(s));
  }
}

// A device that refuses it for some window has said so beforehand.
TYPED_TEST_P(KernelsConvSuite, BiasGradientThroughAnActivationThatIsComputedAgain) {
  for (const ConvSizes& s : this->in_both_precisions()) {
    const TensorView x = this->random(this->x_shape(s), 11), weights = this->random(this->weights_shape(s), 12);
    const TensorView bias = this->random({s.outputs}, 13), dy = this->random(this->y_shape(s), 14);
    const TensorView dbias = this->result({s.outputs});
    for (const TensorView& b : {bias, TensorView{}}) {
      const Reals linear = conv_forward(s, this->inputs(s, x), this->inputs(s, weights),
                                        b.defined() ? this->read_reals(b) : Reals{});
      for (const Activation activation :
           {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kSilu}) {
        const auto backward = [&](Stream& stream) {
          this->kernels().conv_bias_backward(stream, {x, weights, b, dy, dbias, s.options, activation});
        };
        this->poison(dbias);
        try {
          this->run(backward, {dbias});
        } catch (const ConfigError& refused) {
          EXPECT_FALSE(this->kernels().recomputes_activation(DType::kF32, weights.shape, s.options))
              << this->label(s) << ": " << refused.what();
          continue;
        }
        Reals gradients = this->read_reals(dy);
        for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] *= activation_slope(activation, linear[i]);
        // A CPU's slopes have absolute errors, where a bias of one pixel may be small.
        this->expect_close(dbias, column_sums(gradients, static_cast<std::size_t>(s.outputs)), 1e-5,
                           this->label(s));
      }
    }
  }
}

TYPED_TEST_P(KernelsConvSuite, GradientsAreThoseOfTheForwardPass) {
  for (const ConvOptions& options :
       {ConvOptions{.pad_top = 1, .pad_right = 1}, ConvOptions{.stride = 2, .pad_top = 1, .pad_right = 1},
        ConvOptions{.dilation = 2, .pad_top = 1, .pad_right = 1},
        ConvOptions{.stride = 2, .dilation = 2, .pad_top = 1, .pad_right = 1},
        ConvOptions{.stride = {2, 1}, .dilation = {1, 2}, .pad_top = 1, .pad_right = 1},
        ConvOptions{.pad_top = 1, .pad_right = 1, .groups = 2}}) {
    const ConvSizes s{1, 5, 4, 2, 4, 3, 2, options};
    const TensorView x = this->random(this->x_shape(s), 8), weights = this->random(this->weights_shape(s), 9);
    const TensorView dy = this->random(this->y_shape(s), 10);
    const TensorView dx = this->result(this->x_shape(s)), dweights = this->result(this->weights_shape(s));
    const Reals xs = this->read_reals(x), ws = this->read_reals(weights), dys = this->read_reals(dy);
    this->kernels().conv_backward_data(this->stream(), {dy, weights, dx, s.options});
    this->kernels().conv_backward_weights(this->stream(), {x, dy, dweights, {}, s.options});
    this->expect_close(dx, differences([&](const Reals& at) { return conv_forward(s, at, ws, {}); }, xs, dys),
                       2e-6);
    this->expect_close(dweights,
                       differences([&](const Reals& at) { return conv_forward(s, xs, at, {}); }, ws, dys), 2e-6);
  }
}

TYPED_TEST_P(KernelsConvSuite, WrongShapesAreRefusedAtOnce) {
  const TensorView x = this->random({1, 4, 4, 3}, 1), weights = this->random({2, 3, 3, 3}, 1);
  const auto forward = [&](const TensorView& w, const TensorView& y, const ConvOptions& options) {
    this->kernels().conv_forward(this->stream(), {x, w, {}, y, options, Activation::kNone});
  };
  EXPECT_NO_THROW(forward(weights, this->result({1, 2, 2, 2}), {}));
  EXPECT_THROW(forward(weights, this->result({1, 2, 3, 2}), {}), ConfigError);
  EXPECT_THROW(forward(weights, this->result({1, 2, 2, 2}), {.stride = 0}), ConfigError);
  EXPECT_THROW(forward(weights, this->result({1, 2, 2, 2}), {.dilation = 0}), ConfigError);
  EXPECT_THROW(forward(weights, this->result({1, 2, 2, 2}), {.dilation = 2}), ConfigError);
  EXPECT_THROW(forward(weights, this->result({1, 2, 2, 2}), {.stride = {1, 0}}), ConfigError);
  EXPECT_THROW(forward(weights, this->result({1, 2, 2, 2}), {.dilation = {1, 2}}), ConfigError);
  EXPECT_THROW(forward(weights, this->result({1, 2, 2, 2}), {.groups = 0}), ConfigError);
  EXPECT_THROW(forward(weights, this->result({1, 2, 2, 2}), {.groups = 3}), ConfigError);
  EXPECT_THROW(forward(this->random({2, 3, 3, 1}, 1), this->result({1, 2, 2, 2}), {.groups = 3}), ConfigError);
  EXPECT_THROW(forward(weights, this->result({1, 2, 2, 2}), {.pad_top = -1}), ConfigError);
  EXPECT_THROW(forward(this->random({2, 5, 5, 3}, 1), this->result({1, 1, 1, 2}), {}), ConfigError);
  EXPECT_THROW(forward(this->random({2, 3, 3, 4}, 1), this->result({1, 2, 2, 2}), {}), ConfigError);
  const TensorView patches = this->random({8, 2, 2, 3}, 1), dy = this->random({1, 3, 3, 8}, 1);
  const auto bias_backward = [&](const TensorView& bias, const TensorView& dbias) {
    this->kernels().conv_bias_backward(this->stream(), {x, patches, bias, dy, dbias, {}, Activation::kGelu});
  };
  EXPECT_NO_THROW(bias_backward(this->random({8}, 1), this->result({8})));
  EXPECT_THROW(bias_backward(this->random({8}, 1), this->result({7})), ConfigError);
  EXPECT_THROW(bias_backward(this->random({8}, 1), {}), ConfigError);
  EXPECT_THROW(bias_backward(this->random({7}, 1), this->result({8})), ConfigError);
  this->stream().synchronize();
}

REGISTER_TYPED_TEST_SUITE_P(KernelsConvSuite, Forward, BackwardData, BackwardWeights, BiasGradientAlone,
                            BiasGradientThroughAnActivationThatIsComputedAgain, GradientsAreThoseOfTheForwardPass,
                            WrongShapesAreRefusedAtOnce);

// What the depthwise convolutions of every device, and the addition of a bias, must compute.

template <typename Target>
class KernelsDepthwiseSuite : public KernelsFixture<Target> {
 protected:
  static constexpr ConvOptions kSame{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
  static constexpr ConvOptions kHalved{.stride = 2, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
  // images, height, width, channels, outputs, kernel height, kernel width; one_each() makes groups of them
  static inline const std::vector<ConvSizes> kSizes{
      {1, 1, 1, 1, 1, 1, 1},
      {2, 8, 8, 8, 8, 3, 3, kSame},
      {3, 9, 7, 5, 5, 3, 3, kSame},
      {2, 6, 6, 3, 6, 3, 3, kSame},
      {2, 9, 8, 68, 68, 3, 3, kHalved},
      {2, 7, 80, 4, 12, 2, 4, {.stride = 3}},
      {2, 5, 6, 33, 66, 3, 3, kSame},
      {1, 8, 7, 12, 12, 5, 2, {.pad_top = 2, .pad_bottom = 2, .pad_right = 1}},
      {2, 3, 3, 4, 4, 1, 1, kHalved},
      {2, 9, 8, 8, 8, 3, 3, {.dilation = 2, .pad_top = 2, .pad_left = 2, .pad_bottom = 2, .pad_right = 2}},
      {2, 9, 10, 5, 10, 3, 3, {.stride = 2, .dilation = 3, .pad_top = 2, .pad_left = 3, .pad_right = 1}},
      {1, 8, 9, 12, 12, 2, 4, {.dilation = 2, .pad_bottom = 1}},
      {2, 9, 8, 8, 8, 3, 3, {.stride = {2, 1}, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1}},
      {2, 9, 10, 5, 10, 3, 3, {.stride = {1, 2}, .dilation = {3, 1}, .pad_top = 3, .pad_left = 1}},
      {2, 9, 8, 8, 8, 1, 7, {.stride = {3, 1}, .dilation = {1, 2}, .pad_left = 6, .pad_right = 6}},
  };

  static Shape x_shape(const ConvSizes& s) { return {s.images, s.height, s.width, s.channels}; }
  static Shape y_shape(const ConvSizes& s) { return {s.images, s.out_height(), s.out_width(), s.outputs}; }
  static Shape weights_shape(const ConvSizes& s) { return {s.outputs, s.kernel_height, s.kernel_width, 1}; }
  static std::string label(const ConvSizes& s) {
    return x_shape(s).to_string() + " by " + weights_shape(s).to_string() + " " + window_text(s.options);
  }

  // The convolution with a group for each channel.
  static ConvSizes one_each(ConvSizes s) {
    s.options.groups = static_cast<int>(s.channels);
    return s;
  }
  TensorView rounded(const TensorView& view) {
    const TensorView half = this->result(view.shape, DType::kBF16);
    this->kernels().convert(this->stream(), {view, half});
    return half;
  }
  // Within `tolerance`, or one rounding to bf16.
  void expect_stored(const TensorView& actual, const Reals& expected, const std::string& what) {
    this->expect_close(actual, expected, actual.dtype == DType::kBF16 ? 1.0 / 256 : 3e-6, what);
  }
};
TYPED_TEST_SUITE_P(KernelsDepthwiseSuite);

TYPED_TEST_P(KernelsDepthwiseSuite, Forward) {
  for (const ConvSizes& s : this->kSizes) {
    for (const DType type : {DType::kF32, this->kernels().activation_type(Precision::kBF16)}) {
      TensorView x = this->random(this->x_shape(s), 1);
      if (type == DType::kBF16) x = this->rounded(x);
      const TensorView weights = this->random(this->weights_shape(s), 2), bias = this->random({s.outputs}, 3);
      const TensorView y = this->result(this->y_shape(s), type);
      for (const TensorView& b : {bias, TensorView{}}) {
        const Reals linear = conv_forward(this->one_each(s), this->read_reals(x), this->read_reals(weights),
                                          b.defined() ? this->read_reals(b) : Reals{});
        for (const Activation activation :
             {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kSilu}) {
          this->poison(y);
          this->run(
              [&](Stream& stream) {
                this->kernels().depthwise_forward(stream, {x, weights, b, y, s.options, activation});
              },
              {y});
          this->expect_stored(y, activated(activation, linear), this->label(s));
        }
      }
    }
  }
}

TYPED_TEST_P(KernelsDepthwiseSuite, Gradients) {
  for (const ConvSizes& s : this->kSizes) {
    for (const DType type : {DType::kF32, this->kernels().activation_type(Precision::kBF16)}) {
      TensorView x = this->random(this->x_shape(s), 4), dy = this->random(this->y_shape(s), 5);
      if (type == DType::kBF16) x = this->rounded(x), dy = this->rounded(dy);
      const TensorView weights = this->random(this->weights_shape(s), 6);
      const TensorView dx = this->result(this->x_shape(s), type);
      this->run(
          [&](Stream& stream) {
            this->kernels().depthwise_backward_data(stream, {dy, weights, dx, s.options});
          },
          {dx});
      const Reals dys = this->read_reals(dy);
      this->expect_stored(dx, conv_backward_data(this->one_each(s), dys, this->read_reals(weights)),
                          this->label(s));
      const TensorView dweights = this->result(this->weights_shape(s)), dbias = this->result({s.outputs});
      this->run(
          [&](Stream& stream) {
            this->kernels().depthwise_backward_weights(stream, {x, dy, dweights, dbias, s.options});
          },
          {dweights, dbias});
      this->expect_close(dweights, conv_backward_weights(this->one_each(s), this->read_reals(x), dys), 3e-6,
                         this->label(s));
      this->expect_close(dbias, column_sums(dys, static_cast<std::size_t>(s.outputs)), 3e-6, this->label(s));
      const auto both = this->template read<float>(dweights);
      this->poison(dweights);
      this->kernels().depthwise_backward_weights(this->stream(), {x, dy, dweights, {}, s.options});
      EXPECT_EQ(this->template read<float>(dweights), both) << this->label(s);
      this->poison(dbias);
      this->kernels().depthwise_backward_weights(this->stream(), {x, dy, {}, dbias, s.options});
      this->expect_close(dbias, column_sums(dys, static_cast<std::size_t>(s.outputs)), 3e-6, this->label(s));
    }
  }
}

TYPED_TEST_P(KernelsDepthwiseSuite, BiasIsAddedInPlace) {
  for (const Shape& shape : {Shape{1}, Shape{5, 3}, Shape{2, 3, 3, 8}, Shape{40, 300}, Shape{70, 1000}}) {
    for (const DType type : {DType::kF32, this->kernels().activation_type(Precision::kBF16)}) {
      const TensorView bias = this->random({shape.back()}, 1);
      for (const TensorView& b : {bias, TensorView{}}) {
        for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kSilu}) {
          TensorView y = this->random(shape, 2);
          if (type == DType::kBF16) y = this->rounded(y);
          Reals expected = this->read_reals(y);
          const Reals added = b.defined() ? this->read_reals(b) : Reals(1);
          for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += added[i % added.size()];
          this->kernels().add_bias(this->stream(), {b, y, activation});
          this->expect_stored(y, activated(activation, expected), shape.to_string());
        }
      }
    }
  }
}

TYPED_TEST_P(KernelsDepthwiseSuite, WrongShapesAreRefusedAtOnce) {
  const TensorView x = this->random({1, 4, 4, 3}, 1), weights = this->random({6, 3, 3, 1}, 1);
  const auto forward = [&](const TensorView& w, const TensorView& y, const ConvOptions& options) {
    this->kernels().depthwise_forward(this->stream(), {x, w, {}, y, options, Activation::kNone});
  };
  EXPECT_NO_THROW(forward(weights, this->result({1, 2, 2, 6}), {}));
  EXPECT_THROW(forward(weights, this->result({1, 2, 2, 3}), {}), ConfigError);
  EXPECT_THROW(forward(weights, this->result({1, 2, 3, 6}), {}), ConfigError);
  EXPECT_THROW(forward(weights, this->result({1, 2, 2, 6}), {.pad_left = -1}), ConfigError);
  EXPECT_THROW(forward(this->random({4, 3, 3, 1}, 1), this->result({1, 2, 2, 4}), {}), ConfigError);
  EXPECT_THROW(forward(this->random({3, 3, 3, 3}, 1), this->result({1, 2, 2, 3}), {}), ConfigError);
  EXPECT_THROW(this->kernels().add_bias(this->stream(), {this->random({4}, 1), x, Activation::kNone}),
               ConfigError);
  EXPECT_THROW(this->kernels().add_bias(this->stream(), {{}, x, Activation::kTanh}), ConfigError);
  this->stream().synchronize();
}

REGISTER_TYPED_TEST_SUITE_P(KernelsDepthwiseSuite, Forward, Gradients, BiasIsAddedInPlace,
                            WrongShapesAreRefusedAtOnce);

}  // namespace headrace::test

// What the depthwise convolutions of every device, and the addition of a bias, must compute.
#pragma once

#include "headrace/tests/conformance/kernels_fixture.h"
#include "headrace/tests/support/reference_conv.h"
#include "headrace/tests/support/reference_dense.h"
#include "headrace/tests/support/reference_elementwise.h"

namespace headrace::test {

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
    this->kernels().convert(this->stream(), view, half);
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
                this->kernels().depthwise_forward(stream, x, weights, b, y, s.options, activation);
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
          [&](Stream& stream) { this->kernels().depthwise_backward_data(stream, dy, weights, dx, s.options); },
          {dx});
      const Reals dys = this->read_reals(dy);
      this->expect_stored(dx, conv_backward_data(this->one_each(s), dys, this->read_reals(weights)),
                          this->label(s));
      const TensorView dweights = this->result(this->weights_shape(s)), dbias = this->result({s.outputs});
      this->run(
          [&](Stream& stream) {
            this->kernels().depthwise_backward_weights(stream, x, dy, dweights, dbias, s.options);
          },
          {dweights, dbias});
      this->expect_close(dweights, conv_backward_weights(this->one_each(s), this->read_reals(x), dys), 3e-6,
                         this->label(s));
      this->expect_close(dbias, column_sums(dys, static_cast<std::size_t>(s.outputs)), 3e-6, this->label(s));
      const auto both = this->template read<float>(dweights);
      this->poison(dweights);
      this->kernels().depthwise_backward_weights(this->stream(), x, dy, dweights, {}, s.options);
      EXPECT_EQ(this->template read<float>(dweights), both) << this->label(s);
      this->poison(dbias);
      this->kernels().depthwise_backward_weights(this->stream(), x, dy, {}, dbias, s.options);
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
          this->kernels().add_bias(this->stream(), b, y, activation);
          this->expect_stored(y, activated(activation, expected), shape.to_string());
        }
      }
    }
  }
}

TYPED_TEST_P(KernelsDepthwiseSuite, WrongShapesAreRefusedAtOnce) {
  const TensorView x = this->random({1, 4, 4, 3}, 1), weights = this->random({6, 3, 3, 1}, 1);
  const auto forward = [&](const TensorView& w, const TensorView& y, const ConvOptions& options) {
    this->kernels().depthwise_forward(this->stream(), x, w, {}, y, options, Activation::kNone);
  };
  EXPECT_NO_THROW(forward(weights, this->result({1, 2, 2, 6}), {}));
  EXPECT_THROW(forward(weights, this->result({1, 2, 2, 3}), {}), ConfigError);
  EXPECT_THROW(forward(weights, this->result({1, 2, 3, 6}), {}), ConfigError);
  EXPECT_THROW(forward(weights, this->result({1, 2, 2, 6}), {.pad_left = -1}), ConfigError);
  EXPECT_THROW(forward(this->random({4, 3, 3, 1}, 1), this->result({1, 2, 2, 4}), {}), ConfigError);
  EXPECT_THROW(forward(this->random({3, 3, 3, 3}, 1), this->result({1, 2, 2, 3}), {}), ConfigError);
  EXPECT_THROW(this->kernels().add_bias(this->stream(), this->random({4}, 1), x, Activation::kNone), ConfigError);
  EXPECT_THROW(this->kernels().add_bias(this->stream(), {}, x, Activation::kTanh), ConfigError);
  this->stream().synchronize();
}

REGISTER_TYPED_TEST_SUITE_P(KernelsDepthwiseSuite, Forward, Gradients, BiasIsAddedInPlace,
                            WrongShapesAreRefusedAtOnce);

}  // namespace headrace::test

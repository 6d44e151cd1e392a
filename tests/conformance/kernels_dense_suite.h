// What the dense kernels of every device must compute.
#pragma once

#include "headrace/tests/conformance/kernels_fixture.h"
#include "headrace/tests/support/reference.h"
#include "headrace/tests/support/reference_layers.h"

namespace headrace::test {

template <typename Target>
class KernelsDenseSuite : public KernelsFixture<Target> {
 protected:
  // Odd sizes, one of everything, a whole layer, more rows than one block of sums.
  static inline const std::vector<DenseSizes> kSizes{{1, 1, 1},    {2, 3, 1},      {7, 33, 5},   {32, 256, 10},
                                                     {5, 17, 130}, {32, 784, 256}, {300, 20, 37}};
  static inline const std::vector<Precision> kPrecisions{Precision::kF32, Precision::kBF16};

  // f32 sums of k products; in bf16 the inputs are rounded in the oracle too.
  static double tolerance(std::size_t sum_length) {
    return 2e-7 * (4 + std::sqrt(static_cast<double>(sum_length)));
  }

  static Shape shape(std::size_t rows, std::size_t columns) {
    return {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)};
  }
  static std::string label(const DenseSizes& s, Precision precision) {
    return std::to_string(s.rows) + "x" + std::to_string(s.inputs) + "x" + std::to_string(s.outputs) +
           (precision == Precision::kBF16 ? " bf16" : " f32");
  }
};
TYPED_TEST_SUITE_P(KernelsDenseSuite);

TYPED_TEST_P(KernelsDenseSuite, Forward) {
  for (const DenseSizes& s : this->kSizes) {
    for (const Precision precision : this->kPrecisions) {
      const TensorView x = this->random(this->shape(s.rows, s.inputs), 1);
      const TensorView weights = this->random(this->shape(s.outputs, s.inputs), 2);
      const TensorView bias = this->random({static_cast<std::int64_t>(s.outputs)}, 3);
      const TensorView y = this->result(this->shape(s.rows, s.outputs));
      const Reals xs = in_precision(precision, this->read_reals(x));
      const Reals ws = in_precision(precision, this->read_reals(weights));
      for (const TensorView& b : {bias, TensorView{}}) {
        const Reals linear = dense_forward(s, xs, ws, b.defined() ? this->read_reals(b) : Reals{});
        for (const Activation activation :
             {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kSilu}) {
          this->poison(y);
          this->run(
              [&](Stream& stream) {
                this->kernels().dense_forward(stream, {x, weights, b, y, activation, precision});
              },
              {y});
          this->expect_close(y, activated(activation, linear), this->tolerance(s.inputs),
                             this->label(s, precision));
        }
      }
    }
  }
}

TYPED_TEST_P(KernelsDenseSuite, BackwardData) {
  for (const DenseSizes& s : this->kSizes) {
    for (const Precision precision : this->kPrecisions) {
      const TensorView dy = this->random(this->shape(s.rows, s.outputs), 4);
      const TensorView weights = this->random(this->shape(s.outputs, s.inputs), 5);
      const TensorView dx = this->result(this->shape(s.rows, s.inputs));
      this->run(
          [&](Stream& stream) {
            this->kernels().dense_backward_data(stream, {dy, weights, dx, precision});
          },
          {dx});
      const Reals expected = dense_backward_data(s, in_precision(precision, this->read_reals(dy)),
                                                 in_precision(precision, this->read_reals(weights)));
      this->expect_close(dx, expected, this->tolerance(s.outputs), this->label(s, precision));
    }
  }
}

TYPED_TEST_P(KernelsDenseSuite, BackwardWeights) {
  for (const DenseSizes& s : this->kSizes) {
    for (const Precision precision : this->kPrecisions) {
      const TensorView x = this->random(this->shape(s.rows, s.inputs), 6);
      const TensorView dy = this->random(this->shape(s.rows, s.outputs), 7);
      const TensorView dweights = this->result(this->shape(s.outputs, s.inputs));
      const TensorView dbias = this->result({static_cast<std::int64_t>(s.outputs)});
      const Reals expected = dense_backward_weights(s, in_precision(precision, this->read_reals(x)),
                                                    in_precision(precision, this->read_reals(dy)));
      for (const TensorView& b : {dbias, TensorView{}}) {
        this->poison(dweights);
        const auto outputs = b.defined() ? std::vector{dweights, b} : std::vector{dweights};
        this->run(
            [&](Stream& stream) {
              this->kernels().dense_backward_weights(stream, {x, dy, dweights, b, precision});
            },
            outputs);
        this->expect_close(dweights, expected, this->tolerance(s.rows), this->label(s, precision));
      }
      // A device may sum the rounded gradients or those given.
      this->expect_close(dbias, column_sums(this->read_reals(dy), s.outputs),
                         precision == Precision::kBF16 ? 0.02 : this->tolerance(s.rows),
                         this->label(s, precision));
    }
  }
}

TYPED_TEST_P(KernelsDenseSuite, GradientsAreThoseOfTheForwardPass) {
  const DenseSizes s{3, 5, 4};
  const TensorView x = this->random({3, 5}, 8), weights = this->random({4, 5}, 9), dy = this->random({3, 4}, 10);
  const TensorView dx = this->result({3, 5}), dweights = this->result({4, 5});
  const Reals xs = this->read_reals(x), ws = this->read_reals(weights), dys = this->read_reals(dy);
  this->kernels().dense_backward_data(this->stream(), {dy, weights, dx, Precision::kF32});
  this->kernels().dense_backward_weights(this->stream(), {x, dy, dweights, {}, Precision::kF32});
  this->expect_close(dx, differences([&](const Reals& at) { return dense_forward(s, at, ws, {}); }, xs, dys),
                     1e-6);
  this->expect_close(dweights, differences([&](const Reals& at) { return dense_forward(s, xs, at, {}); }, ws, dys),
                     1e-6);
}

TYPED_TEST_P(KernelsDenseSuite, WrongShapesAreRefusedAtOnce) {
  const TensorView x = this->random({3, 5}, 1), weights = this->random({4, 6}, 1), y = this->result({3, 4});
  EXPECT_THROW(
      this->kernels().dense_forward(this->stream(), {x, weights, {}, y, Activation::kNone, Precision::kF32}),
      ConfigError);
  const TensorView fitting = this->random({4, 5}, 1), bias = this->random({5}, 1);
  EXPECT_THROW(
      this->kernels().dense_forward(this->stream(), {x, fitting, bias, y, Activation::kNone, Precision::kF32}),
      ConfigError);
  EXPECT_THROW(this->kernels().dense_backward_data(this->stream(), {x, fitting, y, Precision::kF32}), ConfigError);
  EXPECT_THROW(this->kernels().dense_backward_weights(this->stream(), {x, y, weights, {}, Precision::kF32}),
               ConfigError);
}

REGISTER_TYPED_TEST_SUITE_P(KernelsDenseSuite, Forward, BackwardData, BackwardWeights,
                            GradientsAreThoseOfTheForwardPass, WrongShapesAreRefusedAtOnce);

// What shift_images() must give on every device.

template <typename Target>
class KernelsViewsSuite : public KernelsFixture<Target> {};
TYPED_TEST_SUITE_P(KernelsViewsSuite);

TYPED_TEST_P(KernelsViewsSuite, ShiftsReflectsAndMirrors) {
  const auto reflect = [](std::int64_t at, std::int64_t extent) {
    if (at < 0) return -at;
    return at < extent ? at : 2 * (extent - 1) - at;
  };
  for (const Shape& shape : {Shape{2, 5, 7, 3}, Shape{1, 2, 2, 1}, Shape{70, 32, 32, 3}, Shape{3, 4, 6, 17}}) {
    const std::vector<float> values = random_floats(shape.elements(), 4);
    const TensorView x = this->tensor(shape, values), y = this->result(shape);
    for (const ImageShift& shift : {ImageShift{}, ImageShift{.mirror = true}, ImageShift{.down = 1, .right = -1},
                                    ImageShift{.down = -1, .right = 1, .mirror = true}}) {
      this->run([&](Stream& stream) { this->kernels().shift_images(stream, {x, y, shift}); }, {y});
      std::vector<float> expected;
      for (std::int64_t i = 0; i < shape.elements(); ++i) {
        const std::int64_t c = i % shape[3], column = i / shape[3] % shape[2];
        const std::int64_t row = i / shape[3] / shape[2] % shape[1], image = i / shape[3] / shape[2] / shape[1];
        const std::int64_t down = reflect(row + shift.down, shape[1]);
        const std::int64_t right =
            reflect((shift.mirror ? shape[2] - 1 - column : column) + shift.right, shape[2]);
        const std::int64_t from = ((image * shape[1] + down) * shape[2] + right) * shape[3] + c;
        expected.push_back(values[static_cast<std::size_t>(from)]);
      }
      EXPECT_EQ(this->template read<float>(y), expected) << shape.to_string();
    }
  }
}

TYPED_TEST_P(KernelsViewsSuite, TooFarIsRefusedAtOnce) {
  const TensorView x = this->random({1, 4, 5, 1}, 1), y = this->result({1, 4, 5, 1});
  const auto shift = [&](const ImageShift& by, const TensorView& to) {
    this->kernels().shift_images(this->stream(), {x, to, by});
  };
  EXPECT_THROW(shift({.down = 4}, y), ConfigError);
  EXPECT_THROW(shift({.right = -5}, y), ConfigError);
  EXPECT_THROW(shift({}, this->result({1, 5, 4, 1})), ConfigError);
  shift({.down = 3, .right = -4}, y);
  this->stream().synchronize();
}

REGISTER_TYPED_TEST_SUITE_P(KernelsViewsSuite, ShiftsReflectsAndMirrors, TooFarIsRefusedAtOnce);

}  // namespace headrace::test

// What the kernels of a device that keeps activations in bf16 must compute on them: the same as in f32 on the
// rounded inputs, rounded once. A Target's kernels() must have an activation_type(Precision::kBF16) of bf16.
// Products are in kernels_half_products_suite.h.
#pragma once

#include "headrace/tests/conformance/kernels_fixture.h"
#include "headrace/tests/support/reference.h"
#include "headrace/tests/support/reference_layers.h"

namespace headrace::test {

template <typename Target>
class KernelsHalfSuite : public KernelsHalfFixture<Target> {};
TYPED_TEST_SUITE_P(KernelsHalfSuite);

TYPED_TEST_P(KernelsHalfSuite, ActivationsAreWantedInBf16OnlyWhereProductsAre) {
  EXPECT_EQ(this->kernels().activation_type(Precision::kF32), DType::kF32);
  EXPECT_EQ(this->kernels().activation_type(Precision::kBF16), DType::kBF16);
}

TYPED_TEST_P(KernelsHalfSuite, Elementwise) {
  for (const Shape& shape : this->kShapes) {
    for (const Activation activation :
         {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kSilu}) {
      const TensorView x = this->half(shape, 1, 8), dy = this->half(shape, 2), y = this->half_result(shape);
      this->run([&](Stream& stream) { this->kernels().activation_forward(stream, {activation, x, y}); }, {y});
      const Reals xs = this->read_reals(x);
      this->expect_rounded(y, activated(activation, xs), 2e-7, shape.to_string());
      this->run(
          [&](Stream& stream) {
            this->kernels().activation_backward(stream, {activation, x, dy, dy});
          },
          {dy});
      Reals slopes = this->read_reals(this->half(shape, 2));
      for (std::size_t i = 0; i < xs.size(); ++i) {
        constexpr double kStep = 1e-5;
        const bool corner = activation == Activation::kRelu && std::abs(xs[i]) <= kStep;
        slopes[i] *=
            corner ? (xs[i] > 0 ? 1 : 0)
                   : (activated(activation, xs[i] + kStep) - activated(activation, xs[i] - kStep)) / (2 * kStep);
      }
      this->expect_rounded(dy, slopes, this->kQuick, shape.to_string());
    }
    const TensorView a = this->half(shape, 3), b = this->half(shape, 4);
    Reals sums = this->read_reals(a);
    const Reals bs = this->read_reals(b);
    for (std::size_t i = 0; i < bs.size(); ++i) sums[i] += bs[i];
    const TensorView sum = this->half_result(shape);
    this->run([&](Stream& stream) { this->kernels().add(stream, {a, b, sum}); }, {sum});
    this->expect_rounded(sum, sums, 0, shape.to_string());
    this->run([&](Stream& stream) { this->kernels().accumulate(stream, {b, a}); }, {a});
    this->expect_rounded(a, sums, 0, shape.to_string());
  }
}

TYPED_TEST_P(KernelsHalfSuite, ScaleBetweenAllTypes) {
  constexpr float kFactor = 0.3F;
  for (const Shape& shape : {Shape{2, 5, 7, 3}, Shape{1, 1}, Shape{9, 16}, Shape{5, 3072}}) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(shape.elements()));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 37);
    for (const TensorView& x : {this->tensor(shape, bytes), this->random(shape, 8), this->half(shape, 9)}) {
      Reals expected = x.dtype == DType::kU8 ? Reals(bytes.begin(), bytes.end()) : this->read_reals(x);
      for (double& value : expected) value *= static_cast<double>(kFactor);
      const TensorView y = this->half_result(shape), wide = this->result(shape);
      this->run([&](Stream& stream) { this->kernels().scale(stream, {x, y, kFactor}); }, {y});
      this->expect_rounded(y, expected, 2e-7, shape.to_string());
      this->run([&](Stream& stream) { this->kernels().scale(stream, {x, wide, kFactor}); }, {wide});
      this->expect_close(wide, expected, 2e-7, shape.to_string());
    }
  }
}

TYPED_TEST_P(KernelsHalfSuite, DropoutDropsWhatItDropsInF32) {
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 7}, Shape{2, 1000}}) {
    const TensorView x = this->half(shape, 9), y = this->half_result(shape), wide = this->result(shape);
    const TensorView widened_x = this->result(shape);
    this->kernels().convert(this->stream(), {x, widened_x});
    const StepScalars* scalars = this->scalars({.step = 77, .first_row = 5});
    this->run([&](Stream& stream) { this->kernels().dropout(stream, {x, y, 0.3F, 11, 3, scalars}); }, {y});
    this->kernels().dropout(this->stream(), {widened_x, wide, 0.3F, 11, 3, scalars});
    this->expect_rounded(y, this->read_reals(wide), 0, shape.to_string());
  }
}

TYPED_TEST_P(KernelsHalfSuite, Pooling) {
  for (const PoolSizes& s : {PoolSizes{2, 8, 8, 32}, PoolSizes{3, 7, 9, 5}, PoolSizes{1, 9, 8, 17, {3, 2}}}) {
    const Shape of_x{static_cast<std::int64_t>(s.images), static_cast<std::int64_t>(s.height),
                     static_cast<std::int64_t>(s.width), static_cast<std::int64_t>(s.channels)};
    const Shape of_y{of_x[0], static_cast<std::int64_t>(s.out_height()), static_cast<std::int64_t>(s.out_width()),
                     of_x[3]};
    const TensorView x = this->half(of_x, 1), y = this->half_result(of_y), argmax = this->result(of_y, DType::kU8);
    this->run(
        [&](Stream& stream) {
          this->kernels().max_pool_forward(stream, {x, y, argmax, s.options});
        },
        {y, argmax});
    const Pooled expected = max_pool_forward(s, this->read_reals(x));
    this->expect_rounded(y, expected.y, 0, of_x.to_string());
    EXPECT_EQ(this->template read<std::uint8_t>(argmax), expected.argmax);
    const TensorView dy = this->half(of_y, 2), dx = this->half_result(of_x);
    this->run(
        [&](Stream& stream) {
          this->kernels().max_pool_backward(stream, {dy, argmax, dx, s.options});
        },
        {dx});
    this->expect_rounded(dx, max_pool_backward(s, this->read_reals(dy), expected.argmax), 3e-7, of_x.to_string());

    const TensorView mean = this->half_result({of_x[0], of_x[3]}), spread = this->half_result(of_x);
    this->run([&](Stream& stream) { this->kernels().global_average_pool_forward(stream, {x, mean}); }, {mean});
    this->expect_rounded(mean, global_average(this->read_reals(x), s.images, s.height * s.width, s.channels), 1e-6,
                         of_x.to_string());
    this->run(
        [&](Stream& stream) {
          this->kernels().global_average_pool_backward(stream, {mean, spread});
        },
        {spread});
    const Reals means = this->read_reals(mean);
    Reals wanted(s.images * s.height * s.width * s.channels);
    const std::size_t image = s.height * s.width * s.channels;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      wanted[i] = means[i / image * s.channels + i % s.channels] / static_cast<double>(s.height * s.width);
    }
    this->expect_rounded(spread, wanted, 1e-6, of_x.to_string());
  }
}

TYPED_TEST_P(KernelsHalfSuite, BatchNormKeepsItsStatisticsInF32) {
  constexpr float kEpsilon = 1e-3F;
  struct Case {
    std::int64_t examples, pixels, channels, real;
  };
  for (const Case& c : {Case{4, 9, 3, 4}, {8, 16, 24, 5}, {64, 64, 32, 63}}) {
    const Shape shape{c.examples, c.pixels, c.channels};
    const NormSizes sizes{static_cast<std::size_t>(c.examples * c.pixels),
                          static_cast<std::size_t>(c.real * c.pixels), static_cast<std::size_t>(c.channels)};
    const kernel::BatchNorm norm{.gamma = this->random({c.channels}, 12),
                                 .beta = this->random({c.channels}, 13),
                                 .running_mean = this->random({c.channels}, 14),
                                 .running_var = this->tensor({c.channels}, std::vector<float>(sizes.channels, 2)),
                                 .saved_mean = this->result({c.channels}),
                                 .saved_inv_std = this->result({c.channels}),
                                 .epsilon = kEpsilon,
                                 .momentum = 0.9F};
    const TensorView x = this->half(shape, 1), y = this->half_result(shape), dy = this->half(shape, 2);
    const StepScalars* scalars = this->scalars({.rows = c.real});
    const Reals xs = this->read_reals(x), gammas = this->read_reals(norm.gamma),
                betas = this->read_reals(norm.beta);
    this->kernels().batch_norm_infer(this->stream(), {x, y, norm});
    const Statistics running{this->read_reals(norm.running_mean), this->read_reals(norm.running_var)};
    this->expect_rounded(y, normalized(sizes, xs, running, gammas, betas, kEpsilon), 2e-6, shape.to_string());
    this->run(
        [&](Stream& stream) {
          this->kernels().batch_norm_train(stream, {x, y, norm, scalars});
        },
        {y, norm.running_mean, norm.running_var, norm.saved_mean, norm.saved_inv_std});
    const Statistics batch = statistics(sizes, xs);
    this->expect_rounded(y, normalized(sizes, xs, batch, gammas, betas, kEpsilon), 2e-6, shape.to_string());
    this->expect_close(norm.saved_mean, batch.mean, 1e-6, shape.to_string());

    // Backward against the f32 kernel on the same numbers, which has its own suite.
    const TensorView wide_x = this->result(shape), wide_dy = this->result(shape), wide_dx = this->result(shape);
    this->kernels().convert(this->stream(), {x, wide_x});
    this->kernels().convert(this->stream(), {dy, wide_dy});
    const TensorView dgamma = this->result({c.channels}), dbeta = this->result({c.channels});
    const TensorView wide_dgamma = this->result({c.channels}), wide_dbeta = this->result({c.channels});
    this->kernels().batch_norm_backward(this->stream(),
                                        {wide_x, wide_dy, wide_dgamma, wide_dbeta, wide_dx, norm, scalars});
    const TensorView dx = this->half_result(shape);
    this->run(
        [&](Stream& stream) {
          this->kernels().batch_norm_backward(stream, {x, dy, dgamma, dbeta, dx, norm, scalars});
        },
        {dgamma, dbeta, dx});
    this->expect_rounded(dx, this->read_reals(wide_dx), 2e-6, shape.to_string());
    this->expect_close(dgamma, this->read_reals(wide_dgamma), 2e-6, shape.to_string());
    this->expect_close(dbeta, this->read_reals(wide_dbeta), 2e-6, shape.to_string());
  }
}

// Against the f32 kernels on the same numbers: nothing is rounded between normalisation and activation.
TYPED_TEST_P(KernelsHalfSuite, BatchNormAppliesActivationsBeforeItRounds) {
  struct Case {
    Shape shape;
    std::int64_t real;
  };
  for (const Case& c : {Case{{4, 9, 3}, 4}, {{8, 16, 24}, 5}, {{64, 8, 8, 32}, 63}, {{5, 8}, 0}}) {
    for (const Activation activation : {Activation::kRelu, Activation::kGelu, Activation::kSilu}) {
      const Shape channels{c.shape.back()};
      const kernel::BatchNorm norm{
          .gamma = this->random(channels, 12),
          .beta = this->random(channels, 13),
          .running_mean = this->random(channels, 14),
          .running_var = this->tensor(channels, std::vector<float>(static_cast<std::size_t>(channels[0]), 2)),
          .saved_mean = this->result(channels),
          .saved_inv_std = this->result(channels),
          .epsilon = 1e-3F,
          .activation = activation};
      const TensorView x = this->half(c.shape, 1), dy = this->half(c.shape, 2), y = this->half_result(c.shape);
      const TensorView wide_x = this->result(c.shape), wide_dy = this->result(c.shape);
      this->kernels().convert(this->stream(), {x, wide_x});
      this->kernels().convert(this->stream(), {dy, wide_dy});
      const TensorView wide_y = this->result(c.shape), dx = this->half_result(c.shape);
      const StepScalars* scalars = this->scalars({.rows = c.real});
      this->kernels().batch_norm_infer(this->stream(), {wide_x, wide_y, norm});
      this->kernels().batch_norm_infer(this->stream(), {x, y, norm});
      this->expect_rounded(y, this->read_reals(wide_y), 2e-6, c.shape.to_string());
      kernel::BatchNorm wide = norm;  // the running ones would follow twice
      wide.running_mean = this->random(channels, 14);
      wide.running_var = this->tensor(channels, std::vector<float>(static_cast<std::size_t>(channels[0]), 2));
      this->kernels().batch_norm_train(this->stream(), {wide_x, wide_y, wide, scalars});
      this->kernels().batch_norm_train(this->stream(), {x, y, norm, scalars});
      this->expect_rounded(y, this->read_reals(wide_y), 2e-6, c.shape.to_string());

      const TensorView dgamma = this->result(channels), dbeta = this->result(channels);
      const TensorView wide_dgamma = this->result(channels), wide_dbeta = this->result(channels);
      this->kernels().batch_norm_backward(this->stream(),
                                          {wide_x, wide_dy, wide_dgamma, wide_dbeta, wide_dy, norm, scalars});
      this->run(
          [&](Stream& stream) {
            this->kernels().batch_norm_backward(stream, {x, dy, dgamma, dbeta, dx, norm, scalars});
          },
          {dgamma, dbeta, dx});
      this->expect_rounded(dx, this->read_reals(wide_dy), this->kQuick, c.shape.to_string());
      this->expect_close(dgamma, this->read_reals(wide_dgamma), this->kQuick, c.shape.to_string());
      this->expect_close(dbeta, this->read_reals(wide_dbeta), this->kQuick, c.shape.to_string());
    }
  }
}

// Against the calls one by one, which round at the same places.
TYPED_TEST_P(KernelsHalfSuite, BatchNormPoolsFirst) {
  for (const PoolSizes& s :
       {PoolSizes{3, 8, 8, 32}, PoolSizes{2, 31, 31, 8}, PoolSizes{3, 7, 9, 5}, PoolSizes{2, 9, 8, 16, {3, 2}}}) {
    const Shape of_x{static_cast<std::int64_t>(s.images), static_cast<std::int64_t>(s.height),
                     static_cast<std::int64_t>(s.width), static_cast<std::int64_t>(s.channels)};
    const Shape of_y{of_x[0], static_cast<std::int64_t>(s.out_height()), static_cast<std::int64_t>(s.out_width()),
                     of_x[3]};
    const Shape channels{of_x[3]};
    const auto norm = [&] {
      return kernel::BatchNorm{.gamma = {},
                               .beta = this->random(channels, 13),
                               .running_mean = this->result(channels),
                               .running_var = this->result(channels),
                               .saved_mean = this->result(channels),
                               .saved_inv_std = this->result(channels),
                               .activation = Activation::kGelu};
    };
    const kernel::BatchNorm fused = norm(), apart = norm();
    const TensorView x = this->half(of_x, 1), pooled = this->half_result(of_y), y = this->half_result(of_y);
    const TensorView wanted_pooled = this->half_result(of_y), wanted_y = this->half_result(of_y);
    const kernel::MaxPool pool{.options = s.options, .argmax = this->result(of_y, DType::kU8)};
    const TensorView argmax = this->result(of_y, DType::kU8);
    const StepScalars* scalars = this->scalars({.rows = of_x[0] - 1});
    this->kernels().max_pool_forward(this->stream(), {x, wanted_pooled, argmax, s.options});
    this->kernels().batch_norm_train(this->stream(), {wanted_pooled, wanted_y, apart, scalars});
    this->run(
        [&](Stream& stream) {
          this->kernels().max_pool_batch_norm_train(stream, {x, pooled, y, pool, fused, scalars});
        },
        {pooled, pool.argmax, y, fused.saved_mean, fused.saved_inv_std});
    this->expect_rounded(pooled, this->read_reals(wanted_pooled), 0, of_x.to_string());
    this->expect_rounded(y, this->read_reals(wanted_y), 2e-6, of_x.to_string());
    EXPECT_EQ(this->template read<std::uint8_t>(pool.argmax), this->template read<std::uint8_t>(argmax));

    const TensorView dy = this->half(of_y, 2), between = this->half_result(of_y), dx = this->half_result(of_x);
    const TensorView wanted_dx = this->half_result(of_x), dbeta = this->result(channels);
    const TensorView wanted_dbeta = this->result(channels);
    this->kernels().batch_norm_backward(this->stream(), {pooled, dy, {}, wanted_dbeta, between, fused, scalars});
    this->kernels().max_pool_backward(this->stream(), {between, argmax, wanted_dx, s.options});
    this->run(
        [&](Stream& stream) {
          this->kernels().max_pool_batch_norm_backward(stream, {pooled, dy, {}, dbeta, dx, pool, fused, scalars});
        },
        {dbeta, dx, dy});
    this->expect_rounded(dx, this->read_reals(wanted_dx), 2e-6, of_x.to_string());
    this->expect_close(dbeta, this->read_reals(wanted_dbeta), 1e-6, of_x.to_string());
  }
}

TYPED_TEST_P(KernelsHalfSuite, ActivationsOfOneCallAreOfOneType) {
  const TensorView half = this->half({2, 3}, 1), wide = this->random({2, 3}, 1);
  EXPECT_THROW(this->kernels().add(this->stream(), {half, wide, wide}), ConfigError);
  EXPECT_THROW(this->kernels().activation_forward(this->stream(), {Activation::kRelu, half, wide}), ConfigError);
  EXPECT_THROW(this->kernels().softmax(this->stream(), {half, wide}), ConfigError);
}

REGISTER_TYPED_TEST_SUITE_P(KernelsHalfSuite, ActivationsAreWantedInBf16OnlyWhereProductsAre, Elementwise,
                            ScaleBetweenAllTypes, DropoutDropsWhatItDropsInF32, Pooling,
                            BatchNormKeepsItsStatisticsInF32, BatchNormAppliesActivationsBeforeItRounds,
                            BatchNormPoolsFirst, ActivationsOfOneCallAreOfOneType);

}  // namespace headrace::test

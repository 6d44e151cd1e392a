// What the batch normalisation kernels of every device must compute.
#pragma once

#include "headrace/tests/conformance/kernels_fixture.h"
#include "headrace/tests/support/reference_layers.h"

namespace headrace::test {

template <typename Target>
class KernelsBatchNormSuite : public KernelsNormFixture<Target> {
 protected:
  // A batch (examples, pixels, channels) of which the first `real` examples count.
  struct Case {
    std::int64_t examples, pixels, channels, real;

    Shape shape() const { return {examples, pixels, channels}; }
    NormSizes sizes() const {
      return {static_cast<std::size_t>(examples * pixels), static_cast<std::size_t>(real * pixels),
              static_cast<std::size_t>(channels)};
    }
    std::string label() const { return shape().to_string() + ", real " + std::to_string(real); }
  };
  static inline const std::vector<Case> kCases{{2, 1, 1, 2},   {5, 9, 3, 5},     {8, 16, 24, 8},  {8, 16, 64, 5},
                                               {7, 49, 65, 1}, {64, 64, 32, 63}, {33, 1, 200, 20}};
  Reals gamma(const kernel::BatchNorm& of, std::size_t channels) {
    return of.gamma.defined() ? this->read_reals(of.gamma) : Reals(channels, 1.0);
  }
  static Reals followed(const Reals& running, const Reals& batch, double factor = 1) {
    constexpr auto kKept = static_cast<double>(KernelsNormFixture<Target>::kMomentum);
    Reals next(running);
    for (std::size_t i = 0; i < next.size(); ++i) {
      next[i] = kKept * running[i] + (1 - kKept) * batch[i] * factor;
    }
    return next;
  }
};
TYPED_TEST_SUITE_P(KernelsBatchNormSuite);

TYPED_TEST_P(KernelsBatchNormSuite, Train) {
  for (const auto& c : this->kCases) {
    for (const bool scaled : {true, false}) {
      kernel::BatchNorm norm = this->norm(c.channels);
      if (!scaled) norm.gamma = {};
      const TensorView x = this->random(c.shape(), 1), y = this->result(c.shape());
      const NormSizes sizes = c.sizes();
      const Reals xs = this->read_reals(x);
      const Statistics batch = statistics(sizes, xs);
      const auto count = static_cast<double>(sizes.real);
      const Reals mean = this->followed(this->read_reals(norm.running_mean), batch.mean);
      const Reals variance =
          this->followed(this->read_reals(norm.running_var), batch.variance, count > 1 ? count / (count - 1) : 1);
      const StepScalars* scalars = this->scalars({.rows = c.real});
      this->run(
          [&](Stream& stream) {
            this->kernels().batch_norm_train(stream, {x, y, norm, scalars});
          },
          {y, norm.running_mean, norm.running_var, norm.saved_mean, norm.saved_inv_std});
      const Reals expected = normalized(sizes, xs, batch, this->gamma(norm, sizes.channels),
                                        this->read_reals(norm.beta), this->kEpsilon);
      this->expect_close(y, expected, 2e-6, c.label());
      this->expect_close(norm.running_mean, mean, 1e-6, c.label());
      this->expect_close(norm.running_var, variance, 1e-6, c.label());
      this->expect_close(norm.saved_mean, batch.mean, 1e-6, c.label());
    }
  }
}

TYPED_TEST_P(KernelsBatchNormSuite, PaddingChangesNothing) {
  const Shape shape{6, 4, 10};
  auto values = random_floats(shape.elements(), 2);
  const StepScalars* scalars = this->scalars({.rows = 4});
  std::vector<Reals> results;
  for (const float padding : {0.0F, 1e6F}) {
    std::fill(values.begin() + 4 * 4 * 10, values.end(), padding);
    const kernel::BatchNorm norm = this->norm(10);
    const TensorView x = this->tensor(shape, values), y = this->result(shape);
    const TensorView dy = this->tensor(shape, values), dgamma = this->result({10}), dbeta = this->result({10});
    this->kernels().batch_norm_train(this->stream(), {x, y, norm, scalars});
    this->kernels().batch_norm_backward(this->stream(), {x, dy, dgamma, dbeta, dy, norm, scalars});
    Reals all;
    for (const TensorView& view : {norm.running_mean, norm.running_var, dgamma, dbeta, dy}) {
      const Reals part = this->read_reals(view);
      all.insert(all.end(), part.begin(), part.end());
    }
    const Reals ys = this->read_reals(y);
    all.insert(all.end(), ys.begin(), ys.begin() + 4 * 4 * 10);
    results.push_back(all);
    for (std::size_t i = 4 * 4 * 10; i < values.size(); ++i) ASSERT_EQ(this->read_reals(dy)[i], 0);
  }
  EXPECT_EQ(results[0], results[1]);
}

TYPED_TEST_P(KernelsBatchNormSuite, WithoutRealRowsStatisticsStay) {
  const kernel::BatchNorm norm = this->norm(5);
  const Reals mean = this->read_reals(norm.running_mean), variance = this->read_reals(norm.running_var);
  const TensorView x = this->random({3, 5}, 3), y = this->result({3, 5}), dx = this->result({3, 5});
  const TensorView dgamma = this->result({5}), dbeta = this->result({5});
  const StepScalars* scalars = this->scalars({.rows = 0});
  this->kernels().batch_norm_train(this->stream(), {x, y, norm, scalars});
  this->kernels().batch_norm_backward(this->stream(), {x, x, dgamma, dbeta, dx, norm, scalars});
  EXPECT_EQ(this->read_reals(norm.running_mean), mean);
  EXPECT_EQ(this->read_reals(norm.running_var), variance);
  for (const double value : this->read_reals(y)) EXPECT_TRUE(std::isfinite(value));
  EXPECT_EQ(this->read_reals(dgamma), Reals(5));
  EXPECT_EQ(this->read_reals(dbeta), Reals(5));
  EXPECT_EQ(this->read_reals(dx), Reals(15));
}

// Far from zero a sum of squares in f32 would have no digits left.
TYPED_TEST_P(KernelsBatchNormSuite, LargeOffsetsKeepTheVariance) {
  auto values = random_floats(4096 * 3, 4);
  for (float& value : values) value = 1000.0F + value / 16;
  const kernel::BatchNorm norm = this->norm(3);
  const TensorView x = this->tensor(Shape{4096, 3}, values), y = this->result({4096, 3});
  this->kernels().batch_norm_train(this->stream(), {x, y, norm, this->scalars({.rows = 4096})});
  const Statistics batch = statistics({4096, 4096, 3}, reals(values));
  const Reals inverse = this->read_reals(norm.saved_inv_std);
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(inverse[c] * std::sqrt(batch.variance[c] + static_cast<double>(this->kEpsilon)), 1, 1e-4);
  }
}

TYPED_TEST_P(KernelsBatchNormSuite, Infer) {
  for (const auto& c : this->kCases) {
    const kernel::BatchNorm norm = this->norm(c.channels);
    const TensorView x = this->random(c.shape(), 5), y = this->result(c.shape());
    this->run([&](Stream& stream) { this->kernels().batch_norm_infer(stream, {x, y, norm}); }, {y});
    const Statistics running{this->read_reals(norm.running_mean), this->read_reals(norm.running_var)};
    this->expect_close(y,
                       normalized(c.sizes(), this->read_reals(x), running, this->read_reals(norm.gamma),
                                  this->read_reals(norm.beta), this->kEpsilon),
                       1e-6, c.label());
  }
}

TYPED_TEST_P(KernelsBatchNormSuite, BackwardIsTheGradientOfTheForwardPass) {
  for (const auto& c : {typename TestFixture::Case{4, 5, 3, 4}, {6, 3, 17, 4}, {3, 1, 2, 2}}) {
    for (const bool scaled : {true, false}) {
      kernel::BatchNorm norm = this->norm(c.channels);
      if (!scaled) norm.gamma = {};
      const NormSizes sizes = c.sizes();
      const TensorView x = this->random(c.shape(), 6), y = this->result(c.shape()), dx = this->result(c.shape());
      const TensorView dy = this->random(c.shape(), 7);
      const TensorView dgamma = this->result({c.channels}), dbeta = this->result({c.channels});
      const StepScalars* scalars = this->scalars({.rows = c.real});
      this->kernels().batch_norm_train(this->stream(), {x, y, norm, scalars});
      const TensorView wanted = scaled ? dgamma : TensorView{};
      this->run(
          [&](Stream& stream) {
            this->kernels().batch_norm_backward(stream, {x, dy, wanted, dbeta, dx, norm, scalars});
          },
          {dgamma, dbeta, dx});
      const Reals xs = this->read_reals(x), gammas = this->gamma(norm, sizes.channels),
                  betas = this->read_reals(norm.beta);
      Reals weights = this->read_reals(dy);
      std::fill(weights.begin() + static_cast<std::ptrdiff_t>(sizes.real * sizes.channels), weights.end(), 0);
      const auto forward = [&](const Reals& at, const Reals& g, const Reals& b) {
        return normalized(sizes, at, statistics(sizes, at), g, b, this->kEpsilon);
      };
      this->expect_close(dx, differences([&](const Reals& at) { return forward(at, gammas, betas); }, xs, weights),
                         2e-5, c.label());
      this->expect_close(dbeta,
                         differences([&](const Reals& at) { return forward(xs, gammas, at); }, betas, weights),
                         2e-6, c.label());
      if (scaled) {
        this->expect_close(dgamma,
                           differences([&](const Reals& at) { return forward(xs, at, betas); }, gammas, weights),
                           2e-6, c.label());
      }
      // In place.
      const Reals apart = this->read_reals(dx);
      this->kernels().batch_norm_backward(this->stream(), {x, dy, wanted, dbeta, dy, norm, scalars});
      EXPECT_EQ(this->read_reals(dy), apart);
    }
  }
}

REGISTER_TYPED_TEST_SUITE_P(KernelsBatchNormSuite, Train, PaddingChangesNothing, WithoutRealRowsStatisticsStay,
                            LargeOffsetsKeepTheVariance, Infer, BackwardIsTheGradientOfTheForwardPass);

// What a batch normalisation must compute that applies an activation and pools first: the same as the calls one by
// one, which have their own suites.

template <typename Target>
class KernelsFusedNormSuite : public KernelsNormFixture<Target> {
 protected:
  static inline const std::vector<Activation> kActivations{Activation::kNone, Activation::kRelu, Activation::kGelu,
                                                           Activation::kSilu};
  // What x and its gradients are like, and how many examples of them count. None: nothing is learnt.
  struct Case {
    Shape shape;
    std::int64_t real;

    std::string label() const { return shape.to_string() + ", real " + std::to_string(real); }
  };
  static inline const std::vector<Case> kCases{{{2, 1, 1}, 2},      {{5, 9, 3}, 5},   {{8, 16, 24}, 8},
                                               {{8, 16, 64}, 5},    {{7, 49, 65}, 0}, {{33, 200}, 20},
                                               {{64, 8, 8, 32}, 63}};
  // Windows of two that touch, with and without pixels left over, of three, overlapping ones and gaps.
  struct PooledCase {
    PoolSizes sizes;
    std::int64_t real;
  };
  static inline const std::vector<PooledCase> kPooledCases{
      {{3, 8, 8, 32}, 3},         {{4, 7, 9, 5}, 2},         {{2, 31, 31, 64}, 1}, {{2, 9, 9, 24, {3, 3}}, 2},
      {{2, 9, 8, 17, {3, 2}}, 2}, {{3, 9, 8, 8, {2, 3}}, 2}, {{2, 5, 4, 130}, 0}};

  static std::vector<TensorView> statistics_of(const kernel::BatchNorm& norm) {
    return {norm.running_mean, norm.running_var, norm.saved_mean, norm.saved_inv_std};
  }
  void expect_equal(const std::vector<TensorView>& actual, const std::vector<TensorView>& expected,
                    const std::string& what) {
    for (std::size_t i = 0; i < actual.size(); ++i) {
      this->expect_close(actual[i], this->read_reals(expected[i]), 1e-6, what + ", result " + std::to_string(i));
    }
  }
  static Shape shape(std::size_t images, std::size_t height, std::size_t width, std::size_t channels) {
    return {static_cast<std::int64_t>(images), static_cast<std::int64_t>(height), static_cast<std::int64_t>(width),
            static_cast<std::int64_t>(channels)};
  }
};
TYPED_TEST_SUITE_P(KernelsFusedNormSuite);

TYPED_TEST_P(KernelsFusedNormSuite, TrainAppliesTheActivation) {
  for (const auto& c : this->kCases) {
    for (const Activation activation : this->kActivations) {
      const TensorView x = this->random(c.shape, 1), y = this->result(c.shape), expected = this->result(c.shape);
      const kernel::BatchNorm fused = this->norm(c.shape.back(), activation);
      const kernel::BatchNorm apart = this->norm(c.shape.back(), Activation::kNone);
      const StepScalars* scalars = this->scalars({.rows = c.real});
      this->kernels().batch_norm_train(this->stream(), {x, expected, apart, scalars});
      this->kernels().activation_forward(this->stream(), {activation, expected, expected});
      std::vector<TensorView> results = this->statistics_of(fused), wanted = this->statistics_of(apart);
      results.push_back(y);
      wanted.push_back(expected);
      this->run(
          [&](Stream& stream) {
            this->kernels().batch_norm_train(stream, {x, y, fused, scalars});
          },
          results);
      this->expect_equal(results, wanted, c.label());
    }
  }
}

TYPED_TEST_P(KernelsFusedNormSuite, InferAppliesTheActivation) {
  for (const auto& c : this->kCases) {
    for (const Activation activation : this->kActivations) {
      const TensorView x = this->random(c.shape, 2), y = this->result(c.shape), expected = this->result(c.shape);
      kernel::BatchNorm norm = this->norm(c.shape.back(), Activation::kNone);
      norm.saved_mean = norm.saved_inv_std = {};
      this->kernels().batch_norm_infer(this->stream(), {x, expected, norm});
      this->kernels().activation_forward(this->stream(), {activation, expected, expected});
      norm.activation = activation;
      this->run([&](Stream& stream) { this->kernels().batch_norm_infer(stream, {x, y, norm}); }, {y});
      this->expect_equal({y}, {expected}, c.label());
    }
  }
}

TYPED_TEST_P(KernelsFusedNormSuite, BackwardGoesThroughTheActivation) {
  for (const auto& c : this->kCases) {
    for (const Activation activation : this->kActivations) {
      const std::int64_t channels = c.shape.back();
      const TensorView x = this->random(c.shape, 3), dy = this->random(c.shape, 4), y = this->result(c.shape);
      kernel::BatchNorm norm = this->norm(channels, Activation::kNone);
      const StepScalars* scalars = this->scalars({.rows = c.real});
      this->kernels().batch_norm_train(this->stream(), {x, y, norm, scalars});
      const std::vector<TensorView> wanted{this->result({channels}), this->result({channels}),
                                           this->result(c.shape)};
      this->kernels().activation_backward(this->stream(), {activation, y, dy, wanted[2]});
      this->kernels().batch_norm_backward(this->stream(),
                                          {x, wanted[2], wanted[0], wanted[1], wanted[2], norm, scalars});
      norm.activation = activation;
      const std::vector<TensorView> results{this->result({channels}), this->result({channels}),
                                            this->result(c.shape)};
      this->run(
          [&](Stream& stream) {
            this->kernels().batch_norm_backward(stream,
                                                {x, dy, results[0], results[1], results[2], norm, scalars});
          },
          results);
      this->expect_equal(results, wanted, c.label());
      // In place, and without the gradients of the parameters.
      const Reals apart = this->read_reals(results[2]);
      this->kernels().batch_norm_backward(this->stream(), {x, dy, {}, {}, dy, norm, scalars});
      EXPECT_EQ(this->read_reals(dy), apart) << c.label();
    }
  }
}

TYPED_TEST_P(KernelsFusedNormSuite, PoolsFirst) {
  for (const auto& [s, real] : this->kPooledCases) {
    for (const Activation activation : {Activation::kNone, Activation::kGelu}) {
      const Shape of_x = this->shape(s.images, s.height, s.width, s.channels);
      const Shape of_y = this->shape(s.images, s.out_height(), s.out_width(), s.channels);
      const TensorView x = this->random(of_x, 5);
      const kernel::BatchNorm fused = this->norm(of_x[3], activation), apart = this->norm(of_x[3], activation);
      const StepScalars* scalars = this->scalars({.rows = real});
      std::vector<TensorView> results = this->statistics_of(fused), wanted = this->statistics_of(apart);
      for (std::vector<TensorView>* each : {&results, &wanted}) {  // pooled, argmax, y
        each->push_back(this->result(of_y));
        each->push_back(this->result(of_y, DType::kU8));
        each->push_back(this->result(of_y));
      }
      this->kernels().max_pool_forward(this->stream(), {x, wanted[4], wanted[5], s.options});
      this->kernels().batch_norm_train(this->stream(), {wanted[4], wanted[6], apart, scalars});
      const kernel::MaxPool pool{.options = s.options, .argmax = results[5]};
      this->run(
          [&](Stream& stream) {
            this->kernels().max_pool_batch_norm_train(stream, {x, results[4], results[6], pool, fused, scalars});
          },
          results);
      EXPECT_EQ(this->template read<std::uint8_t>(results[5]), this->template read<std::uint8_t>(wanted[5]));
      results.erase(results.begin() + 5);
      wanted.erase(wanted.begin() + 5);
      this->expect_equal(results, wanted, of_x.to_string());
    }
  }
}

TYPED_TEST_P(KernelsFusedNormSuite, GoesBackToBeforeThePooling) {
  for (const auto& [s, real] : this->kPooledCases) {
    for (const Activation activation : {Activation::kNone, Activation::kGelu}) {
      const Shape of_x = this->shape(s.images, s.height, s.width, s.channels), channels{of_x[3]};
      const Shape of_y = this->shape(s.images, s.out_height(), s.out_width(), s.channels);
      const TensorView x = this->random(of_x, 6), pooled = this->result(of_y), y = this->result(of_y);
      const kernel::BatchNorm norm = this->norm(of_x[3], activation);
      const kernel::MaxPool pool{.options = s.options, .argmax = this->result(of_y, DType::kU8)};
      const StepScalars* scalars = this->scalars({.rows = real});
      this->kernels().max_pool_batch_norm_train(this->stream(), {x, pooled, y, pool, norm, scalars});
      const TensorView dy = this->random(of_y, 7), between = this->result(of_y);
      const std::vector<TensorView> wanted{this->result(channels), this->result(channels), this->result(of_x)};
      this->kernels().batch_norm_backward(this->stream(),
                                          {pooled, dy, wanted[0], wanted[1], between, norm, scalars});
      this->kernels().max_pool_backward(this->stream(), {between, pool.argmax, wanted[2], s.options});
      const std::vector<TensorView> results{this->result(channels), this->result(channels), this->result(of_x)};
      this->run(
          [&](Stream& stream) {
            this->kernels().max_pool_batch_norm_backward(
                stream, {pooled, dy, results[0], results[1], results[2], pool, norm, scalars});
          },
          {results[0], results[1], results[2], dy});
      this->expect_equal(results, wanted, of_x.to_string());
    }
  }
}

TYPED_TEST_P(KernelsFusedNormSuite, WrongShapesAreRefused) {
  const TensorView x = this->random({2, 4, 4, 3}, 8), pooled = this->result({2, 2, 2, 3});
  const kernel::BatchNorm norm = this->norm(3, Activation::kGelu);
  const kernel::MaxPool pool{.options = {}, .argmax = this->result({2, 2, 2, 3}, DType::kU8)};
  const StepScalars* scalars = this->scalars({.rows = 2});
  Stream& stream = this->stream();
  EXPECT_THROW(this->kernels().max_pool_batch_norm_train(stream, {x, x, pooled, pool, norm, scalars}),
               ConfigError);
  EXPECT_THROW(this->kernels().max_pool_batch_norm_train(stream, {x, pooled, x, pool, norm, scalars}),
               ConfigError);
  EXPECT_THROW(this->kernels().max_pool_batch_norm_backward(stream, {pooled, x, {}, {}, x, pool, norm, scalars}),
               ConfigError);
  const kernel::MaxPool without{.options = {}, .argmax = {}};
  EXPECT_THROW(this->kernels().max_pool_batch_norm_train(stream, {x, pooled, pooled, without, norm, scalars}),
               ConfigError);
}

REGISTER_TYPED_TEST_SUITE_P(KernelsFusedNormSuite, TrainAppliesTheActivation, InferAppliesTheActivation,
                            BackwardGoesThroughTheActivation, PoolsFirst, GoesBackToBeforeThePooling,
                            WrongShapesAreRefused);

}  // namespace headrace::test

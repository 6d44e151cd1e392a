// What a batch normalisation must compute that applies an activation and pools first: the same as the calls one by
// one, which have their own suites.
#pragma once

#include "headrace/tests/conformance/kernels_norm_fixture.h"
#include "headrace/tests/support/reference_pooling.h"

namespace headrace::test {

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

  static std::vector<TensorView> statistics_of(const Kernels::BatchNorm& norm) {
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
      const Kernels::BatchNorm fused = this->norm(c.shape.back(), activation);
      const Kernels::BatchNorm apart = this->norm(c.shape.back(), Activation::kNone);
      const StepScalars* scalars = this->scalars({.rows = c.real});
      this->kernels().batch_norm_train(this->stream(), x, apart, scalars, expected);
      this->kernels().activation_forward(this->stream(), activation, expected, expected);
      std::vector<TensorView> results = this->statistics_of(fused), wanted = this->statistics_of(apart);
      results.push_back(y);
      wanted.push_back(expected);
      this->run([&](Stream& stream) { this->kernels().batch_norm_train(stream, x, fused, scalars, y); }, results);
      this->expect_equal(results, wanted, c.label());
    }
  }
}

TYPED_TEST_P(KernelsFusedNormSuite, InferAppliesTheActivation) {
  for (const auto& c : this->kCases) {
    for (const Activation activation : this->kActivations) {
      const TensorView x = this->random(c.shape, 2), y = this->result(c.shape), expected = this->result(c.shape);
      Kernels::BatchNorm norm = this->norm(c.shape.back(), Activation::kNone);
      norm.saved_mean = norm.saved_inv_std = {};
      this->kernels().batch_norm_infer(this->stream(), x, norm, expected);
      this->kernels().activation_forward(this->stream(), activation, expected, expected);
      norm.activation = activation;
      this->run([&](Stream& stream) { this->kernels().batch_norm_infer(stream, x, norm, y); }, {y});
      this->expect_equal({y}, {expected}, c.label());
    }
  }
}

TYPED_TEST_P(KernelsFusedNormSuite, BackwardGoesThroughTheActivation) {
  for (const auto& c : this->kCases) {
    for (const Activation activation : this->kActivations) {
      const std::int64_t channels = c.shape.back();
      const TensorView x = this->random(c.shape, 3), dy = this->random(c.shape, 4), y = this->result(c.shape);
      Kernels::BatchNorm norm = this->norm(channels, Activation::kNone);
      const StepScalars* scalars = this->scalars({.rows = c.real});
      this->kernels().batch_norm_train(this->stream(), x, norm, scalars, y);
      const std::vector<TensorView> wanted{this->result({channels}), this->result({channels}),
                                           this->result(c.shape)};
      this->kernels().activation_backward(this->stream(), activation, y, dy, wanted[2]);
      this->kernels().batch_norm_backward(this->stream(), x, wanted[2], norm, scalars, wanted[0], wanted[1],
                                          wanted[2]);
      norm.activation = activation;
      const std::vector<TensorView> results{this->result({channels}), this->result({channels}),
                                            this->result(c.shape)};
      this->run(
          [&](Stream& stream) {
            this->kernels().batch_norm_backward(stream, x, dy, norm, scalars, results[0], results[1], results[2]);
          },
          results);
      this->expect_equal(results, wanted, c.label());
      // In place, and without the gradients of the parameters.
      const Reals apart = this->read_reals(results[2]);
      this->kernels().batch_norm_backward(this->stream(), x, dy, norm, scalars, {}, {}, dy);
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
      const Kernels::BatchNorm fused = this->norm(of_x[3], activation), apart = this->norm(of_x[3], activation);
      const StepScalars* scalars = this->scalars({.rows = real});
      std::vector<TensorView> results = this->statistics_of(fused), wanted = this->statistics_of(apart);
      for (std::vector<TensorView>* each : {&results, &wanted}) {  // pooled, argmax, y
        each->push_back(this->result(of_y));
        each->push_back(this->result(of_y, DType::kU8));
        each->push_back(this->result(of_y));
      }
      this->kernels().max_pool_forward(this->stream(), x, wanted[4], wanted[5], s.options);
      this->kernels().batch_norm_train(this->stream(), wanted[4], apart, scalars, wanted[6]);
      const Kernels::MaxPool pool{.options = s.options, .argmax = results[5]};
      this->run(
          [&](Stream& stream) {
            this->kernels().max_pool_batch_norm_train(stream, x, pool, results[4], fused, scalars, results[6]);
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
      const Kernels::BatchNorm norm = this->norm(of_x[3], activation);
      const Kernels::MaxPool pool{.options = s.options, .argmax = this->result(of_y, DType::kU8)};
      const StepScalars* scalars = this->scalars({.rows = real});
      this->kernels().max_pool_batch_norm_train(this->stream(), x, pool, pooled, norm, scalars, y);
      const TensorView dy = this->random(of_y, 7), between = this->result(of_y);
      const std::vector<TensorView> wanted{this->result(channels), this->result(channels), this->result(of_x)};
      this->kernels().batch_norm_backward(this->stream(), pooled, dy, norm, scalars, wanted[0], wanted[1],
                                          between);
      this->kernels().max_pool_backward(this->stream(), between, pool.argmax, wanted[2], s.options);
      const std::vector<TensorView> results{this->result(channels), this->result(channels), this->result(of_x)};
      this->run(
          [&](Stream& stream) {
            this->kernels().max_pool_batch_norm_backward(stream, pooled, dy, norm, scalars, results[0], results[1],
                                                         pool, results[2]);
          },
          {results[0], results[1], results[2], dy});
      this->expect_equal(results, wanted, of_x.to_string());
    }
  }
}

TYPED_TEST_P(KernelsFusedNormSuite, WrongShapesAreRefused) {
  const TensorView x = this->random({2, 4, 4, 3}, 8), pooled = this->result({2, 2, 2, 3});
  const Kernels::BatchNorm norm = this->norm(3, Activation::kGelu);
  const Kernels::MaxPool pool{.options = {}, .argmax = this->result({2, 2, 2, 3}, DType::kU8)};
  const StepScalars* scalars = this->scalars({.rows = 2});
  Stream& stream = this->stream();
  EXPECT_THROW(this->kernels().max_pool_batch_norm_train(stream, x, pool, x, norm, scalars, pooled), ConfigError);
  EXPECT_THROW(this->kernels().max_pool_batch_norm_train(stream, x, pool, pooled, norm, scalars, x), ConfigError);
  EXPECT_THROW(this->kernels().max_pool_batch_norm_backward(stream, pooled, x, norm, scalars, {}, {}, pool, x),
               ConfigError);
  const Kernels::MaxPool without{.options = {}, .argmax = {}};
  EXPECT_THROW(this->kernels().max_pool_batch_norm_train(stream, x, without, pooled, norm, scalars, pooled),
               ConfigError);
}

REGISTER_TYPED_TEST_SUITE_P(KernelsFusedNormSuite, TrainAppliesTheActivation, InferAppliesTheActivation,
                            BackwardGoesThroughTheActivation, PoolsFirst, GoesBackToBeforeThePooling,
                            WrongShapesAreRefused);

}  // namespace headrace::test

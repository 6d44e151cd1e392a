// What the batch normalisation kernels of every device must compute.
#pragma once

#include "headrace/tests/conformance/kernels_norm_fixture.h"
#include "headrace/tests/support/reference_batch_norm.h"

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
  Reals gamma(const Kernels::BatchNorm& of, std::size_t channels) {
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
      Kernels::BatchNorm norm = this->norm(c.channels);
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
      this->run([&](Stream& stream) { this->kernels().batch_norm_train(stream, x, norm, scalars, y); },
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
    const Kernels::BatchNorm norm = this->norm(10);
    const TensorView x = this->tensor(shape, values), y = this->result(shape);
    const TensorView dy = this->tensor(shape, values), dgamma = this->result({10}), dbeta = this->result({10});
    this->kernels().batch_norm_train(this->stream(), x, norm, scalars, y);
    this->kernels().batch_norm_backward(this->stream(), x, dy, norm, scalars, dgamma, dbeta, dy);
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
  const Kernels::BatchNorm norm = this->norm(5);
  const Reals mean = this->read_reals(norm.running_mean), variance = this->read_reals(norm.running_var);
  const TensorView x = this->random({3, 5}, 3), y = this->result({3, 5}), dx = this->result({3, 5});
  const TensorView dgamma = this->result({5}), dbeta = this->result({5});
  const StepScalars* scalars = this->scalars({.rows = 0});
  this->kernels().batch_norm_train(this->stream(), x, norm, scalars, y);
  this->kernels().batch_norm_backward(this->stream(), x, x, norm, scalars, dgamma, dbeta, dx);
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
  const Kernels::BatchNorm norm = this->norm(3);
  const TensorView x = this->tensor(Shape{4096, 3}, values), y = this->result({4096, 3});
  this->kernels().batch_norm_train(this->stream(), x, norm, this->scalars({.rows = 4096}), y);
  const Statistics batch = statistics({4096, 4096, 3}, reals(values));
  const Reals inverse = this->read_reals(norm.saved_inv_std);
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(inverse[c] * std::sqrt(batch.variance[c] + static_cast<double>(this->kEpsilon)), 1, 1e-4);
  }
}

TYPED_TEST_P(KernelsBatchNormSuite, Infer) {
  for (const auto& c : this->kCases) {
    const Kernels::BatchNorm norm = this->norm(c.channels);
    const TensorView x = this->random(c.shape(), 5), y = this->result(c.shape());
    this->run([&](Stream& stream) { this->kernels().batch_norm_infer(stream, x, norm, y); }, {y});
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
      Kernels::BatchNorm norm = this->norm(c.channels);
      if (!scaled) norm.gamma = {};
      const NormSizes sizes = c.sizes();
      const TensorView x = this->random(c.shape(), 6), y = this->result(c.shape()), dx = this->result(c.shape());
      const TensorView dy = this->random(c.shape(), 7);
      const TensorView dgamma = this->result({c.channels}), dbeta = this->result({c.channels});
      const StepScalars* scalars = this->scalars({.rows = c.real});
      this->kernels().batch_norm_train(this->stream(), x, norm, scalars, y);
      const TensorView wanted = scaled ? dgamma : TensorView{};
      this->run(
          [&](Stream& stream) {
            this->kernels().batch_norm_backward(stream, x, dy, norm, scalars, wanted, dbeta, dx);
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
      this->kernels().batch_norm_backward(this->stream(), x, dy, norm, scalars, wanted, dbeta, dy);
      EXPECT_EQ(this->read_reals(dy), apart);
    }
  }
}

REGISTER_TYPED_TEST_SUITE_P(KernelsBatchNormSuite, Train, PaddingChangesNothing, WithoutRealRowsStatisticsStay,
                            LargeOffsetsKeepTheVariance, Infer, BackwardIsTheGradientOfTheForwardPass);

}  // namespace headrace::test

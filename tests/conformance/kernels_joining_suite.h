// What the kernels of every device must compute that join tensors: columns side by side, means of windows, and the
// statistics of several replicas.
#pragma once

#include "headrace/tests/conformance/kernels_fixture.h"
#include "headrace/tests/support/reference_layers.h"

namespace headrace::test {

template <typename Target>
class KernelsJoiningSuite : public KernelsNormFixture<Target> {
 protected:
  static inline const std::vector<PoolSizes> kWindows{
      {1, 2, 2, 1},          {2, 8, 8, 32},         {3, 7, 9, 5},         {2, 3, 3, 64, {3, 3}},
      {1, 9, 8, 17, {3, 2}}, {2, 9, 9, 70, {2, 3}}, {1, 4, 4, 8, {3, 1}}, {1, 2, 3, 4, {1, 1}}};

  static Shape x_shape(const PoolSizes& s) { return of(s.images, s.height, s.width, s.channels); }
  static Shape y_shape(const PoolSizes& s) { return of(s.images, s.out_height(), s.out_width(), s.channels); }
  static Shape of(std::size_t n, std::size_t h, std::size_t w, std::size_t c) {
    return {static_cast<std::int64_t>(n), static_cast<std::int64_t>(h), static_cast<std::int64_t>(w),
            static_cast<std::int64_t>(c)};
  }

  TensorView random_as(const Shape& shape, std::uint64_t seed, DType dtype) {
    const TensorView wide = this->random(shape, seed);
    if (dtype == DType::kF32) return wide;
    const TensorView half = this->result(shape, dtype);
    this->kernels().convert(this->stream(), {wide, half});
    return half;
  }
  static double tolerance(DType dtype) { return dtype == DType::kF32 ? 1e-6 : 4e-3; }
};
TYPED_TEST_SUITE_P(KernelsJoiningSuite);

TYPED_TEST_P(KernelsJoiningSuite, CopiesColumnsAndNoOthers) {
  struct Columns {
    std::int64_t from_width, from, to_width, to, count;
  };
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const Columns& c : {Columns{1, 0, 1, 0, 1}, {7, 2, 5, 1, 3}, {64, 0, 96, 32, 64}, {96, 64, 32, 0, 32}}) {
      constexpr std::int64_t kRows = 37;
      const TensorView from = this->random_as({kRows, c.from_width}, 1, dtype);
      const TensorView to = this->random_as({kRows, c.to_width}, 2, dtype);
      const Reals source = this->read_reals(from);
      Reals expected = this->read_reals(to);
      for (std::int64_t row = 0; row < kRows; ++row) {
        for (std::int64_t k = 0; k < c.count; ++k) {
          expected[static_cast<std::size_t>(row * c.to_width + c.to + k)] =
              source[static_cast<std::size_t>(row * c.from_width + c.from + k)];
        }
      }
      this->run(
          [&](Stream& stream) {
            this->kernels().copy_columns(stream, {from, to, c.from, c.to, c.count});
          },
          {to});
      EXPECT_EQ(this->read_reals(to), expected) << c.count;
    }
  }
}

TYPED_TEST_P(KernelsJoiningSuite, MeansOfWindows) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const PoolSizes& s : this->kWindows) {
      const TensorView x = this->random_as(this->x_shape(s), 1, dtype);
      const TensorView dy = this->random_as(this->y_shape(s), 2, dtype);
      const TensorView y = this->result(this->y_shape(s), dtype), dx = this->result(this->x_shape(s), dtype);
      const std::size_t window = s.window() * s.window();
      const Reals xs = this->read_reals(x), dys = this->read_reals(dy);
      Reals mean(s.y_count()), gradient(xs.size());
      for (std::size_t to = 0; to < s.y_count(); ++to) {
        for (std::size_t position = 0; position < window; ++position) {
          mean[to] += xs[s.source(to, position).value()] / static_cast<double>(window);
          gradient[s.source(to, position).value()] += dys[to] / static_cast<double>(window);
        }
      }
      const std::string what = this->x_shape(s).to_string();
      this->run([&](Stream& stream) { this->kernels().average_pool_forward(stream, {x, y, s.options}); }, {y});
      this->expect_close(y, mean, this->tolerance(dtype), what);
      this->run([&](Stream& stream) { this->kernels().average_pool_backward(stream, {dy, dx, s.options}); }, {dx});
      this->expect_close(dx, gradient, this->tolerance(dtype), what);
    }
  }
}

// Three replicas with 4, 0 and 3 real rows of 4 against one with all 7.
TYPED_TEST_P(KernelsJoiningSuite, StatisticsOfReplicasAreThoseOfTheWholeBatch) {
  constexpr std::int64_t kRows = 4, kChannels = 40, kReplicas = 3, kWidth = 1 + 2 * kChannels;
  const std::int64_t real[kReplicas]{4, 0, 3};
  const Shape part{kRows, 2, 2, kChannels}, whole{7, 2, 2, kChannels};
  const auto x = random_floats(whole.elements(), 1), dy = random_floats(whole.elements(), 2);
  const kernel::BatchNorm all = this->norm(kChannels);
  const TensorView all_x = this->tensor(whole, x), all_dy = this->tensor(whole, dy);
  const TensorView y = this->result(whole), dx = this->result(whole);
  const TensorView dgamma = this->result({kChannels}), dbeta = this->result({kChannels});
  const StepScalars* seven = this->scalars({.rows = 7});
  this->kernels().batch_norm_train(this->stream(), {all_x, y, all, seven});
  this->kernels().batch_norm_backward(this->stream(), {all_x, all_dy, dgamma, dbeta, dx, all, seven});

  const auto rows_of = [&](const std::vector<float>& values, std::int64_t first, std::int64_t count) {
    std::vector<float> rows(static_cast<std::size_t>(part.elements()), 3.0F);
    const std::int64_t row = part.elements() / kRows;
    std::copy_n(values.begin() + first * row, count * row, rows.begin());
    return this->tensor(part, rows);
  };
  const TensorView statistics = this->result({kReplicas, kWidth}), joint = this->result({2, kChannels});
  std::vector<TensorView> xs, own, gradients;
  std::vector<const StepScalars*> scalars;
  Reals sums(2 * kChannels);
  for (std::int64_t r = 0, first = 0; r < kReplicas; first += real[r++]) {
    kernel::BatchNorm norm = this->norm(kChannels);
    norm.epsilon = 1e-30F;
    norm.momentum = 1;
    scalars.push_back(this->scalars({.rows = real[r]}));
    xs.push_back(rows_of(x, first, real[r]));
    const TensorView row{statistics.as<float>() + r * kWidth, Shape{kWidth}, DType::kF32};
    this->kernels().batch_norm_train(this->stream(), {xs.back(), this->result(part), norm, scalars.back()});
    this->run(
        [&](Stream& s) {
          this->kernels().pack_statistics(s, {xs.back(), row, norm, scalars.back()});
        },
        {row});
    EXPECT_EQ(this->read_reals(row)[0], static_cast<double>(real[r] * 4));
  }
  for (std::int64_t r = 0, first = 0; r < kReplicas; first += real[r++]) {
    const kernel::BatchNorm norm = this->norm(kChannels);
    const TensorView variance = this->result({kChannels}), counts = this->result({2});
    const auto at = static_cast<std::size_t>(r);
    this->run(
        [&](Stream& s) {
          this->kernels().join_statistics(s, {statistics, variance, counts, norm, static_cast<int>(r)});
        },
        {norm.saved_mean, norm.saved_inv_std, norm.running_mean, norm.running_var, variance, counts});
    this->expect_close(norm.saved_mean, this->read_reals(all.saved_mean), 1e-6);
    this->expect_close(norm.saved_inv_std, this->read_reals(all.saved_inv_std), 1e-6);
    this->expect_close(norm.running_mean, this->read_reals(all.running_mean), 1e-6);
    this->expect_close(norm.running_var, this->read_reals(all.running_var), 1e-6);
    const double inverse = real[r] > 0 ? 0.25 / static_cast<double>(real[r]) : 0.0;
    this->expect_close(counts, {inverse, 1.0 / 28}, 1e-6);
    own.push_back(this->result({2, kChannels}));
    gradients.push_back(this->result(part));
    float* mine = own.back().template as<float>();
    const TensorView mine_beta{mine, Shape{kChannels}, DType::kF32};
    const TensorView mine_gamma{mine + kChannels, Shape{kChannels}, DType::kF32};
    this->kernels().batch_norm_backward(this->stream(), {xs[at], rows_of(dy, first, real[r]), mine_gamma,
                                                         mine_beta, gradients.back(), norm, scalars[at]});
    const Reals values = this->read_reals(own.back());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
  }
  std::vector<float> summed(sums.begin(), sums.end());
  this->write(joint, summed);
  const Reals expected = this->read_reals(dx);
  for (std::int64_t r = 0, first = 0; r < kReplicas; first += real[r++]) {
    const auto at = static_cast<std::size_t>(r);
    kernel::BatchNorm norm = all;
    const TensorView counts = this->tensor(
        Shape{2}, std::vector<float>{real[r] > 0 ? 0.25F / static_cast<float>(real[r]) : 0.0F, 1.0F / 28});
    this->run(
        [&](Stream& s) {
          this->kernels().join_input_gradient(s,
                                              {xs[at], own[at], joint, counts, gradients[at], norm, scalars[at]});
        },
        {gradients[at]});
    Reals mine(static_cast<std::size_t>(part.elements()));
    const std::int64_t row = part.elements() / kRows;
    std::copy_n(expected.begin() + first * row, real[r] * row, mine.begin());
    this->expect_close(gradients[at], mine, real[r] > 0 ? 3e-6 : 0, std::to_string(r));
  }
}

TYPED_TEST_P(KernelsJoiningSuite, WrongShapesAreRefusedAtOnce) {
  const TensorView a = this->random({3, 4}, 1), b = this->random({3, 5}, 2), c = this->random({2, 5}, 3);
  EXPECT_THROW(this->kernels().copy_columns(this->stream(), {a, c, 0, 0, 2}), ConfigError);
  EXPECT_THROW(this->kernels().copy_columns(this->stream(), {a, b, 2, 0, 3}), ConfigError);
  EXPECT_THROW(this->kernels().copy_columns(this->stream(), {a, b, 0, 3, 3}), ConfigError);
  EXPECT_THROW(this->kernels().copy_columns(this->stream(), {a, b, -1, 0, 1}), ConfigError);
  const kernel::BatchNorm norm = this->norm(4);
  const TensorView two = this->result({2}), four = this->result({4});
  EXPECT_THROW(this->kernels().join_statistics(this->stream(), {b, four, two, norm, 0}), ConfigError);
  const TensorView rows = this->random({2, 9}, 4);
  EXPECT_THROW(this->kernels().join_statistics(this->stream(), {rows, four, two, norm, 2}), ConfigError);
  EXPECT_THROW(this->kernels().join_statistics(this->stream(), {rows, four, four, norm, 0}), ConfigError);
  this->stream().synchronize();
}

REGISTER_TYPED_TEST_SUITE_P(KernelsJoiningSuite, CopiesColumnsAndNoOthers, MeansOfWindows,
                            StatisticsOfReplicasAreThoseOfTheWholeBatch, WrongShapesAreRefusedAtOnce);

}  // namespace headrace::test

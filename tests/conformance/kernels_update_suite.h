// What the kernels around an update must compute: norms and limits of gradients, averages of weights, lookahead.
#pragma once

#include <array>
#include <cstdint>

#include "headrace/tests/conformance/kernels_fixture.h"
#include "headrace/tests/support/reference_optimizers.h"

namespace headrace::test {

template <typename Target>
class KernelsUpdateSuite : public KernelsFixture<Target> {
 protected:
  // Some with a tail that no pack and no block holds.
  static inline const std::vector<std::int64_t> kCounts{1, 3, 16, 1000, 1024, 4099, 300'001};

  static TensorView as_view(GradientNorm* norm) {
    return {norm, {static_cast<std::int64_t>(sizeof(GradientNorm))}, DType::kU8};
  }
  GradientNorm norm_of(const GradientNorm* on_device) {
    GradientNorm value;
    this->stream().copy(&value, on_device, sizeof value);
    this->stream().synchronize();
    return value;
  }
  float factor(double squares, float max_norm) {
    GradientNorm* norm = this->constant(GradientNorm{.squares = squares, .factor = 7});
    this->run([&](Stream& stream) { this->kernels().clip_factor(stream, {max_norm, norm}); }, {as_view(norm)});
    const double left = norm_of(norm).squares;
    EXPECT_TRUE(left == squares || std::isnan(squares)) << left;
    return norm_of(norm).factor;
  }
};
TYPED_TEST_SUITE_P(KernelsUpdateSuite);

TYPED_TEST_P(KernelsUpdateSuite, SquaresAreAdded) {
  for (const std::int64_t count : this->kCounts) {
    const TensorView x = this->random({count}, 1), other = this->random({7}, 2);
    GradientNorm* norm = this->constant(GradientNorm{.squares = 0.5});
    this->run(
        [&](Stream& stream) {
          this->kernels().add_squares(stream, {x, norm});
          this->kernels().add_squares(stream, {other, norm});
        },
        {this->as_view(norm)});
    double expected = 0.5;
    for (const TensorView& view : {x, other}) {
      for (const double value : this->read_reals(view)) expected += value * value;
    }
    EXPECT_NEAR(this->norm_of(norm).squares, expected, 1e-6 * expected) << count;
  }
}

TYPED_TEST_P(KernelsUpdateSuite, TheFactorBringsANormToItsLimit) {
  EXPECT_EQ(this->factor(4, 2), 1);
  EXPECT_EQ(this->factor(0, 2), 1);
  EXPECT_EQ(this->factor(3.99, 2), 1);
  EXPECT_FLOAT_EQ(this->factor(16, 2), 0.5F);
  EXPECT_FLOAT_EQ(this->factor(1e30, 3), 3e-15F);
  for (const double wrong : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(std::isnan(this->factor(wrong, 2)));
  }
}

// As an update clips: the factor is read where it was written.
TYPED_TEST_P(KernelsUpdateSuite, GradientsAreScaledByTheFactor) {
  const TensorView x = this->random({1003}, 4);
  GradientNorm* norm = this->constant(GradientNorm{});
  const Reals before = this->read_reals(x);
  double squares = 0;
  for (const double value : before) squares += value * value;
  this->run(
      [&](Stream& stream) {
        stream.fill(norm, 0, sizeof(GradientNorm));
        this->kernels().add_squares(stream, {x, norm});
        this->kernels().clip_factor(stream, {0.25F, norm});
        this->kernels().scale(stream, {x, x, &norm->factor});
      },
      {x});
  Reals expected;
  for (const double value : before) expected.push_back(value * 0.25 / std::sqrt(squares));
  this->expect_close(x, expected, 1e-6);
}

TYPED_TEST_P(KernelsUpdateSuite, ClampKeepsWhatIsWithin) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values{0, 0.5F, -0.5F, 0.75F, -0.75F, 2, -2, infinity, -infinity, nan, 0.1F};
  const TensorView x = this->tensor({11}, values);
  this->run([&](Stream& stream) { this->kernels().clamp(stream, {x, 0.75F}); }, {x});
  const std::vector<float> after = this->template read<float>(x);
  const std::vector<float> expected{0, 0.5F, -0.5F, 0.75F, -0.75F, 0.75F, -0.75F, 0.75F, -0.75F, nan, 0.1F};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(after[i]));
    } else {
      EXPECT_EQ(after[i], expected[i]) << i;
    }
  }
}

TYPED_TEST_P(KernelsUpdateSuite, AnAverageFollowsTheWeights) {
  for (const std::int64_t count : this->kCounts) {
    for (const float decay : {0.0F, 0.9F, 0.9999F, 1.0F}) {
      const TensorView weights = this->random({count}, 1), average = this->random({count}, 2);
      const Reals w = this->read_reals(weights), before = this->read_reals(average);
      const StepScalars* scalars = this->scalars({.average_decay = decay});
      this->run([&](Stream& stream) { this->kernels().average(stream, {weights, average, scalars}); }, {average});
      Reals expected;
      for (std::size_t i = 0; i < w.size(); ++i) {
        expected.push_back(static_cast<double>(decay) * before[i] + (1 - static_cast<double>(decay)) * w[i]);
      }
      this->expect_close(average, expected, 1e-6, std::to_string(decay));
      if (decay == 0) {
        EXPECT_EQ(this->template read<float>(average), this->template read<float>(weights));
      }
    }
  }
}

TYPED_TEST_P(KernelsUpdateSuite, LookaheadMovesBothSets) {
  for (const std::int64_t count : this->kCounts) {
    for (const bool copy : {false, true}) {
      const TensorView parameters = this->random({count}, 1), slow = this->random({count}, 2);
      const TensorView rounded = copy ? this->result({count}, DType::kBF16) : TensorView{};
      const Reals w = this->read_reals(parameters), before = this->read_reals(slow);
      std::vector<TensorView> outputs{parameters, slow};
      if (copy) outputs.push_back(rounded);
      const auto look_ahead = [&](float share) {
        const StepScalars* scalars = this->scalars({.slow_share = share});
        this->run(
            [&](Stream& stream) {
              this->kernels().look_ahead(stream, {{parameters, rounded}, scalars, slow});
            },
            outputs);
      };
      look_ahead(0);
      EXPECT_EQ(this->read_reals(parameters), w);
      EXPECT_EQ(this->read_reals(slow), before);
      look_ahead(0.3F);
      Reals expected;
      for (std::size_t i = 0; i < w.size(); ++i) expected.push_back(before[i] + 0.3 * (w[i] - before[i]));
      this->expect_close(slow, expected, 1e-6);
      const std::vector<float> moved = this->template read<float>(slow);
      EXPECT_EQ(this->template read<float>(parameters), moved);
      if (!copy) continue;
      std::vector<std::uint16_t> nearest;
      for (const float value : moved) nearest.push_back(nearest_bf16(value).bits);
      EXPECT_EQ(this->bits(rounded), nearest);
    }
  }
}

TYPED_TEST_P(KernelsUpdateSuite, AFailedStepChangesNothing) {
  const std::int64_t count = 48;
  const TensorView gradients = this->random({count}, 1), rounded = this->result({count}, DType::kBF16);
  const TensorView parameters = this->random({count}, 2), first = this->random({count}, 3);
  const TensorView second = this->random({count}, 4), average = this->random({count}, 5);
  const auto matrix = [](const TensorView& flat) { return TensorView{flat.data, {6, 8}, flat.dtype}; };
  const std::vector<UpdateRange<AdamOptions>> adams{{0, count, {}}};
  const std::vector<UpdateRange<SgdOptions>> plain{{0, count, {}}}, momentum{{0, count, {.momentum = 0.9F}}};
  const std::vector<MuonMatrix> matrices{{matrix(parameters), matrix(gradients), matrix(first), matrix(rounded)}};
  const std::vector<TensorView> outputs{parameters, rounded, first, second, average};
  const auto values = [&] {
    std::vector<Reals> all;
    for (const TensorView& view : {parameters, first, second, average}) all.push_back(this->read_reals(view));
    const std::vector<std::uint16_t> copy = this->bits(rounded);
    all.emplace_back(copy.begin(), copy.end());
    return all;
  };
  const auto update = [&](StepScalars step) {
    step.average_decay = step.slow_share = 0.5F;
    for (float& rate : step.learning_rates) rate = 0.1F;
    const StepScalars* scalars = this->scalars(step);
    const auto changes = [&](const auto& submit) {
      const auto before = values();
      this->run(submit, outputs);
      return values() != before;
    };
    const Parameters both(parameters, rounded);
    Kernels& kernels = this->kernels();
    return std::vector<bool>{changes([&](Stream& s) {
                               kernels.adam(s, {both, gradients, first, second, adams, scalars});
                             }),
                             changes([&](Stream& s) {
                               kernels.sgd(s, {both, gradients, {}, plain, scalars});
                             }),
                             changes([&](Stream& s) {
                               kernels.sgd(s, {both, gradients, first, momentum, scalars});
                             }),
                             changes([&](Stream& s) {
                               kernels.muon(s, {matrices, {}, scalars});
                             }),
                             changes([&](Stream& s) {
                               kernels.average(s, {parameters, average, scalars});
                             }),
                             changes([&](Stream& s) {
                               kernels.look_ahead(s, {both, scalars, second});
                             })};
  };
  EXPECT_EQ(update({.collective_failed = 1}), std::vector<bool>(6, false));
  EXPECT_EQ(update({.work_failed = 1}), std::vector<bool>(6, false));
  EXPECT_EQ(update({}), std::vector<bool>(6, true));
}

TYPED_TEST_P(KernelsUpdateSuite, RefusesWrongArgumentsAtOnce) {
  const TensorView x = this->random({4}, 1), other = this->random({5}, 1);
  const StepScalars* scalars = this->scalars({});
  GradientNorm* norm = this->constant(GradientNorm{});
  EXPECT_THROW(this->kernels().clip_factor(this->stream(), {0, norm}), ConfigError);
  EXPECT_THROW(this->kernels().clamp(this->stream(), {x, -1}), ConfigError);
  EXPECT_THROW(this->kernels().add_squares(this->stream(), {this->result({4}, DType::kBF16), norm}), ConfigError);
  EXPECT_THROW(this->kernels().average(this->stream(), {x, other, scalars}), ConfigError);
  EXPECT_THROW(this->kernels().look_ahead(this->stream(), {x, scalars, other}), ConfigError);
  EXPECT_THROW(this->kernels().look_ahead(this->stream(), {{x, other}, scalars, x}), ConfigError);
}

REGISTER_TYPED_TEST_SUITE_P(KernelsUpdateSuite, SquaresAreAdded, TheFactorBringsANormToItsLimit,
                            GradientsAreScaledByTheFactor, ClampKeepsWhatIsWithin, AnAverageFollowsTheWeights,
                            LookaheadMovesBothSets, AFailedStepChangesNothing, RefusesWrongArgumentsAtOnce);

// What Muon must compute on every device.

template <typename Target>
class KernelsMuonSuite : public KernelsFixture<Target> {
 protected:
  // Wide, square and tall; of two and of four axes; the last is past a device's tile in both.
  static inline const std::vector<Shape> kShapes{{1, 4}, {3, 5}, {8, 3, 3, 2}, {7, 7}, {20, 3}, {130, 257}};

  struct Matrix {
    Shape shape;
    MuonMatrix views;
    RealMatrix parameters, velocity;

    RealMatrix real(const Reals& values) const {
      const auto rows = static_cast<std::size_t>(shape[0]);
      return {rows, values.size() / rows, values};
    }
  };

  Matrix matrix(const Shape& shape, std::uint64_t seed) {
    Matrix made{.shape = shape, .views = {}, .parameters = {}, .velocity = {}};
    made.views = {.parameters = this->random(shape, seed),
                  .gradients = this->random(shape, seed + 1),
                  .velocity = this->random(shape, seed + 2),
                  .rounded = seed % 20 == 0 ? this->result(shape, DType::kBF16) : TensorView{}};
    made.parameters = made.real(this->read_reals(made.views.parameters));
    made.velocity = made.real(this->read_reals(made.views.velocity));
    return made;
  }

  // Products may be those of bf16: an orthogonal factor is then right to about a percent.
  double tolerance() { return this->device().info().kind == DeviceKind::kCpu ? 1e-5 : 2e-2; }

  // `kept`: 1 where the step keeps the norms.
  void expect_steps(const MuonOptions& options, const std::array<std::uint64_t, 3>& kept = {}) {
    std::vector<Matrix> matrices;
    std::vector<MuonMatrix> views;
    std::vector<TensorView> outputs;
    for (const Shape& shape : kShapes) {
      matrices.push_back(matrix(shape, 10 * matrices.size()));
      views.push_back(matrices.back().views);
      outputs.insert(outputs.end(), {views.back().parameters, views.back().velocity});
      if (views.back().rounded.defined()) outputs.push_back(views.back().rounded);
    }
    StepScalars values;
    values.learning_rates[options.group] = 0.24F;
    for (std::uint64_t step = 0; step < 3; ++step) {
      values.kept_norms = kept[step] << options.group;
      const StepScalars* scalars = this->scalars(values);
      for (Matrix& each : matrices) {
        this->write(each.views.gradients, random_floats(each.shape.elements(), 100 + 10 * step));
        const RealMatrix gradients = each.real(this->read_reals(each.views.gradients));
        muon_step(each.parameters, gradients, each.velocity, options, static_cast<double>(0.24F), kept[step] != 0);
      }
      this->run([&](Stream& stream) { this->kernels().muon(stream, {views, options, scalars}); }, outputs);
    }
    for (const Matrix& each : matrices) {
      this->expect_close(each.views.parameters, each.parameters.values, tolerance(), each.shape.to_string());
      this->expect_close(each.views.velocity, each.velocity.values, 1e-6, each.shape.to_string());
      if (!each.views.rounded.defined()) continue;
      std::vector<std::uint16_t> rounded;
      for (const float w : this->template read<float>(each.views.parameters)) {
        rounded.push_back(nearest_bf16(w).bits);
      }
      EXPECT_EQ(this->bits(each.views.rounded), rounded) << each.shape.to_string();
    }
  }
};
TYPED_TEST_SUITE_P(KernelsMuonSuite);

TYPED_TEST_P(KernelsMuonSuite, FollowsTheOracle) {
  this->expect_steps({});
  this->expect_steps({.momentum = 0.9F,
                      .a = 3.4576F,
                      .b = -4.7391F,
                      .c = 2.0843F,
                      .iterations = 2,
                      .adjust_rate = MuonRate::kNone,
                      .normalize = true,
                      .group = 3});
  this->expect_steps({.nesterov = false, .weight_decay = 0, .adjust_rate = MuonRate::kMatchRmsAdamw});
  this->expect_steps({.iterations = 3, .adjust_rate = MuonRate::kSpectralUnclamped});
}

TYPED_TEST_P(KernelsMuonSuite, DecaysAndKeepsTheNormsOfItsOwnGroupOnly) {
  this->expect_steps({.iterations = 3, .weight_decay = 0.3F, .normalize = true, .group = 1}, {0, 1, 1});
  const auto matrix = this->matrix({4, 6}, 9);
  this->kernels().muon(this->stream(), {std::vector{matrix.views},
                                        {.normalize = true, .group = 2},
                                        this->scalars({.kept_norms = 0b1011})});  // rates are 0
  const RealMatrix after = matrix.real(this->read_reals(matrix.views.parameters));
  EXPECT_NEAR(norm(after), 2, 1e-5);
}

TYPED_TEST_P(KernelsMuonSuite, WithoutARateNothingMoves) {
  const auto matrix = this->matrix({4, 6}, 9);
  const auto before = this->template read<float>(matrix.views.parameters);
  this->kernels().muon(this->stream(), {std::vector{matrix.views}, {}, this->scalars({})});
  EXPECT_EQ(this->template read<float>(matrix.views.parameters), before);
}

TYPED_TEST_P(KernelsMuonSuite, BringsSingularValuesNearOne) {
  const auto matrix = this->matrix({24, 60}, 5);
  this->write(matrix.views.parameters, std::vector<float>(24 * 60, 1.0F));
  this->kernels().muon(
      this->stream(),
      {std::vector{matrix.views}, {.iterations = 6, .weight_decay = 0}, this->scalars({.learning_rates = {1}})});
  Reals step = this->read_reals(matrix.views.parameters);
  for (double& value : step) value -= 1;
  const RealMatrix x{24, 60, step};
  const RealMatrix gram = product(x, transposed(x));
  for (std::size_t i = 0; i < 24; ++i) {
    EXPECT_GT(gram.at(i, i), 0.3) << i;
    EXPECT_LT(gram.at(i, i), 1.7) << i;
    for (std::size_t j = 0; j < i; ++j) EXPECT_NEAR(gram.at(i, j), 0, 0.35) << i << ", " << j;
  }
}

TYPED_TEST_P(KernelsMuonSuite, WrongArgumentsAreRefusedAtOnce) {
  const StepScalars* scalars = this->scalars({});
  const auto muon = [&](const MuonMatrix& matrix, const MuonOptions& options) {
    this->kernels().muon(this->stream(), {std::vector{matrix}, options, scalars});
  };
  const auto fits = this->matrix({2, 3}, 1).views;
  EXPECT_THROW(muon(this->matrix({6}, 1).views, {}), ConfigError);
  EXPECT_THROW(muon({fits.parameters, this->random({3, 2}, 1), fits.velocity}, {}), ConfigError);
  EXPECT_THROW(muon({fits.parameters, fits.gradients, {}}, {}), ConfigError);
  EXPECT_THROW(muon(fits, {.group = kMaxParameterGroups}), ConfigError);
  EXPECT_THROW(muon({fits.parameters, fits.gradients, fits.velocity, this->result({3, 2}, DType::kBF16)}, {}),
               ConfigError);
}

REGISTER_TYPED_TEST_SUITE_P(KernelsMuonSuite, FollowsTheOracle, DecaysAndKeepsTheNormsOfItsOwnGroupOnly,
                            WithoutARateNothingMoves, BringsSingularValuesNearOne, WrongArgumentsAreRefusedAtOnce);

}  // namespace headrace::test

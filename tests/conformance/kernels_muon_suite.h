// What Muon must compute on every device.
#pragma once

#include <array>
#include <cstdint>

#include "headrace/tests/conformance/kernels_fixture.h"
#include "headrace/tests/support/reference_muon.h"

namespace headrace::test {

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
      this->run([&](Stream& stream) { this->kernels().muon(stream, views, options, scalars); }, outputs);
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
  this->kernels().muon(this->stream(), std::vector{matrix.views}, {.normalize = true, .group = 2},
                       this->scalars({.kept_norms = 0b1011}));  // rates are 0
  const RealMatrix after = matrix.real(this->read_reals(matrix.views.parameters));
  EXPECT_NEAR(norm(after), 2, 1e-5);
}

TYPED_TEST_P(KernelsMuonSuite, WithoutARateNothingMoves) {
  const auto matrix = this->matrix({4, 6}, 9);
  const auto before = this->template read<float>(matrix.views.parameters);
  this->kernels().muon(this->stream(), std::vector{matrix.views}, {}, this->scalars({}));
  EXPECT_EQ(this->template read<float>(matrix.views.parameters), before);
}

TYPED_TEST_P(KernelsMuonSuite, BringsSingularValuesNearOne) {
  const auto matrix = this->matrix({24, 60}, 5);
  this->write(matrix.views.parameters, std::vector<float>(24 * 60, 1.0F));
  this->kernels().muon(this->stream(), std::vector{matrix.views}, {.iterations = 6, .weight_decay = 0},
                       this->scalars({.learning_rates = {1}}));
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
    this->kernels().muon(this->stream(), std::vector{matrix}, options, scalars);
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

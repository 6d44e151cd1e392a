// What the losses beside the fused one, and the counts, of every device must compute.
#pragma once

#include <numeric>

#include "headrace/tests/conformance/kernels_fixture.h"
#include "headrace/tests/support/reference.h"

namespace headrace::test {

template <typename Target>
class KernelsLossesSuite : public KernelsFixture<Target> {
 protected:
  struct Sizes {
    std::int64_t rows, elements, real;
  };
  static inline const std::vector<Sizes> kSizes{{1, 1, 1},   {2, 2, 2},     {32, 10, 32}, {32, 10, 20},
                                                {9, 100, 9}, {300, 3, 290}, {5, 33, 0},   {70, 301, 70}};
  static inline const MetricSums kBefore{.loss = 0.5, .correct = 3, .examples = 4};
  static constexpr float kShare = 1.0F / 48;

  static std::string name_of(const Sizes& of) {
    return std::to_string(of.rows) + "x" + std::to_string(of.elements) + ", " + std::to_string(of.real) + " real";
  }
  static Reals row_of(const Reals& all, std::int64_t row, std::int64_t width) {
    return {all.begin() + row * width, all.begin() + (row + 1) * width};
  }
  static TensorView as_view(MetricSums* sums) {
    return {sums, {static_cast<std::int64_t>(sizeof(MetricSums))}, DType::kU8};
  }
  MetricSums sums(const MetricSums* on_device) {
    MetricSums values;
    this->stream().copy(&values, on_device, sizeof values);
    this->stream().synchronize();
    return values;
  }
  const StepScalars* scalars_of(const Sizes& of) {
    return this->scalars({.rows = of.real, .inverse_global_rows = kShare});
  }

  // A loss with its gradient, then without: against `loss` of a row and its difference quotients, and 0 in
  // padding.
  template <typename Submit, typename Loss>
  void expect_loss(const Sizes& of, const TensorView& x, const Submit& submit, const Loss& loss, double tolerance,
                   const std::string& what) {
    const TensorView dx = this->result(x.shape);
    MetricSums* counted = this->constant(kBefore);
    this->run([&](Stream& stream) { submit(stream, dx, counted); }, {dx, as_view(counted)});
    const Reals values = this->read_reals(x);
    Reals gradient;
    double total = 0, magnitude = 0;
    for (std::int64_t row = 0; row < of.rows; ++row) {
      const auto of_row = [&](const Reals& at) { return Reals{loss(row, at)}; };
      const Reals at = row_of(values, row, of.elements);
      const bool real = row < of.real;
      for (const double d : differences(of_row, at, {real ? static_cast<double>(kShare) : 0.0})) {
        gradient.push_back(d);
      }
      if (!real) continue;
      total += loss(row, at);
      magnitude += std::abs(loss(row, at));
    }
    this->expect_close(dx, gradient, tolerance, what);
    const MetricSums got = sums(counted);
    EXPECT_NEAR(got.loss, kBefore.loss + total, 1e-6 * (1 + magnitude) * Target::slack()) << what;
    EXPECT_EQ(got.examples, kBefore.examples + of.real) << what;
    EXPECT_EQ(got.correct, kBefore.correct) << what;
    MetricSums* alone = this->constant(kBefore);
    submit(this->stream(), TensorView{}, alone);
    EXPECT_EQ(sums(alone).loss, got.loss) << what << ", without a gradient";
  }

  // How many of the row come before the label.
  static std::int64_t rank_of(const Reals& row, std::int64_t label) {
    std::int64_t before = 0;
    for (std::int64_t k = 0; k < static_cast<std::int64_t>(row.size()); ++k) {
      const double mine = row[static_cast<std::size_t>(label)], other = row[static_cast<std::size_t>(k)];
      before += other > mine || (other == mine && k < label);
    }
    return before;
  }
  // Few values: many are equal.
  TensorView coarse(const Shape& shape, std::uint64_t seed) {
    auto values = random_floats(shape.elements(), seed);
    for (float& value : values) value = std::round(4 * value);
    return this->tensor(shape, values);
  }
};
TYPED_TEST_SUITE_P(KernelsLossesSuite);

TYPED_TEST_P(KernelsLossesSuite, SoftCrossEntropy) {
  for (const auto& of : this->kSizes) {
    for (const float smoothing : {0.0F, 0.2F}) {
      const Shape shape{of.rows, of.elements};
      auto logits = random_floats(shape.elements(), 1), shares = random_floats(shape.elements(), 2);
      for (float& value : logits) value *= 9;
      for (float& value : shares) value = 0.4F * (value + 1);  // whose sum is not 1
      const TensorView x = this->tensor(shape, logits), targets = this->tensor(shape, shares);
      const StepScalars* scalars = this->scalars_of(of);
      this->expect_loss(
          of, x,
          [&](Stream& stream, const TensorView& dx, MetricSums* sums) {
            this->kernels().soft_cross_entropy(stream, {x, targets, dx, smoothing, scalars, sums});
          },
          [&, all = reals(shares)](std::int64_t row, const Reals& at) {
            return soft_cross_entropy(at, this->row_of(all, row, of.elements), static_cast<double>(smoothing));
          },
          1e-5, this->name_of(of));
    }
  }
}

// One-hot targets are class numbers.
TYPED_TEST_P(KernelsLossesSuite, SoftCrossEntropyOfOneHotTargetsIsThatOfClassNumbers) {
  constexpr std::int64_t kRows = 33, kClasses = 10;
  std::vector<std::int64_t> numbers;
  std::vector<float> shares(kRows * kClasses);
  for (std::int64_t row = 0; row < kRows; ++row) {
    numbers.push_back(row * 7 % kClasses);
    shares[static_cast<std::size_t>(row * kClasses + numbers.back())] = 1;
  }
  const TensorView logits = this->random({kRows, kClasses}, 1), dx = this->result({kRows, kClasses});
  const TensorView expected = this->result({kRows, kClasses});
  const StepScalars* scalars = this->scalars({.rows = 30, .inverse_global_rows = 0.1F});
  MetricSums* soft = this->constant(MetricSums{});
  MetricSums* sparse = this->constant(MetricSums{});
  this->kernels().soft_cross_entropy(this->stream(),
                                     {logits, this->tensor({kRows, kClasses}, shares), dx, 0.1F, scalars, soft});
  this->kernels().softmax_cross_entropy(this->stream(),
                                        {logits, this->tensor({kRows}, numbers), expected, 0.1F, scalars, sparse});
  this->expect_close(dx, this->read_reals(expected), 1e-6);
  EXPECT_NEAR(this->sums(soft).loss, this->sums(sparse).loss, 1e-5);
}

TYPED_TEST_P(KernelsLossesSuite, ElementLosses) {
  for (const ElementLoss loss :
       {ElementLoss::kSquaredError, ElementLoss::kAbsoluteError, ElementLoss::kBinaryFromLogits,
        ElementLoss::kBinaryFromProbabilities, ElementLoss::kHuber, ElementLoss::kHinge,
        ElementLoss::kKullbackLeibler, ElementLoss::kMatchesOfLogits, ElementLoss::kMatchesOfProbabilities}) {
    for (const auto& of : this->kSizes) {
      for (const DType type : {DType::kF32, DType::kI64}) {
        const Shape shape =
            of.elements % 2 == 0 ? Shape{of.rows, 2, of.elements / 2} : Shape{of.rows, of.elements};
        auto values = random_floats(shape.elements(), 1), shares = random_floats(shape.elements(), 2);
        const bool probable = loss == ElementLoss::kBinaryFromProbabilities ||
                              loss == ElementLoss::kKullbackLeibler ||
                              loss == ElementLoss::kMatchesOfProbabilities;
        for (float& value : values) value = probable ? 0.5F + 0.45F * value : 4 * value;
        std::vector<std::int64_t> numbers;
        for (float& value : shares) {
          value = 0.5F * (value + 1);
          if (type == DType::kI64) value = std::round(value);
          numbers.push_back(static_cast<std::int64_t>(value));
        }
        const TensorView x = this->tensor(shape, values);
        const TensorView targets =
            type == DType::kF32 ? this->tensor(shape, shares) : this->tensor({of.rows, of.elements}, numbers);
        // Some of each; |x - t| bends at the target, where it has no difference quotient.
        const bool smooth = of.elements % 2 == 1 && loss != ElementLoss::kAbsoluteError;
        const float smoothing = smooth ? 0.3F : 0.0F;
        for (float& value : shares) value = (1 - smoothing) * value + smoothing / 2;
        const StepScalars* scalars = this->scalars_of(of);
        this->expect_loss(
            of, x,
            [&](Stream& stream, const TensorView& dx, MetricSums* sums) {
              this->kernels().element_loss(stream, {loss, x, targets, dx, smoothing, scalars, sums});
            },
            [&, all = reals(shares)](std::int64_t row, const Reals& at) {
              return element_loss(loss, at, this->row_of(all, row, of.elements));
            },
            1e-5, "loss " + std::to_string(static_cast<int>(loss)) + " of " + this->name_of(of));
      }
    }
  }
}

TYPED_TEST_P(KernelsLossesSuite, CosineLoss) {
  for (const auto& of : this->kSizes) {
    for (const std::int64_t vectors : {1, 2}) {
      if (of.elements % vectors != 0) continue;
      const std::int64_t width = of.elements / vectors;
      const Shape shape = vectors == 1 ? Shape{of.rows, width} : Shape{of.rows, vectors, width};
      auto values = random_floats(shape.elements(), 1), weights = random_floats(of.rows, 3);
      for (float& value : values) value = 3 * value + 0.1F;
      for (float& weight : weights) weight = 1 + weight / 2;
      const TensorView x = this->tensor(shape, values), targets = this->random(shape, 2);
      const ExampleRows rows(this->scalars_of(of), this->tensor({of.rows}, weights));
      const Reals all = this->read_reals(targets);
      this->expect_loss(
          of, x,
          [&](Stream& stream, const TensorView& dx, MetricSums* sums) {
            this->kernels().cosine_loss(stream, {x, targets, dx, rows, sums});
          },
          [&](std::int64_t row, const Reals& at) {
            const Reals target = this->row_of(all, row, of.elements);
            double loss = 0;
            for (std::int64_t v = 0; v < vectors; ++v) {
              loss += cosine_loss(this->row_of(at, v, width), this->row_of(target, v, width));
            }
            return static_cast<double>(weights[static_cast<std::size_t>(row)]) * loss /
                   static_cast<double>(vectors);
          },
          1e-5, this->name_of(of));
    }
  }
}

// A vector of almost 0 has a limited inverse norm, which is then a constant; a NaN is not hidden.
TYPED_TEST_P(KernelsLossesSuite, CosineLossOfAlmostNothing) {
  const TensorView x = this->tensor({3, 2}, std::vector<float>{0, 0, 3e-9F, 4e-9F, std::nanf(""), 1});
  const TensorView targets = this->tensor({3, 2}, std::vector<float>{3, 4, 3, 4, 3, 4}), dx = this->result({3, 2});
  MetricSums* sums = this->constant(MetricSums{});
  const auto submit = [&](std::int64_t rows) {
    this->kernels().cosine_loss(this->stream(),
                                {x, targets, dx, this->scalars({.rows = rows, .inverse_global_rows = 1}), sums});
    return this->sums(sums).loss;
  };
  EXPECT_NEAR(submit(2), -0.05, 1e-6);
  this->expect_close(dx, {-6e6, -8e6, -6e6, -8e6, 0, 0}, 1e-6);
  EXPECT_TRUE(std::isnan(submit(3)));
}

TYPED_TEST_P(KernelsLossesSuite, ElementLossesAtTheirLimits) {
  const auto at = [&](ElementLoss loss, float x, float t) {
    const TensorView dx = this->result({1, 1});
    MetricSums* sums = this->constant(MetricSums{});
    this->kernels().element_loss(
        this->stream(), {loss, this->tensor({1, 1}, std::vector{x}), this->tensor({1}, std::vector{t}), dx, 0,
                         this->scalars({.rows = 1, .inverse_global_rows = 1}), sums});
    return std::pair{this->sums(sums).loss, this->template read<float>(dx).front()};
  };
  EXPECT_EQ(at(ElementLoss::kAbsoluteError, 2, 2), std::pair(0.0, 0.0F)) << "no slope where it bends";
  EXPECT_EQ(at(ElementLoss::kBinaryFromLogits, 1000, 0), std::pair(1000.0, 1.0F));
  EXPECT_EQ(at(ElementLoss::kBinaryFromLogits, -1000, 0), std::pair(0.0, 0.0F));
  EXPECT_NEAR(at(ElementLoss::kBinaryFromProbabilities, 0, 1).first, -std::log(1e-7), 1e-3);
  EXPECT_NEAR(at(ElementLoss::kBinaryFromProbabilities, 1, 0).first, -std::log(1e-7), 0.2) << "1 - 1e-7 in f32";
  EXPECT_TRUE(std::isfinite(at(ElementLoss::kBinaryFromProbabilities, -3, 1).second));
  EXPECT_EQ(at(ElementLoss::kMatchesOfLogits, 0, 0), std::pair(1.0, 0.0F)) << "0.5 is not above 0.5";
  EXPECT_EQ(at(ElementLoss::kMatchesOfProbabilities, 0.5F, 0.5F), std::pair(0.0, 0.0F));
  EXPECT_EQ(at(ElementLoss::kMatchesOfLogits, std::nanf(""), 0), std::pair(0.0, 0.0F));
  for (const ElementLoss loss :
       {ElementLoss::kSquaredError, ElementLoss::kBinaryFromLogits, ElementLoss::kBinaryFromProbabilities,
        ElementLoss::kAbsoluteError, ElementLoss::kHuber, ElementLoss::kHinge, ElementLoss::kKullbackLeibler}) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(at(loss, nan, 0.5F).first));
    EXPECT_TRUE(std::isnan(at(loss, 0.5F, nan).first));
  }
}

TYPED_TEST_P(KernelsLossesSuite, GivenLossesAreAddedInDouble) {
  for (const std::int64_t real : {0, 1, 700, 1003}) {
    auto values = random_floats(1003, 1);
    values[0] = 1e8F;  // in single precision the others would be lost
    const TensorView losses = this->tensor({1003}, values);
    const StepScalars* scalars = this->scalars({.rows = real});
    MetricSums* sums = this->constant(this->kBefore);
    this->run(
        [&](Stream& stream) {
          this->kernels().add_losses(stream, {losses, scalars, sums});
        },
        {this->as_view(sums)});
    const Reals all = reals(values);
    EXPECT_NEAR(this->sums(sums).loss, std::accumulate(all.begin(), all.begin() + real, 0.5), 1e-6);
    EXPECT_EQ(this->sums(sums).examples, 4 + real);
  }
}

TYPED_TEST_P(KernelsLossesSuite, SoftmaxBackward) {
  for (const auto& of : this->kSizes) {
    const Shape shape{of.rows, of.elements};
    const TensorView z = this->random(shape, 1), dy = this->random(shape, 2), p = this->result(shape);
    this->kernels().softmax(this->stream(), {z, p});
    for (const bool in_place : {false, true}) {
      const TensorView dx = in_place ? dy : this->result(shape);
      const Reals weights = this->read_reals(dy);
      this->run([&](Stream& stream) { this->kernels().softmax_backward(stream, {p, dy, dx}); }, {dx});
      const Reals logits = this->read_reals(z);
      Reals expected;
      for (std::int64_t row = 0; row < of.rows; ++row) {
        const auto of_row = [](const Reals& at) { return softmax(at); };
        for (const double d : differences(of_row, this->row_of(logits, row, of.elements),
                                          this->row_of(weights, row, of.elements))) {
          expected.push_back(d);
        }
      }
      this->expect_close(dx, expected, 1e-5, this->name_of(of));
    }
  }
}

TYPED_TEST_P(KernelsLossesSuite, CountsOfTheLargest) {
  for (const auto& of : this->kSizes) {
    const Shape shape{of.rows, of.elements};
    const TensorView x = this->coarse(shape, 1), shares = this->coarse(shape, 2);
    const Reals values = this->read_reals(x), targets = this->read_reals(shares);
    std::vector<std::int64_t> labels;
    for (std::int64_t row = 0; row < of.rows; ++row) {
      const Reals target = this->row_of(targets, row, of.elements);
      labels.push_back(std::max_element(target.begin(), target.end()) - target.begin());
    }
    const TensorView numbers = this->tensor({of.rows}, labels);
    const StepScalars* scalars = this->scalars_of(of);
    for (const int k : {1, 3}) {
      std::int64_t expected = 3;
      for (std::int64_t row = 0; row < of.real; ++row) {
        expected +=
            this->rank_of(this->row_of(values, row, of.elements), labels[static_cast<std::size_t>(row)]) < k;
      }
      for (const TensorView& given : {numbers, shares}) {
        MetricSums* sums = this->constant(this->kBefore);
        this->run(
            [&](Stream& stream) {
              this->kernels().count_top(stream, {x, given, k, scalars, sums});
            },
            {this->as_view(sums)});
        EXPECT_EQ(this->sums(sums).correct, expected) << this->name_of(of) << ", k " << k;
        EXPECT_EQ(this->sums(sums).examples, 4 + of.real);
        EXPECT_EQ(this->sums(sums).loss, 0.5);
      }
    }
  }
}

TYPED_TEST_P(KernelsLossesSuite, CountsOfConfusions) {
  for (const auto& of : this->kSizes) {
    if (of.elements > 100) continue;
    const Shape shape{of.rows, of.elements}, square{of.elements, of.elements};
    const TensorView x = this->coarse(shape, 1), shares = this->coarse(shape, 2);
    const Reals values = this->read_reals(x), targets = this->read_reals(shares);
    const auto largest = [&](const Reals& all, std::int64_t row) {
      const Reals of_row = this->row_of(all, row, of.elements);
      return std::max_element(of_row.begin(), of_row.end()) - of_row.begin();
    };
    std::vector<std::int64_t> before(static_cast<std::size_t>(square.elements())), labels;
    std::iota(before.begin(), before.end(), 5);
    std::vector<std::int64_t> expected = before;
    for (std::int64_t row = 0; row < of.rows; ++row) {
      labels.push_back(largest(targets, row));
      if (row < of.real) ++expected[static_cast<std::size_t>(labels.back() * of.elements + largest(values, row))];
    }
    const StepScalars* scalars = this->scalars_of(of);
    for (const TensorView& given : {this->tensor({of.rows}, labels), shares}) {
      const TensorView counts = this->tensor(square, before);
      this->run(
          [&](Stream& stream) {
            this->kernels().count_confusions(stream, {x, given, counts, scalars});
          },
          {counts});
      EXPECT_EQ(this->template read<std::int64_t>(counts), expected) << this->name_of(of);
    }
  }
}

TYPED_TEST_P(KernelsLossesSuite, LabelsOutOfRangeAndNaNCountNowhere) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const TensorView x = this->tensor({3, 2}, std::vector<float>{1, 0, 1, 0, nan, 0});
  const TensorView labels = this->tensor({3}, std::vector<std::int64_t>{-1, std::int64_t{1} << 40, 0});
  const TensorView counts = this->tensor({2, 2}, std::vector<std::int64_t>(4));
  MetricSums* sums = this->constant(MetricSums{});
  this->kernels().count_top(this->stream(), {x, labels, 2, this->scalars({.rows = 3}), sums});
  this->kernels().count_confusions(this->stream(), {x, labels, counts, this->scalars({.rows = 2})});
  EXPECT_EQ(this->sums(sums).correct, 0);
  EXPECT_EQ(this->sums(sums).examples, 3);
  EXPECT_EQ(this->template read<std::int64_t>(counts), std::vector<std::int64_t>(4));
}

TYPED_TEST_P(KernelsLossesSuite, WrongArgumentsAreRefusedAtOnce) {
  const TensorView x = this->random({2, 3}, 1), other = this->random({3, 2}, 1), row = this->random({2}, 1);
  const StepScalars* scalars = this->scalars({});
  MetricSums* sums = this->constant(MetricSums{});
  Kernels& kernels = this->kernels();
  Stream& stream = this->stream();
  EXPECT_THROW(kernels.soft_cross_entropy(stream, {x, other, {}, 0, scalars, sums}), ConfigError);
  EXPECT_THROW(kernels.soft_cross_entropy(stream, {x, x, other, 0, scalars, sums}), ConfigError);
  EXPECT_THROW(kernels.cosine_loss(stream, {x, row, {}, scalars, sums}), ConfigError);
  EXPECT_THROW(kernels.cosine_loss(stream, {row, row, {}, scalars, sums}), ConfigError);
  EXPECT_THROW(kernels.element_loss(stream, {ElementLoss::kSquaredError, x, row, {}, 0, scalars, sums}),
               ConfigError);
  EXPECT_THROW(
      kernels.element_loss(
          stream, {ElementLoss::kSquaredError, x, this->result({2, 3}, DType::kU8), {}, 0, scalars, sums}),
      ConfigError);
  EXPECT_THROW(kernels.add_losses(stream, {x, scalars, sums}), ConfigError);
  EXPECT_THROW(kernels.add_losses(stream, {{row.data, Shape{}, DType::kF32}, scalars, sums}), ConfigError);
  EXPECT_THROW(kernels.softmax_backward(stream, {x, other, x}), ConfigError);
  EXPECT_THROW(kernels.count_top(stream, {x, other, 1, scalars, sums}), ConfigError);
  EXPECT_THROW(kernels.count_top(stream, {x, x, 0, scalars, sums}), ConfigError);
  EXPECT_THROW(kernels.count_confusions(stream, {x, x, this->result({2, 3}, DType::kI64), scalars}), ConfigError);
}

REGISTER_TYPED_TEST_SUITE_P(KernelsLossesSuite, SoftCrossEntropy,
                            SoftCrossEntropyOfOneHotTargetsIsThatOfClassNumbers, ElementLosses, CosineLoss,
                            CosineLossOfAlmostNothing, ElementLossesAtTheirLimits, GivenLossesAreAddedInDouble,
                            SoftmaxBackward, CountsOfTheLargest, CountsOfConfusions,
                            LabelsOutOfRangeAndNaNCountNowhere, WrongArgumentsAreRefusedAtOnce);

}  // namespace headrace::test

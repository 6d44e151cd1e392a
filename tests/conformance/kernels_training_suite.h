// What the loss and optimizer kernels of every device must compute.
#pragma once

#include "headrace/tests/conformance/kernels_fixture.h"
#include "headrace/tests/support/reference.h"
#include "headrace/tests/support/reference_optimizers.h"

namespace headrace::test {

template <typename Target>
class KernelsTrainingSuite : public KernelsFixture<Target> {
 protected:
  struct Batch {
    std::int64_t rows, classes, real;
    std::vector<float> logits;
    std::vector<std::int64_t> labels;

    Reals row(std::int64_t index) const {
      return {logits.begin() + index * classes, logits.begin() + (index + 1) * classes};
    }
  };
  static Batch batch(std::int64_t rows, std::int64_t classes, std::int64_t real, float magnitude) {
    Batch made{rows, classes, real, random_floats(rows * classes, 1), {}};
    for (float& value : made.logits) value *= magnitude;
    for (std::int64_t row = 0; row < rows; ++row) made.labels.push_back(row * 7 % classes);
    return made;
  }
  static inline const std::vector<Batch> kBatches{batch(1, 1, 1, 1),    batch(2, 2, 2, 5),    batch(32, 10, 32, 5),
                                                  batch(32, 10, 20, 1), batch(9, 100, 9, 80), batch(5, 33, 0, 1)};

  MetricSums sums(const MetricSums* on_device) {
    MetricSums values;
    this->stream().copy(&values, on_device, sizeof values);
    this->stream().synchronize();
    return values;
  }
  static TensorView as_view(MetricSums* sums) {
    return {sums, {static_cast<std::int64_t>(sizeof(MetricSums))}, DType::kU8};
  }

  template <typename Options>
  static std::vector<UpdateRange<Options>> whole(const TensorView& arena, const Options& options) {
    return {{.end = arena.elements(), .options = options}};
  }

  // Ranges of all lengths, most of them apart, each with options of its own.
  template <typename Options>
  static std::vector<UpdateRange<Options>> many_ranges(const std::vector<Options>& options,
                                                       std::int64_t alignment) {
    std::vector<UpdateRange<Options>> ranges;
    std::int64_t at = 0;
    for (std::int64_t i = 0; i < 70; ++i) {
      const std::int64_t begin = (at + alignment - 1) / alignment * alignment;
      at = begin + i * i % 23 + (i == 40 ? 3000 : 0);
      ranges.push_back({begin, at, options[static_cast<std::size_t>(i) % options.size()]});
      if (i % 3 == 0) at += 7;
    }
    return ranges;
  }

  // The parameters of the ranges, rounded; elsewhere what result() leaves.
  template <typename Options>
  static std::vector<std::uint16_t> rounded(const std::vector<float>& parameters,
                                            const std::vector<UpdateRange<Options>>& ranges) {
    std::vector<std::uint16_t> bits(parameters.size(), 0xFFFF);
    for (const auto& range : ranges) {
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        const auto at = static_cast<std::size_t>(i);
        bits[at] = nearest_bf16(parameters[at]).bits;
      }
    }
    return bits;
  }

  // One call over many ranges leaves what a call for each leaves, bit for bit, with and without a copy, and
  // nothing else is touched.
  template <typename Options, typename Submit>
  void expect_each_range(const std::vector<Options>& options, const Submit& submit) {
    for (const std::int64_t alignment : {1, 16}) {
      const auto ranges = this->many_ranges(options, alignment);
      const Shape shape{ranges.back().end + 5};
      const StepScalars* scalars = this->scalars({.learning_rates = {0.3F, 0.2F, 0.01F, 0.1F},
                                                  .corrections = {{1.7F, 2.9F}, {}, {1.3F, 3.7F}, {2.3F, 1.2F}}});
      const TensorView gradients = this->random(shape, 4);
      const auto halves = [&] {
        return this->tensor(shape, std::vector<float>(static_cast<std::size_t>(shape.elements()), 0.5F));
      };
      std::vector<std::vector<float>> left[2];
      for (const bool together : {true, false}) {
        const TensorView state[]{this->random(shape, 1), this->random(shape, 2), halves()};
        const TensorView copy = together ? this->result(shape, DType::kBF16) : TensorView{};
        const std::span all(ranges);
        for (std::size_t i = 0; i < (together ? 1 : all.size()); ++i) {
          submit({state[0], copy}, state, gradients, together ? all : all.subspan(i, 1), scalars);
        }
        for (const TensorView& view : state) left[together].push_back(this->template read<float>(view));
        if (!together) continue;
        EXPECT_EQ(this->bits(copy), rounded(left[true].front(), ranges)) << "alignment " << alignment;
      }
      EXPECT_EQ(left[0], left[1]) << "alignment " << alignment;
      const std::vector<float> before = this->template read<float>(this->random(shape, 1));
      std::size_t moved = 0, wanted = 0;
      for (std::size_t i = 0; i < before.size(); ++i) moved += before[i] != left[1][0][i];
      for (const auto& range : ranges) wanted += static_cast<std::size_t>(range.end - range.begin);
      EXPECT_EQ(moved, wanted) << "alignment " << alignment;
    }
  }

  // Several steps of an optimizer against its oracle. `submit` makes one step on the device.
  template <typename Submit, typename Step>
  void expect_steps(const Submit& submit, const Step& step) {
    constexpr std::int64_t kCount = 1003;
    const TensorView parameters = this->random({kCount}, 1), first = this->random({kCount}, 2);
    auto squares = random_floats(kCount, 3);
    for (float& value : squares) value *= value;
    const TensorView second = this->tensor({kCount}, squares);
    std::vector<Trained> expected;
    const Reals ps = this->read_reals(parameters), ms = this->read_reals(first), vs = this->read_reals(second);
    for (std::size_t i = 0; i < ps.size(); ++i) expected.push_back({ps[i], ms[i], vs[i]});
    for (std::uint64_t t = 0; t < 3; ++t) {
      const TensorView gradients = this->random({kCount}, 10 + t);
      const StepScalars values{.learning_rates = {0.3F, 0.2F, 0.01F, 0.1F},
                               .corrections = {{1.7F, 2.9F}, {1.1F, 2.1F}, {1.3F, 3.7F}, {2.3F, 1.2F}}};
      const StepScalars* scalars = this->scalars(values);
      this->run([&](Stream& stream) { submit(stream, parameters, gradients, first, second, scalars); },
                {parameters, first, second});
      const Reals gs = this->read_reals(gradients);
      for (std::size_t i = 0; i < gs.size(); ++i) expected[i] = step(expected[i], gs[i], values);
    }
    Reals wanted;
    for (const Trained& of : expected) wanted.push_back(of.parameter);
    this->expect_close(parameters, wanted, 1e-6);
  }
};
TYPED_TEST_SUITE_P(KernelsTrainingSuite);

TYPED_TEST_P(KernelsTrainingSuite, LossGradientAndCounts) {
  for (const auto& batch : this->kBatches) {
    for (const float smoothing : {0.0F, 0.2F}) {
      const TensorView logits = this->tensor({batch.rows, batch.classes}, batch.logits);
      const TensorView labels = this->tensor({batch.rows}, batch.labels);
      const TensorView dlogits = this->result({batch.rows, batch.classes});
      MetricSums* sums = this->constant(MetricSums{.loss = 0.5, .correct = 3, .examples = 4});
      const StepScalars values{.rows = batch.real, .inverse_global_rows = 1.0F / 48};
      const StepScalars* scalars = this->scalars(values);
      this->run(
          [&](Stream& stream) {
            this->kernels().softmax_cross_entropy(stream, {logits, labels, dlogits, smoothing, scalars, sums});
          },
          {dlogits, this->as_view(sums)});

      MetricSums expected{.loss = 0.5, .correct = 3, .examples = 4 + batch.real};
      Reals gradient;
      for (std::int64_t row = 0; row < batch.rows; ++row) {
        const Reals z = batch.row(row);
        const auto label = static_cast<std::size_t>(batch.labels[static_cast<std::size_t>(row)]);
        const auto loss = [&](const Reals& at) {
          return Reals{cross_entropy(at, label, static_cast<double>(smoothing))};
        };
        const bool real = row < batch.real;
        for (const double d : differences(loss, z, {real ? 1.0 / 48 : 0.0})) gradient.push_back(d);
        if (!real) continue;
        expected.loss += loss(z)[0];
        expected.correct += static_cast<std::size_t>(std::max_element(z.begin(), z.end()) - z.begin()) == label;
      }
      const std::string what = std::to_string(batch.rows) + "x" + std::to_string(batch.classes);
      this->expect_close(dlogits, gradient, 1e-5, what);
      const MetricSums got = this->sums(sums);
      EXPECT_NEAR(got.loss, expected.loss, 1e-6 * (1 + std::abs(expected.loss)) * TypeParam::slack()) << what;
      EXPECT_EQ(got.correct, expected.correct) << what;
      EXPECT_EQ(got.examples, expected.examples) << what;
      // Without a gradient the figures are the same bits.
      MetricSums* alone = this->constant(MetricSums{.loss = 0.5, .correct = 3, .examples = 4});
      this->kernels().softmax_cross_entropy(this->stream(), {logits, labels, {}, smoothing, scalars, alone});
      EXPECT_EQ(this->sums(alone).loss, got.loss) << what;
    }
  }
}

TYPED_TEST_P(KernelsTrainingSuite, TheFirstOfEqualLogitsIsThePrediction) {
  const TensorView logits = this->tensor({2, 4}, std::vector<float>{1, 3, 3, 0, 2, 2, 2, 2});
  const TensorView labels = this->tensor({2}, std::vector<std::int64_t>{1, 1});
  MetricSums* sums = this->constant(MetricSums{});
  this->kernels().softmax_cross_entropy(this->stream(), {logits, labels, {}, 0, this->scalars({.rows = 2}), sums});
  EXPECT_EQ(this->sums(sums).correct, 1);
}

TYPED_TEST_P(KernelsTrainingSuite, HugeLogitsStayFinite) {
  const TensorView logits = this->tensor({1, 3}, std::vector<float>{3e4F, -3e4F, 0});
  const TensorView labels = this->tensor({1}, std::vector<std::int64_t>{1}), dlogits = this->result({1, 3});
  MetricSums* sums = this->constant(MetricSums{});
  this->kernels().softmax_cross_entropy(
      this->stream(), {logits, labels, dlogits, 0, this->scalars({.rows = 1, .inverse_global_rows = 1}), sums});
  EXPECT_NEAR(this->sums(sums).loss, 6e4, 1e-2);
  this->expect_close(dlogits, {1, -1, 0}, 1e-6);
}

TYPED_TEST_P(KernelsTrainingSuite, LabelsOutOfRangeGiveNaNAndNoGradient) {
  for (const std::int64_t label : {std::int64_t{-1}, std::int64_t{3}, std::int64_t{1} << 40}) {
    const TensorView logits = this->random({2, 3}, 4), dlogits = this->result({2, 3});
    const TensorView labels = this->tensor({2}, std::vector<std::int64_t>{label, 0});
    MetricSums* sums = this->constant(MetricSums{});
    this->kernels().softmax_cross_entropy(
        this->stream(),
        {logits, labels, dlogits, 0.1F, this->scalars({.rows = 2, .inverse_global_rows = 1}), sums});
    EXPECT_TRUE(std::isnan(this->sums(sums).loss));
    EXPECT_EQ(this->sums(sums).examples, 2);
    const Reals gradient = this->read_reals(dlogits);
    EXPECT_EQ(Reals(gradient.begin(), gradient.begin() + 3), Reals(3));
    EXPECT_LT(gradient[3], 0);
  }
}

TYPED_TEST_P(KernelsTrainingSuite, Softmax) {
  for (const auto& batch : this->kBatches) {
    const TensorView logits = this->tensor({batch.rows, batch.classes}, batch.logits);
    const TensorView probabilities = this->result({batch.rows, batch.classes});
    this->run([&](Stream& stream) { this->kernels().softmax(stream, {logits, probabilities}); }, {probabilities});
    Reals expected;
    for (std::int64_t row = 0; row < batch.rows; ++row) {
      for (const double p : softmax(batch.row(row))) expected.push_back(p);
    }
    this->expect_close(probabilities, expected, 1e-6);
  }
}

TYPED_TEST_P(KernelsTrainingSuite, Adam) {
  for (const float decay : {0.0F, 0.1F}) {
    const AdamOptions options{.weight_decay = decay, .group = 2};
    this->expect_steps(
        [&](Stream& stream, const TensorView& p, const TensorView& g, const TensorView& m, const TensorView& v,
            const StepScalars* scalars) {
          this->kernels().adam(stream, {p, g, m, v, this->whole(p, options), scalars});
        },
        [&](const Trained& of, double gradient, const StepScalars& values) {
          return adam_step(of, gradient, options, values);
        });
  }
}

TYPED_TEST_P(KernelsTrainingSuite, Sgd) {
  for (const SgdOptions& options :
       {SgdOptions{.group = 2}, SgdOptions{.weight_decay = 0.1F}, SgdOptions{.momentum = 0.9F, .group = 3},
        SgdOptions{.momentum = 0.8F, .weight_decay = 0.05F, .nesterov = true, .group = 1}}) {
    this->expect_steps(
        [&](Stream& stream, const TensorView& p, const TensorView& g, const TensorView& velocity,
            const TensorView&, const StepScalars* scalars) {
          this->kernels().sgd(
              stream, {p, g, options.momentum == 0 ? TensorView{} : velocity, this->whole(p, options), scalars});
        },
        [&](const Trained& of, double gradient, const StepScalars& values) {
          return sgd_step(of, gradient, options, values);
        });
  }
}

TYPED_TEST_P(KernelsTrainingSuite, AdamTakesManyRangesAtOnce) {
  const std::vector<AdamOptions> options{{}, {.weight_decay = 0.1F, .group = 2}, {.epsilon = 1e-3F, .group = 3}};
  this->expect_each_range(
      options, [this](const Parameters& parameters, const TensorView* state, const TensorView& gradients,
                      std::span<const UpdateRange<AdamOptions>> ranges, const StepScalars* scalars) {
        this->kernels().adam(this->stream(), {parameters, gradients, state[1], state[2], ranges, scalars});
      });
}

TYPED_TEST_P(KernelsTrainingSuite, SgdTakesManyRangesAtOnce) {
  const std::vector<SgdOptions> options{{.momentum = 0.9F, .nesterov = true, .group = 1},
                                        {.weight_decay = 0.1F},
                                        {.momentum = 0.5F, .weight_decay = 0.2F, .group = 3}};
  this->expect_each_range(
      options, [this](const Parameters& parameters, const TensorView* state, const TensorView& gradients,
                      std::span<const UpdateRange<SgdOptions>> ranges, const StepScalars* scalars) {
        this->kernels().sgd(this->stream(), {parameters, gradients, state[1], ranges, scalars});
      });
}

TYPED_TEST_P(KernelsTrainingSuite, WrongArgumentsAreRefusedAtOnce) {
  const TensorView logits = this->random({2, 3}, 1),
                   labels = this->tensor({3}, std::vector<std::int64_t>{0, 0, 0});
  const StepScalars* scalars = this->scalars({});
  MetricSums* sums = this->constant(MetricSums{});
  EXPECT_THROW(this->kernels().softmax_cross_entropy(this->stream(), {logits, labels, {}, 0, scalars, sums}),
               ConfigError);
  EXPECT_THROW(
      this->kernels().softmax_cross_entropy(this->stream(), {logits, this->random({2}, 1), {}, 0, scalars, sums}),
      ConfigError);
  const auto sgd = [&](const SgdOptions& options, std::int64_t begin, std::int64_t end) {
    const UpdateRange<SgdOptions> ranges[]{{.end = 2}, {begin, end, options}};
    this->kernels().sgd(this->stream(), {logits, logits, {}, ranges, scalars});
  };
  EXPECT_THROW(sgd({.momentum = 0.9F}, 2, 6), ConfigError);
  EXPECT_THROW(sgd({.group = -1}, 2, 6), ConfigError);
  EXPECT_THROW(sgd({}, 1, 6), ConfigError);
  EXPECT_THROW(sgd({}, 3, 7), ConfigError);
  EXPECT_THROW(sgd({}, 3, 2), ConfigError);
  const auto adam = [&](const AdamOptions& options, const TensorView& second) {
    this->kernels().adam(this->stream(), {logits, logits, logits, second, this->whole(logits, options), scalars});
  };
  EXPECT_THROW(adam({.group = kMaxParameterGroups}, logits), ConfigError);
  EXPECT_THROW(adam({}, this->random({3, 2}, 1)), ConfigError);
  for (const TensorView& copy : {this->random({2, 3}, 1), this->result({3, 2}, DType::kBF16)}) {
    EXPECT_THROW(this->kernels().sgd(this->stream(),
                                     {{logits, copy}, logits, {}, this->whole(logits, SgdOptions{}), scalars}),
                 ConfigError);
  }
}

REGISTER_TYPED_TEST_SUITE_P(KernelsTrainingSuite, LossGradientAndCounts, TheFirstOfEqualLogitsIsThePrediction,
                            HugeLogitsStayFinite, LabelsOutOfRangeGiveNaNAndNoGradient, Softmax, Adam, Sgd,
                            AdamTakesManyRangesAtOnce, SgdTakesManyRangesAtOnce, WrongArgumentsAreRefusedAtOnce);

}  // namespace headrace::test

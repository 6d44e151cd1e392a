// What the weights of examples and the counts of scores of every device must be.
#pragma once

#include <cmath>
#include <numeric>

#include "headrace/tests/conformance/kernels_fixture.h"

namespace headrace::test {

inline constexpr std::int64_t kCountedRows = 37, kCountedReal = 33, kCountedClasses = 5;

template <typename Target>
class KernelsCountsSuite : public KernelsFixture<Target> {
 protected:
  std::vector<std::int64_t> class_numbers(std::int64_t classes = kCountedClasses) {
    std::vector<std::int64_t> numbers;
    for (std::int64_t row = 0; row < kCountedRows; ++row) numbers.push_back((row * 7 + row / 3) % classes);
    return numbers;
  }
  // From 0 to 3, a few of them 0.
  std::vector<float> row_weights() {
    auto weights = random_floats(kCountedRows, 9);
    for (float& weight : weights) weight = weight < -0.8F ? 0.0F : 1.5F * (weight + 1);
    return weights;
  }
  const StepScalars* step() { return this->scalars({.rows = kCountedReal, .inverse_global_rows = 0.125F}); }
  MetricSums sums(const MetricSums* on_device) {
    MetricSums values;
    this->stream().copy(&values, on_device, sizeof values);
    this->stream().synchronize();
    return values;
  }
  TensorView zeros(const Shape& shape) {
    return this->tensor(shape, std::vector<std::int64_t>(static_cast<std::size_t>(shape.elements())));
  }

  // Submit is given (rows, gradient, sums). Each row's gradient and loss must be those without weights, times its
  // weight; and the counts the same.
  template <typename Submit>
  void expect_weighed(const Shape& shape, const Submit& submit, const std::string& what) {
    const std::vector<float> factors = row_weights();
    const TensorView weights = this->tensor({kCountedRows}, factors), plain = this->result(shape),
                     dx = this->result(shape);
    const StepScalars* scalars = step();
    MetricSums *unweighted = this->constant(MetricSums{}), *weighted = this->constant(MetricSums{});
    submit(ExampleRows(scalars), plain, unweighted);
    this->run([&](Stream&) { submit(ExampleRows(scalars, weights), dx, weighted); }, {dx});
    Reals expected = this->read_reals(plain);
    const std::size_t width = expected.size() / kCountedRows;
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] *= static_cast<double>(factors[i / width]);
    this->expect_close(dx, expected, 1e-6, what);
    MetricSums* once = this->constant(MetricSums{});
    submit(ExampleRows(scalars, weights), TensorView{}, once);
    double loss = 0;
    for (std::int64_t row = 0; row < kCountedReal; ++row) {
      loss += static_cast<double>(factors[static_cast<std::size_t>(row)]) * loss_of_row(row, submit);
    }
    EXPECT_NEAR(sums(once).loss, loss, 1e-6 * (1 + std::abs(loss)) * Target::slack()) << what;
    EXPECT_EQ(sums(once).examples, kCountedReal) << what;
    EXPECT_EQ(sums(once).correct, sums(unweighted).correct) << what;
  }

 private:
  // The row's loss without a weight: the sum of all with a weight of 1 for this row and 0 for others.
  template <typename Submit>
  double loss_of_row(std::int64_t row, const Submit& submit) {
    std::vector<float> only(kCountedRows);
    only[static_cast<std::size_t>(row)] = 1;
    MetricSums* alone = this->constant(MetricSums{});
    submit(ExampleRows(step(), this->tensor({kCountedRows}, only)), TensorView{}, alone);
    return sums(alone).loss;
  }
};
TYPED_TEST_SUITE_P(KernelsCountsSuite);

// A row or a score with NaN is counted as wrong, whatever its label; a table of classes has no place for it.
TYPED_TEST_P(KernelsCountsSuite, NaNIsNeverRight) {
  constexpr std::int64_t kRows = 6, kClasses = 40;
  std::vector<float> values(kRows * kClasses);
  std::vector<std::int64_t> numbers(kRows), marks(values.size());
  for (std::int64_t row = 0; row < kRows; ++row) {
    numbers[static_cast<std::size_t>(row)] = row * 7;
    values[static_cast<std::size_t>(row * kClasses + row * 7)] = 1;  // right
    marks[static_cast<std::size_t>(row * kClasses + row * 7)] = 1;
  }
  // In row 0 at its label, in row 1 before and in row 2 after it.
  for (const std::int64_t at : {std::int64_t{0}, kClasses + 3, 2 * kClasses + 39}) {
    values[static_cast<std::size_t>(at)] = std::nanf("");
  }
  const TensorView x = this->tensor({kRows, kClasses}, values), labels = this->tensor({kRows}, numbers);
  const StepScalars* scalars = this->scalars({.rows = kRows, .inverse_global_rows = 1});
  MetricSums *of_loss = this->constant(MetricSums{}), *of_top = this->constant(MetricSums{});
  this->kernels().softmax_cross_entropy(this->stream(), {x, labels, {}, 0, ExampleRows(scalars), of_loss});
  this->kernels().count_top(this->stream(), {x, labels, 1, ExampleRows(scalars), of_top});
  EXPECT_EQ(this->sums(of_loss).correct, 3);
  EXPECT_TRUE(std::isnan(this->sums(of_loss).loss));
  EXPECT_EQ(this->sums(of_top).correct, 3);
  const TensorView table = this->zeros({kClasses, kClasses});
  this->kernels().count_confusions(this->stream(), {x, labels, table, scalars});
  const auto cells = this->template read<std::int64_t>(table);
  EXPECT_EQ(std::accumulate(cells.begin(), cells.end(), std::int64_t{0}), 3);
  const TensorView counts = this->zeros({kClasses, 2, 2});
  this->kernels().count_scores(this->stream(), {x, this->tensor({kRows, kClasses}, marks), counts, {}, scalars});
  const auto scores = this->template read<std::int64_t>(counts);
  EXPECT_EQ(scores[1], 1) << "a positive below the threshold";
  EXPECT_EQ(scores[3 * 4 + 2], 1) << "a negative above it";
}

TYPED_TEST_P(KernelsCountsSuite, WeightsMultiplyLossesAndGradients) {
  const Shape shape{kCountedRows, kCountedClasses};
  const TensorView x = this->random(shape, 1), shares = this->random(shape, 2);
  const TensorView numbers = this->tensor({kCountedRows}, this->class_numbers());
  Kernels& kernels = this->kernels();
  this->expect_weighed(
      shape,
      [&](const ExampleRows& rows, const TensorView& dx, MetricSums* sums) {
        kernels.softmax_cross_entropy(this->stream(), {x, numbers, dx, 0.1F, rows, sums});
      },
      "class numbers");
  this->expect_weighed(
      shape,
      [&](const ExampleRows& rows, const TensorView& dx, MetricSums* sums) {
        kernels.soft_cross_entropy(this->stream(), {x, shares, dx, 0.1F, rows, sums});
      },
      "shares");
  for (const ElementLoss loss :
       {ElementLoss::kSquaredError, ElementLoss::kBinaryFromLogits, ElementLoss::kHuber}) {
    this->expect_weighed(
        shape,
        [&](const ExampleRows& rows, const TensorView& dx, MetricSums* sums) {
          kernels.element_loss(this->stream(), {loss, x, shares, dx, 0, rows, sums});
        },
        "elements");
  }
}

// A weight of 1 changes no bit.
TYPED_TEST_P(KernelsCountsSuite, WeightsOfOneAreNone) {
  const TensorView x = this->random({kCountedRows, kCountedClasses}, 1);
  const TensorView numbers = this->tensor({kCountedRows}, this->class_numbers());
  const TensorView ones = this->tensor({kCountedRows}, std::vector<float>(kCountedRows, 1.0F));
  std::vector<std::vector<float>> gradients;
  std::vector<double> losses;
  for (const TensorView& weights : {TensorView{}, ones}) {
    const TensorView dx = this->result(x.shape);
    MetricSums* sums = this->constant(MetricSums{});
    this->kernels().softmax_cross_entropy(this->stream(), {x, numbers, dx, 0, {this->step(), weights}, sums});
    gradients.push_back(this->template read<float>(dx));
    losses.push_back(this->sums(sums).loss);
  }
  EXPECT_EQ(gradients[0], gradients[1]);
  EXPECT_EQ(losses[0], losses[1]);
}

TYPED_TEST_P(KernelsCountsSuite, LossesAndHitsAddUpWithWeights) {
  const std::vector<float> factors = this->row_weights(), given = random_floats(kCountedRows, 4);
  const TensorView weights = this->tensor({kCountedRows}, factors), losses = this->tensor({kCountedRows}, given);
  MetricSums* added = this->constant(MetricSums{});
  this->kernels().add_losses(this->stream(), {losses, {this->step(), weights}, added});
  const TensorView x = this->random({kCountedRows, kCountedClasses}, 1);
  const std::vector<std::int64_t> numbers = this->class_numbers();
  MetricSums* hits = this->constant(MetricSums{});
  this->kernels().count_top(this->stream(),
                            {x, this->tensor({kCountedRows}, numbers), 2, {this->step(), weights}, hits});
  double sum = 0, weight = 0;
  std::int64_t correct = 0;
  const Reals values = this->read_reals(x);
  for (std::size_t row = 0; row < static_cast<std::size_t>(kCountedReal); ++row) {
    sum += static_cast<double>(factors[row]) * static_cast<double>(given[row]);
    int before = 0;
    for (std::size_t k = 0; k < kCountedClasses; ++k) {
      before += values[row * kCountedClasses + k] >
                values[row * kCountedClasses + static_cast<std::size_t>(numbers[row])];
    }
    correct += before < 2;
    if (before < 2) weight += static_cast<double>(factors[row]);
  }
  EXPECT_NEAR(this->sums(added).loss, sum, 1e-6);
  EXPECT_EQ(this->sums(added).examples, kCountedReal);
  EXPECT_NEAR(this->sums(hits).loss, weight, 1e-6);
  EXPECT_EQ(this->sums(hits).correct, correct);
}

TYPED_TEST_P(KernelsCountsSuite, ExampleWeightsAreThoseOfTheirClasses) {
  for (const std::int64_t classes : {2, 5, 700}) {  // more than travel with one launch of a GPU
    const std::vector<std::int64_t> numbers = this->class_numbers(classes);
    std::vector<float> by_class, rounded, one_hot(static_cast<std::size_t>(kCountedRows * classes));
    for (std::int64_t c = 0; c < classes; ++c) by_class.push_back(0.5F + static_cast<float>(c % 11));
    for (std::size_t row = 0; row < numbers.size(); ++row) {
      rounded.push_back(static_cast<float>(numbers[row]) + 0.1F);
      one_hot[row * static_cast<std::size_t>(classes) + static_cast<std::size_t>(numbers[row])] = 1;
    }
    const std::vector<float> factors = this->row_weights();
    const TensorView given = this->tensor({kCountedRows}, factors);
    for (const TensorView& labels : {this->tensor({kCountedRows}, numbers), this->tensor({kCountedRows}, rounded),
                                     this->tensor({kCountedRows, classes}, one_hot)}) {
      for (const bool with : {false, true}) {
        const TensorView weights = this->result({kCountedRows});
        this->run(
            [&](Stream& stream) {
              this->kernels().example_weights(stream, {labels, with ? given : TensorView{}, weights, by_class});
            },
            {weights});
        const auto results = this->template read<float>(weights);
        for (std::size_t row = 0; row < results.size(); ++row) {
          const float weight = by_class[static_cast<std::size_t>(numbers[row])];
          EXPECT_EQ(results[row], with ? weight * factors[row] : weight);
        }
      }
    }
  }
  const TensorView unknown = this->tensor({3}, std::vector<std::int64_t>{-1, 2, 1});
  const TensorView weights = this->result({3});
  this->kernels().example_weights(this->stream(), {unknown, {}, weights, std::vector<float>{1, 2}});
  const auto results = this->template read<float>(weights);
  EXPECT_TRUE(std::isnan(results[0]) && std::isnan(results[1]));
  EXPECT_EQ(results[2], 2.0F);
}

TYPED_TEST_P(KernelsCountsSuite, ScoresFallIntoBuckets) {
  for (const std::int64_t columns : {1, 5}) {
    auto scores = random_floats(kCountedRows * columns, 3);
    for (float& score : scores) score = std::abs(score);
    scores[0] = 0, scores[1] = 1, scores[2] = 0.5F, scores[3] = std::nanf(""), scores[4] = 2.0F;
    const TensorView x = this->tensor({kCountedRows, columns}, scores);
    const std::vector<std::int64_t> numbers = this->class_numbers(columns == 1 ? 2 : columns);
    std::vector<float> shares;
    for (std::int64_t row = 0; row < kCountedRows; ++row) {
      for (std::int64_t k = 0; k < columns; ++k) {
        const std::int64_t number = numbers[static_cast<std::size_t>(row)];
        shares.push_back((columns == 1 ? number : number == k) ? 0.75F : 0.25F);
      }
    }
    for (const ScoreBuckets& buckets :
         {ScoreBuckets{.threshold = 0.5F}, {.threshold = 0.6F, .sigmoid = true}, {.count = 3}, {.count = 200}}) {
      std::vector<std::int64_t> expected(static_cast<std::size_t>(columns * buckets.count * 2));
      for (std::int64_t at = 0; at < kCountedReal * columns; ++at) {
        const auto i = static_cast<std::size_t>(at);
        const float p = buckets.sigmoid ? 1 / (1 + std::exp(-scores[i])) : scores[i];
        std::int64_t bucket = p > buckets.threshold ? 1 : 0;
        if (buckets.count != 2) {
          const float place = std::ceil(p * static_cast<float>(buckets.count - 1)) - 1;
          bucket = place > 0 ? std::min(buckets.count - 1, static_cast<std::int64_t>(place)) : 0;
        }
        if (std::isnan(p)) bucket = shares[i] >= 0.5F ? 0 : buckets.count - 1;
        ++expected[static_cast<std::size_t>((at % columns * buckets.count + bucket) * 2) + (shares[i] >= 0.5F)];
      }
      for (const TensorView& labels :
           {this->tensor({kCountedRows}, numbers), this->tensor({kCountedRows, columns}, shares)}) {
        const TensorView counts = this->zeros({columns, buckets.count, 2});
        const StepScalars* scalars = this->step();
        this->run(
            [&](Stream& stream) {
              this->kernels().count_scores(stream, {x, labels, counts, buckets, scalars});
            },
            {counts});
        EXPECT_EQ(this->template read<std::int64_t>(counts), expected) << buckets.count;
      }
    }
  }
}

TYPED_TEST_P(KernelsCountsSuite, WrongShapesAreRefusedAtOnce) {
  const TensorView x = this->random({3, 4}, 1), y = this->result({3, 4}), two = this->result({2});
  const TensorView numbers = this->tensor({3}, std::vector<std::int64_t>{0, 1, 2});
  const StepScalars* scalars = this->step();
  MetricSums* sums = this->constant(MetricSums{});
  Kernels& kernels = this->kernels();
  Stream& stream = this->stream();
  EXPECT_THROW(kernels.softmax_cross_entropy(stream, {x, numbers, y, 0, {scalars, two}, sums}), ConfigError);
  EXPECT_THROW(kernels.count_top(stream, {x, numbers, 1, {scalars, two}, sums}), ConfigError);
  EXPECT_THROW(kernels.count_scores(stream, {x, numbers, this->zeros({4, 2, 2}), {.count = 3}, scalars}),
               ConfigError);
  EXPECT_THROW(kernels.count_scores(stream, {x, two, this->zeros({4, 2, 2}), {}, scalars}), ConfigError);
  EXPECT_THROW(kernels.example_weights(stream, {numbers, {}, this->result({3}), std::vector<float>{}}),
               ConfigError);
  EXPECT_THROW(kernels.example_weights(stream, {numbers, {}, two, std::vector<float>{1}}), ConfigError);
  stream.synchronize();
}

REGISTER_TYPED_TEST_SUITE_P(KernelsCountsSuite, NaNIsNeverRight, WeightsMultiplyLossesAndGradients,
                            WeightsOfOneAreNone, LossesAndHitsAddUpWithWeights,
                            ExampleWeightsAreThoseOfTheirClasses, ScoresFallIntoBuckets,
                            WrongShapesAreRefusedAtOnce);

}  // namespace headrace::test

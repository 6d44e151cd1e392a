// Metrics are exact counts over examples and replicas.
#include "headrace/train/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "headrace/tests/train/score_fixture.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/model/model_state.h"

namespace headrace {
namespace {

using test::Training;
using testing::ElementsAre;

constexpr std::int64_t kCounted = 53;
constexpr std::size_t kClasses = 4;

// A user's metric: the mean of the squared distance between probabilities and labels.
class BrierScore final : public MetricFunction {
 public:
  std::string name() const override { return "brier"; }
  void check_result(const ResultInfo&) const override {}
  void check_labels(const ResultInfo&, const Field&) const override {}
  void submit(const MetricCall& call) const override {
    call.kernels.element_loss(
        call.stream, {ElementLoss::kSquaredError, call.result, call.labels, {}, 0, call.scalars, call.sums});
  }
  MetricValue value(const MetricTotals& totals) const override {
    return {.values = {mean_loss(totals.sums) * static_cast<double>(kClasses)}};
  }
};

// What a host makes of a model's probabilities.
struct Expected {
  double accuracy = 0, top_2 = 0, brier = 0, mean_absolute_error = 0;
  std::vector<double> confusions = std::vector<double>(kClasses * kClasses);
};

Expected expected_of(Model& model, const Dataset& data, const std::vector<std::int64_t>& labels) {
  const Predictions all = model.predict(data);
  Expected expected;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto label = static_cast<std::size_t>(labels[i]);
    const float* p = &all.values[i * kClasses];
    std::size_t before = 0;
    for (std::size_t k = 0; k < kClasses; ++k) {
      const double error = static_cast<double>(p[k]) - (k == label ? 1.0 : 0.0);
      before += p[k] > p[label];
      expected.brier += error * error / static_cast<double>(kCounted);
      expected.mean_absolute_error += std::abs(error) / static_cast<double>(kCounted * kClasses);
    }
    expected.accuracy += before < 1;
    expected.top_2 += before < 2;
    ++expected.confusions[label * kClasses + static_cast<std::size_t>(std::max_element(p, p + kClasses) - p)];
  }
  expected.accuracy /= static_cast<double>(kCounted);
  expected.top_2 /= static_cast<double>(kCounted);
  return expected;
}

struct Labelled {
  std::vector<float> images;
  std::vector<std::int64_t> numbers;

  Labelled() {
    Philox random({.seed = 6});
    for (std::int64_t i = 0; i < kCounted; ++i) {
      numbers.push_back(random.below(kClasses));
      for (int k = 0; k < 8; ++k) images.push_back(random.uniform() + (k == numbers.back() ? 0.4F : 0.0F));
    }
  }
  // As class numbers, or one-hot.
  Dataset dataset(bool one_hot_labels) const {
    const Dataset data = test::labelled({8}, images, numbers);
    return (one_hot_labels ? data.map(one_hot(kClasses)) : data).batch({.global_batch = 7});
  }
};

const std::vector<Metric> kMetrics{accuracy(), top_k(2), confusion_matrix()};

TEST(Metrics, AreExactWhateverTheReplicasAndTheForm) {
  const Labelled labelled;
  for (const int replicas : {1, 2, 4}) {
    for (const bool dense : {false, true}) {
      Training training(replicas);
      const Dataset data = labelled.dataset(dense);
      Model model = training.strategy.build([](Graph& g) { return g.softmax(test::small_mlp(g)); }, {.seed = 3});
      CompileOptions options{.optimizer = adam(1e-2F), .metrics = kMetrics};
      options.loss = dense ? categorical_crossentropy({.from_logits = false})
                           : sparse_categorical_crossentropy({.from_logits = false});
      if (dense) {
        options.metrics.push_back(mean_absolute_error());
        options.metrics.push_back(std::make_shared<BrierScore>());
      }
      model.compile(options);
      model.fit(data, {.epochs = 2, .verbose = 0});
      const Expected expected = expected_of(model, data, labelled.numbers);
      const Evaluation seen = model.evaluate(data);
      EXPECT_EQ(find_metric(seen.metrics, "accuracy")->number(), expected.accuracy);
      EXPECT_EQ(seen.accuracy, expected.accuracy);
      EXPECT_EQ(find_metric(seen.metrics, "top_2")->number(), expected.top_2);
      EXPECT_EQ(find_metric(seen.metrics, "confusion_matrix")->values, expected.confusions);
      EXPECT_EQ(find_metric(seen.metrics, "confusion_matrix")->shape, (Shape{4, 4}));
      EXPECT_EQ(find_metric(seen.metrics, "elsewhere"), nullptr);
      if (!dense) continue;
      // Of the probabilities, although the loss takes the logits.
      EXPECT_NEAR(find_metric(seen.metrics, "brier")->number(), expected.brier, 1e-6);
      EXPECT_NEAR(find_metric(seen.metrics, "mean_absolute_error")->number(), expected.mean_absolute_error, 1e-6);
    }
  }
}

TEST(Metrics, AreInTheHistoryTheReportsAndTheLine) {
  Training training(2);
  const Dataset data = Labelled().dataset(true);
  Model model = training.strategy.build(test::small_mlp, {.seed = 3});
  model.compile({.optimizer = adam(1e-2F),
                 .loss = categorical_crossentropy(),
                 .metrics = {top_k(2), confusion_matrix(), accuracy(), mean_squared_error()}});
  std::vector<std::string> named, validated;
  const Callback callback{.on_epoch_end = [&](const EpochReport& report, FitControl&) {
    for (const MetricValue& metric : report.metrics) named.push_back(metric.name);
    for (const MetricValue& metric : report.val_metrics) validated.push_back(metric.name);
    EXPECT_EQ(find_metric(report.metrics, "accuracy")->number(), report.accuracy);
    EXPECT_EQ(find_metric(report.val_metrics, "accuracy")->number(), *report.val_accuracy);
    double counted = 0;
    for (const double count : find_metric(report.metrics, "confusion_matrix")->values) counted += count;
    EXPECT_EQ(counted, kCounted);
  }};
  testing::internal::CaptureStdout();
  const History history = model.fit(data, {.validation = data, .callbacks = {callback}, .verbose = 2});
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_THAT(printed,
              testing::ContainsRegex("loss: [0-9.]+ - top_2: [0-9.]+ - accuracy: [0-9.]+ - mean_squared_error: "
                                     "[0-9.]+ - val_loss: [0-9.]+ - val_top_2: [0-9.]+ - val_accuracy: [0-9.]+ - "
                                     "val_mean_squared_error: [0-9.]+\n"));
  EXPECT_THAT(named, ElementsAre("top_2", "confusion_matrix", "accuracy", "mean_squared_error"));
  EXPECT_EQ(validated, named);
  for (const char* name : {"top_2", "accuracy", "mean_squared_error", "val_top_2", "val_mean_squared_error"}) {
    EXPECT_TRUE(history.has(name)) << name;
  }
  EXPECT_FALSE(history.has("confusion_matrix")) << "a list has one number an epoch";
}

// What a model learns does not depend on what is looked at.
TEST(Metrics, ChangeNoWeight) {
  Training training(2);
  const Dataset data = Labelled().dataset(false);
  const auto weights = [&](const std::vector<Metric>& metrics) {
    Model model = training.strategy.build(test::small_mlp, {.seed = 3});
    model.compile({.optimizer = adam(1e-2F), .metrics = metrics});
    model.fit(data, {.epochs = 2, .verbose = 0});
    return model.weights_sha256();
  };
  EXPECT_EQ(weights({}), weights(kMetrics));
  EXPECT_EQ(weights({}), weights({accuracy()}));
}

// The counts of the fused loss and the metric's own are the same.
TEST(Metrics, AccuracyIsThatOfTheLossThatCountsIt) {
  Training training(2);
  const Labelled labelled;
  const auto accuracies = [&](bool dense) {
    Model model = training.strategy.build(test::small_mlp, {.seed = 3});
    model.compile({.optimizer = sgd(0.0F)});
    if (dense) model.compile({.optimizer = sgd(0.0F), .loss = categorical_crossentropy()});
    return model.fit(labelled.dataset(dense), {.epochs = 2, .verbose = 0})["accuracy"];
  };
  EXPECT_EQ(accuracies(false), accuracies(true));
}

}  // namespace
}  // namespace headrace

// Metrics, and the scores of classes.
#include "headrace/tests/train/score_fixture.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/metrics.h"

namespace headrace::test {
namespace {

// Metrics are exact counts over examples and replicas.

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
    const Dataset data = labelled({8}, images, numbers);
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
      Model model = training.strategy.build([](Graph& g) { return g.softmax(small_mlp(g)); }, {.seed = 3});
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
  Model model = training.strategy.build(small_mlp, {.seed = 3});
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
  EXPECT_THAT(printed, ContainsRegex("loss: [0-9.]+ - top_2: [0-9.]+ - accuracy: [0-9.]+ - mean_squared_error: "
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
    Model model = training.strategy.build(small_mlp, {.seed = 3});
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
    Model model = training.strategy.build(small_mlp, {.seed = 3});
    model.compile({.optimizer = sgd(0.0F)});
    if (dense) model.compile({.optimizer = sgd(0.0F), .loss = categorical_crossentropy()});
    return model.fit(labelled.dataset(dense), {.epochs = 2, .verbose = 0})["accuracy"];
  };
  EXPECT_EQ(accuracies(false), accuracies(true));
}

// Precision, recall, F1 and areas under curves: equal to their definitions on a model's predictions, exactly,
// whatever the replicas.

constexpr std::int64_t kScoredCount = 90;
constexpr std::size_t kScoredClasses = 4;

struct Scored {
  std::vector<double> scores;  // by example and class
  std::vector<int> positive;
};

// By class: hits, predictions, examples.
struct Counts {
  std::vector<double> hits, predicted, examples;
};

Counts counts_of(const Scored& of, std::size_t classes, double threshold) {
  Counts counts{std::vector<double>(classes), std::vector<double>(classes), std::vector<double>(classes)};
  for (std::size_t i = 0; i < of.scores.size(); ++i) {
    const bool above = of.scores[i] > threshold;
    counts.predicted[i % classes] += above ? 1 : 0;
    counts.examples[i % classes] += of.positive[i];
    counts.hits[i % classes] += above && of.positive[i] != 0 ? 1 : 0;
  }
  return counts;
}

// The largest of each row is the prediction.
Scored by_largest(const Scored& of) {
  Scored largest{std::vector<double>(of.scores.size()), of.positive};
  for (std::size_t row = 0; row < of.scores.size(); row += kScoredClasses) {
    const auto* begin = of.scores.data() + row;
    largest.scores[row + static_cast<std::size_t>(std::max_element(begin, begin + kScoredClasses) - begin)] = 1;
  }
  return largest;
}

double f1(double hits, double predicted, double examples) {
  return predicted + examples > 0 ? 2 * hits / (predicted + examples) : 0;
}

std::vector<double> f1_by_class(const Counts& of) {
  std::vector<double> values;
  for (std::size_t c = 0; c < of.hits.size(); ++c)
    values.push_back(f1(of.hits[c], of.predicted[c], of.examples[c]));
  return values;
}

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

// The area that ranks give, exact for any scores: how often a positive example is above a negative one.
double area_by_ranks(const Scored& of, std::size_t classes, std::size_t c) {
  double above = 0, pairs = 0;
  for (std::size_t i = c; i < of.scores.size(); i += classes) {
    for (std::size_t k = c; k < of.scores.size(); k += classes) {
      if (of.positive[i] == 0 || of.positive[k] != 0) continue;
      pairs += 1;
      above += of.scores[i] > of.scores[k] ? 1 : of.scores[i] == of.scores[k] ? 0.5 : 0;
    }
  }
  return above / pairs;
}

const std::vector<double>& values_of(const Evaluation& evaluation, const std::string& name) {
  return find_metric(evaluation.metrics, name)->values;
}

Dataset multiclass() { return blobs(kScoredCount, {8}, kScoredClasses, 7).batch({.global_batch = 16}); }

Model scored_model(Training& training, const Net& net, const Loss& loss, const std::vector<Metric>& metrics) {
  Model model = training.strategy.build(net, {.seed = 3});
  model.compile({.optimizer = sgd(0.02F), .loss = loss, .metrics = metrics});
  return model;
}

TEST(ClassScores, OfSeveralClassesAreThoseOfThePredictions) {
  for (const int replicas : {1, 2, 4}) {
    for (const bool logits : {true, false}) {
      Training training(replicas);
      const Net net = [&](Graph& g) { return logits ? small_mlp(g) : g.softmax(small_mlp(g)); };
      const Loss loss = sparse_categorical_crossentropy({.from_logits = logits});
      const auto evaluated = [&](const Metric& metric) {
        Model model = scored_model(training, net, loss, {metric});
        model.fit(multiclass(), {.verbose = 0});
        return model.evaluate(multiclass());
      };
      Model model = scored_model(training, net, loss, {});
      model.fit(multiclass(), {.verbose = 0});
      const Predictions all = model.predict(multiclass());
      Scored scored;
      std::vector<std::int64_t> labels;
      Loader loader(blobs(kScoredCount, {8}, kScoredClasses, 7).batch({.global_batch = kScoredCount}),
                    training.devices);
      for (std::size_t row = 0; row < kScoredCount; ++row) {
        const float* z = &all.values[row * kScoredClasses];
        double sum = 0;
        for (std::size_t k = 0; k < kScoredClasses; ++k) sum += std::exp(static_cast<double>(z[k]));
        for (std::size_t k = 0; k < kScoredClasses; ++k) {
          scored.scores.push_back(logits ? std::exp(static_cast<double>(z[k])) / sum : static_cast<double>(z[k]));
        }
      }
      Philox random({.seed = 7});  // as blobs() draws
      for (std::size_t row = 0; row < kScoredCount; ++row) {
        const auto label = random.below(kScoredClasses);
        for (int k = 0; k < 8; ++k) (void)random.uniform();
        for (std::size_t k = 0; k < kScoredClasses; ++k) scored.positive.push_back(k == label ? 1 : 0);
      }
      const Counts counts = counts_of(by_largest(scored), kScoredClasses, 0.5);
      const std::vector<double> f1s = f1_by_class(counts);
      const auto close = [](const std::vector<double>& to) { return Pointwise(DoubleNear(1e-12), to); };
      EXPECT_THAT(values_of(evaluated(f1_score({.average = Average::kNone})), "f1_score"), close(f1s));
      EXPECT_THAT(values_of(evaluated(f1_score()), "f1_score"), close({sum_of(f1s) / kScoredClasses}));
      double weighted = 0;
      for (std::size_t c = 0; c < kScoredClasses; ++c) weighted += f1s[c] * counts.examples[c] / kScoredCount;
      EXPECT_THAT(values_of(evaluated(f1_score({.average = Average::kWeighted})), "f1_score"), close({weighted}));
      const Evaluation micro = evaluated(precision({.average = Average::kMicro}));
      EXPECT_THAT(values_of(micro, "precision"), close({sum_of(counts.hits) / kScoredCount}));
      EXPECT_THAT(values_of(evaluated(recall({.average = Average::kNone})), "recall").at(1),
                  DoubleNear(counts.hits[1] / counts.examples[1], 1e-12));
      const Counts above = counts_of(scored, kScoredClasses, 0.3);
      EXPECT_THAT(values_of(evaluated(f1_score({.average = Average::kNone, .threshold = 0.3F})), "f1_score"),
                  close(f1_by_class(above)));
      const auto areas = values_of(evaluated(auc({.thresholds = 50'000, .average = Average::kNone})), "auc");
      for (std::size_t c = 0; c < kScoredClasses; ++c)
        EXPECT_NEAR(areas[c], area_by_ranks(scored, kScoredClasses, c), 2e-3) << c;
    }
  }
}

// Keras's values for these predictions and 200 thresholds (tests/peers compares more of them).
TEST(ClassScores, OfTwoClassesAreKeras) {
  const std::vector<float> p{0.1F, 0.4F, 0.35F, 0.8F, 0.8F, 0.02F, 0.55F, 0.6F};
  const std::vector<std::int64_t> labels{0, 0, 1, 1, 0, 0, 1, 1};
  for (const int replicas : {1, 2}) {
    for (const bool sigmoid : {true, false}) {
      Training training(replicas);
      std::vector<float> logits;
      for (const float value : p) logits.push_back(std::log(value / (1 - value)));
      Model model = training.strategy.build([&](Graph& g) {
        const Node x = g.dense(g.input("image", {1}), 1, {.name = "out"});
        return sigmoid ? g.sigmoid(x) : x;
      });
      model.write_variable("out/weights", std::vector<float>{1});
      model.compile({.optimizer = sgd(0.0F),
                     .loss = binary_crossentropy({.from_logits = !sigmoid}),
                     .metrics = {precision(), recall(), f1_score({.threshold = 0.5F}), auc(),
                                 auc({.curve = AucCurve::kPrecisionRecall})}});
      const Evaluation seen = model.evaluate(labelled({1}, logits, labels).batch({.global_batch = 3}));
      EXPECT_EQ(values_of(seen, "precision").front(), 3.0 / 4);
      EXPECT_EQ(values_of(seen, "recall").front(), 3.0 / 4);
      EXPECT_EQ(values_of(seen, "f1_score").front(), 3.0 / 4);
      EXPECT_NEAR(values_of(seen, "auc").front(), 0.71875, 1e-9);
      EXPECT_NEAR(values_of(seen, "pr_auc").front(), 0.61055254, 1e-6);
    }
  }
}

TEST(ClassScores, AreInFilesAndRefuseWhatDoesNotFit) {
  Training training(1);
  const TempFolder folder;
  const std::vector<Metric> metrics{precision({.average = Average::kNone, .threshold = 0.25F}), recall(),
                                    f1_score(), auc({.thresholds = 20}),
                                    auc({.curve = AucCurve::kPrecisionRecall})};
  Model model = scored_model(training, small_mlp, sparse_categorical_crossentropy(), metrics);
  const Evaluation before = model.evaluate(multiclass());
  save_model(model, folder / "model.safetensors", std::nullopt);
  const Evaluation after = restore_model(training.strategy, folder / "model.safetensors").evaluate(multiclass());
  ASSERT_EQ(before.metrics.size(), after.metrics.size());
  for (std::size_t i = 0; i < after.metrics.size(); ++i) {
    EXPECT_EQ(before.metrics[i].name, after.metrics[i].name);
    EXPECT_EQ(before.metrics[i].values, after.metrics[i].values);
  }
  EXPECT_THROW(precision({.threshold = 2.0F}), ConfigError);
  EXPECT_THROW(auc({.thresholds = 2}), ConfigError);
  EXPECT_THROW(scored_model(training,
                            [](Graph& g) {
                              return g.conv(g.input("image", {4, 4, 2}), 3);
                            },
                            mean_squared_error(), {auc()}),
               ConfigError);
}

}  // namespace
}  // namespace headrace::test

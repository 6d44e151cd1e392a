// Precision, recall, F1 and areas under curves: equal to their definitions on a model's predictions, exactly,
// whatever the replicas.
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/checkpoints.h"

namespace headrace::test {
namespace {

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

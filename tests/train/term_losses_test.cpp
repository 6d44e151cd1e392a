// Losses of terms, and labels that are mixed.
#include "headrace/pipeline/loader.h"
#include "headrace/tests/support/reference.h"
#include "headrace/tests/train/score_fixture.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/records/record.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

// Each term of a loss of several is reported by itself, without its weight: as an exact mean over the epoch.

Results two_regressions(Graph& g) {
  const Node x = g.dense(g.input("image", {5}), 6, {.activation = Activation::kGelu, .name = "features"});
  return {g.dense(x, 3, {.name = "left"}), g.dense(x, 3, {.name = "right"})};
}

Node one_regression(Graph& g) { return g.dense(g.input("image", {5}), 3, {.name = "out"}); }

Dataset regression_data() { return float_data(53, 5, 3).dataset().batch({.global_batch = 8}); }

std::vector<std::string> names_of(const std::vector<MetricValue>& values) {
  std::vector<std::string> names;
  for (const MetricValue& value : values) names.push_back(value.name);
  return names;
}

class TermLossesTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(R, TermLossesTest, testing::Values(1, 2, 4));

// With a last batch that is smaller, on replicas some of which have no example of it.
TEST_P(TermLossesTest, AddUpToTheLossAndEqualThoseOfEachAlone) {
  Training training(GetParam());
  const Dataset data = regression_data();
  Model model = training.strategy.build(two_regressions, {.seed = 3});
  const Loss left = mean_squared_error(), right = mean_absolute_error().of("right");
  const Loss of_right = categorical_crossentropy().of("right");
  model.compile({.optimizer = sgd(0.05F), .loss = 0.25F * left + 2 * right + 0.5F * of_right, .metrics = {}});
  const std::vector<std::string> names{"left_loss", "right_mean_absolute_error_loss",
                                       "right_categorical_crossentropy_loss"};
  const Evaluation all = model.evaluate(data);
  EXPECT_EQ(names_of(all.metrics), names);
  EXPECT_NEAR(all.loss,
              0.25 * all.metrics[0].number() + 2 * all.metrics[1].number() + 0.5 * all.metrics[2].number(), 1e-12);
  std::vector<double> alone;
  for (const Loss& loss : {left, right, of_right}) {
    model.compile({.loss = loss, .metrics = {}});
    const Evaluation evaluation = model.evaluate(data);
    EXPECT_TRUE(evaluation.metrics.empty()) << "the loss of one term is the loss";
    alone.push_back(evaluation.loss);
  }
  for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(all.metrics[i].number(), alone[i]) << names[i];
}

TEST_P(TermLossesTest, AreInReportsHistoryAndCustomLoops) {
  Training training(GetParam());
  const Dataset data = regression_data();
  const auto compiled = [&] {
    Model model = training.strategy.build(two_regressions, {.seed = 3});
    model.compile({.optimizer = sgd(0.05F),
                   .loss = 0.5F * mean_squared_error() + mean_squared_error().of("right"),
                   .metrics = {mean_absolute_error()}});
    return model;
  };
  Model fitted = compiled(), looped = compiled();
  std::vector<double> steps;
  const Callback callback{
      .on_step = [&](const StepReport& report,
                     FitControl&) { steps.push_back(find_metric(report.metrics, "left_loss")->number()); },
      .every_steps = 7,
      .on_epoch_end =
          [&](const EpochReport& report, FitControl&) {
            EXPECT_THAT(names_of(report.metrics), ElementsAre("mean_absolute_error", "left_loss", "right_loss"));
            EXPECT_EQ(names_of(report.val_metrics), names_of(report.metrics));
          }};
  const History history =
      fitted.fit(data, {.epochs = 2, .validation = data, .callbacks = {callback}, .verbose = 0});
  for (std::size_t epoch = 0; epoch < 2; ++epoch) {
    for (const char* prefix : {"", "val_"}) {
      const auto value = [&](const char* name) { return history[std::string(prefix) + name][epoch]; };
      EXPECT_NEAR(value("loss"), 0.5 * value("left_loss") + value("right_loss"), 1e-12);
    }
  }
  EXPECT_THAT(steps, ElementsAre(history["left_loss"][0], history["left_loss"][1])) << "of whole epochs";
  Loader loader(data, training.devices);
  Trainer trainer(training.strategy, looped, loader);
  while (trainer.step()) {
  }
  trainer.finish();
  EXPECT_EQ(find_metric(trainer.metrics(), "left_loss")->number(), history["left_loss"][0]);
  EXPECT_EQ(find_metric(trainer.metrics(), "right_loss")->number(), history["right_loss"][0]);
}

TEST(TermLosses, OfOneOutputAreNamedByTheirFunctions) {
  Training training(1);
  Model model = training.strategy.build(one_regression, {.seed = 3});
  const Loss squared = mean_squared_error();
  model.compile({.loss = 0.7F * squared + 0.3F * mean_absolute_error() + squared, .metrics = {}});
  EXPECT_THAT(
      names_of(model.evaluate(regression_data()).metrics),
      ElementsAre("out_mean_squared_error_loss", "out_mean_absolute_error_loss", "out_mean_squared_error_2_loss"));
}

// A checkpoint's name and the choice of the best may ask for one, and for an output's metric.
TEST(TermLosses, ChooseTheBestCheckpoint) {
  Training training(1);
  for (const std::string best : {"right_loss", "val_left_loss", "right/mean_absolute_error"}) {
    const TempFolder folder;
    Model model = training.strategy.build(two_regressions, {.seed = 3});
    model.compile({.optimizer = sgd(0.05F),
                   .loss = mean_squared_error() + mean_squared_error().of("right"),
                   .metrics = {Metric(mean_absolute_error()).of("right")}});
    const History history = model.fit(
        regression_data(),
        {.epochs = 3,
         .validation = regression_data(),
         .verbose = 0,
         .checkpoints = CheckpointOptions{.folder = folder.path(), .name = "{epoch}", .keep = 1, .best = best}});
    const Record record(folder / "best.safetensors");
    EXPECT_EQ(record.training()->position.best, std::ranges::min(history[best])) << best;
  }
}

// A metric that is called as a term would be.
class Impostor final : public MetricFunction {
 public:
  std::string name() const override { return "left_loss"; }
  void check_result(const ResultInfo&) const override {}
  void check_labels(const ResultInfo&, const Field&) const override {}
  void submit(const MetricCall&) const override {}
  MetricValue value(const MetricTotals&) const override { return {}; }
};

TEST(TermLosses, HaveNamesOfTheirOwn) {
  Training training(1);
  Model model = training.strategy.build(two_regressions);
  EXPECT_THAT(error_of<ConfigError>([&] {
                model.compile({.loss = mean_squared_error() + mean_squared_error().of("right"),
                               .metrics = {std::make_shared<Impostor>()}});
              }).what(),
              HasSubstr("'left_loss'"));
}

// one_hot, mixup and cutmix from the data set to the weights, against a hand-written softmax regression in double.

constexpr std::int64_t kPixels = 4 * 4 * 1;
constexpr std::size_t kKinds = 4;
constexpr int kPasses = 3;
constexpr double kRate = 0.2;

Dataset mixed(const Operations& mixing) {
  return blobs(53, {4, 4, 1}, kKinds).map(one_hot(kKinds)).shuffle().batch({.global_batch = 16}).map(mixing);
}

// Logits = weights x + bias, as the net below.
struct Regression {
  std::vector<Reals> weights = std::vector<Reals>(kKinds, Reals(kPixels));
  Reals bias = Reals(kKinds);
  std::vector<double> losses = {};  // of each pass
  bool blended = false;             // a label that is not 0 or 1 was seen

  // Plain gradient descent on the stream that a fit of this data sees.
  void train(const Dataset& data) {
    DeviceGroup cpu = open_devices("cpu:1");
    Loader loader(data, cpu, {.epochs = kPasses});
    double sum = 0, examples = 0;
    while (std::optional<Batch> batch = loader.next(0)) {
      batch->ready().wait();
      sum += step(*batch);
      examples += static_cast<double>(batch->examples());
      if (!batch->position().last_of_epoch) continue;
      losses.push_back(sum / examples);
      sum = examples = 0;
    }
  }

  double step(const Batch& batch) {
    std::vector<Reals> moves = weights;
    Reals bias_moves = bias;
    double loss = 0;
    for (std::int64_t row = 0; row < batch.examples(); ++row) {
      const float* x = batch.tensor("image").as<float>() + row * kPixels;
      const float* t = batch.tensor("label").as<float>() + row * static_cast<std::int64_t>(kKinds);
      Reals logits = bias;
      for (std::size_t k = 0; k < kKinds; ++k) {
        for (std::size_t i = 0; i < kPixels; ++i) logits[k] += weights[k][i] * static_cast<double>(x[i]);
      }
      const Reals p = softmax(logits), targets(t, t + kKinds);
      loss += soft_cross_entropy(logits, targets, 0);
      for (std::size_t k = 0; k < kKinds; ++k) {
        const double slope = (p[k] - targets[k]) / static_cast<double>(batch.examples());
        for (std::size_t i = 0; i < kPixels; ++i) moves[k][i] -= kRate * slope * static_cast<double>(x[i]);
        bias_moves[k] -= kRate * slope;
        blended = blended || (t[k] > 0.01F && t[k] < 0.99F);
      }
    }
    weights = moves;
    bias = bias_moves;
    return loss;
  }
};

void expect_regression(const Dataset& data, bool blends) {
  Regression expected;
  for (const int replicas : {1, 2, 3}) {
    Training training(replicas);
    Model model = training.strategy.build(
        [](Graph& g) {
          return g.dense(g.flatten(g.input("image", {4, 4, 1})), kKinds);
        },
        {.seed = 3});
    model.compile({.optimizer = sgd(static_cast<float>(kRate)), .loss = categorical_crossentropy()});
    if (replicas == 1) {
      const std::vector<float> first = model.read_variable("dense/weights");
      for (std::size_t i = 0; i < first.size(); ++i) expected.weights[i / kPixels][i % kPixels] = first[i];
      expected.train(data);
      EXPECT_EQ(expected.blended, blends);
    }
    const History history = model.fit(data, {.epochs = kPasses, .verbose = 0});
    ASSERT_EQ(expected.losses.size(), history["loss"].size());
    for (std::size_t i = 0; i < expected.losses.size(); ++i) {
      EXPECT_NEAR(history["loss"][i], expected.losses[i], 1e-5 * slack());
    }
    EXPECT_LT(history["loss"].back(), history["loss"].front()) << "it learns";
    const std::vector<float> weights = model.read_variable("dense/weights");
    for (std::size_t i = 0; i < weights.size(); ++i) {
      EXPECT_NEAR(weights[i], expected.weights[i / kPixels][i % kPixels], 1e-5 * slack());
    }
    const std::vector<float> bias = model.read_variable("dense/bias");
    for (std::size_t k = 0; k < kKinds; ++k) EXPECT_NEAR(bias[k], expected.bias[k], 1e-5 * slack());
  }
}

TEST(MixedLabels, MixupTrainsAsByHand) { expect_regression(mixed(mixup({.alpha = 1})), true); }
TEST(MixedLabels, CutmixTrainsAsByHand) { expect_regression(mixed(cutmix()), true); }
TEST(MixedLabels, OneHotTrainsAsByHand) {
  expect_regression(blobs(53, {4, 4, 1}, kKinds).map(one_hot(kKinds)).shuffle().batch({.global_batch = 16}),
                    false);
}
TEST(MixedLabels, SmoothedLabelsTrainAsByHand) {
  expect_regression(blobs(53, {4, 4, 1}, kKinds).map(one_hot(kKinds, 0.2F)).batch({.global_batch = 16}), true);
}

// Class numbers and their one-hot forms are the same training.
TEST(MixedLabels, OneHotIsTheSameAsClassNumbers) {
  Training training(2);
  const auto losses = [&](bool dense) {
    Model model = training.strategy.build(small_mlp, {.seed = 3});
    model.compile({.optimizer = adam(1e-2F)});
    if (dense) model.compile({.optimizer = adam(1e-2F), .loss = categorical_crossentropy()});
    const Dataset data = blobs(53);
    return model.fit((dense ? data.map(one_hot(4)) : data).batch({.global_batch = 16}),
                     {.epochs = 3, .verbose = 0})["loss"];
  };
  const std::vector<double> numbers = losses(false), shares = losses(true);
  for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_NEAR(numbers[i], shares[i], 1e-6 * slack());
}

}  // namespace
}  // namespace headrace::test

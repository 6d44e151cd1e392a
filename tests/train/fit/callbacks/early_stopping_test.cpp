#include "headrace/tests/train/fit/callbacks/watched_fit.h"
#include "headrace/train/checkpoints.h"

namespace headrace::test {
namespace {

class EarlyStoppingTest : public testing::Test {
 protected:
  std::size_t epochs(const EarlyStoppingOptions& options, const std::vector<double>& losses) {
    return report_losses(early_stopping(options), model_, losses);
  }

  Training training_{1};
  Model model_ = compiled(training_.strategy, small_mlp);
};

TEST_F(EarlyStoppingTest, WaitsAsManyEpochsAsItIsToldTo) {
  const std::vector<double> losses = {5, 4, 4.5, 4.2, 3, 3.5, 3.4, 3.3, 3.2, 3.1};
  EXPECT_EQ(epochs({.patience = 0}, losses), 3U);
  EXPECT_EQ(epochs({.patience = 1}, losses), 3U);
  EXPECT_EQ(epochs({.patience = 3}, losses), 8U);
  EXPECT_EQ(epochs({.patience = 6}, losses), losses.size());
}

TEST_F(EarlyStoppingTest, CountsWhatIsBetterByEnough) {
  EXPECT_EQ(epochs({.patience = 2, .min_delta = 0.5}, {5, 4.6, 4.55, 4.4, 4.3}), 3U) << "nothing is 0.5 below 5";
  EXPECT_EQ(epochs({.patience = 2, .min_delta = 0.5}, {5, 4.6, 4.4, 4.3, 4.2}), 5U);
  EXPECT_EQ(epochs({.patience = 2, .mode = Better::kHigher}, {1, 2, 3, 3, 3, 9}), 5U);
}

TEST_F(EarlyStoppingTest, NeverTakesWhatIsNotFiniteForBetter) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(epochs({.patience = 3}, {nan, inf, -inf, 1, 1}), 3U);
  EXPECT_EQ(epochs({.patience = 2}, {5, nan, 4, nan, nan, 1}), 5U);
}

// A metric of so many sums, the mean of which is its value: of several, it has no single one.
Metric summed(const std::string& name, Better better, int sums = 1) {
  return host_metric({.name = name,
                      .sums = sums,
                      .add = [](const HostBatch&, std::span<double> into) { into[0] += 1; },
                      .value =
                          [](std::span<const double> from) {
                            MetricValue value{.values = {from.begin(), from.end()}};
                            if (from.size() > 1) value.shape = Shape{static_cast<std::int64_t>(from.size())};
                            return value;
                          },
                      .better = better});
}

// What is watched says which way is better; what does not is refused when the fit begins, and so is what it lacks.
TEST_F(EarlyStoppingTest, KnowsWhichWayIsBetterOrAsks) {
  model_.compile({.metrics = {accuracy(), top_k(2), auc(), precision(), accuracy().weighted(),
                              sparse_categorical_crossentropy(), summed("loss_acc", Better::kHigher),
                              summed("accurate", Better::kLower), summed("unsaid", Better::kAuto),
                              summed("table", Better::kHigher, 2), confusion_matrix()}});
  const std::vector<HistoryList> lists = history_lists(model_, true, true);
  const auto stops = [&](const std::string& name, Better mode = Better::kAuto) {
    Monitor monitor("early_stopping", name, "EarlyStoppingOptions::mode", mode);
    monitor.begin(lists);
    monitor.improves(0.5);
    return !monitor.improves(0.6);
  };
  for (const std::string name : {"accuracy", "top_2", "auc", "precision", "weighted_accuracy", "loss_acc"}) {
    EXPECT_FALSE(stops(name)) << name;
    EXPECT_FALSE(stops("val_" + name)) << name;
    EXPECT_TRUE(stops(name, Better::kLower)) << name;
  }
  for (const std::string name : {"loss", "sparse_categorical_crossentropy", "accurate"}) {
    EXPECT_TRUE(stops(name)) << name;
    EXPECT_TRUE(stops("val_" + name)) << name;
    EXPECT_FALSE(stops(name, Better::kHigher)) << name;
  }
  EXPECT_TRUE(stops("seconds"));
  EXPECT_FALSE(stops("examples_per_second"));
  EXPECT_FALSE(stops("val_unsaid", Better::kHigher));

  const Dataset data = blobs(16).batch({.global_batch = 8});
  const auto message = [&](const FitOptions& given, bool validated) {
    FitOptions options = given;
    options.verbose = 0;
    if (validated) options.validation = data;
    const std::uint64_t before = model_.global_step();
    try {
      model_.fit(data, options);
    } catch (const ConfigError& error) {
      EXPECT_EQ(model_.global_step(), before) << error.what();
      return std::string(error.what());
    }
    return std::string("no ConfigError");
  };
  const TempFolder folder;
  const auto watched = [&](const std::string& name, bool validated = true) {
    const CheckpointOptions best{.folder = folder / name, .best = name};
    return message({.callbacks = {early_stopping({.monitor = name})}}, validated) +
           message({.callbacks = {reduce_lr_on_plateau({.monitor = name})}}, validated) +
           message({.checkpoints = best}, validated);
  };
  const auto thrice = [](const std::string& what) { return ContainsRegex(what + ".*" + what + ".*" + what); };
  EXPECT_THAT(watched("val_unsaid"), AllOf(thrice("mode = max"), thrice("mode = min")));
  EXPECT_THAT(watched("gradient_norm"), thrice("does not have"));
  EXPECT_THAT(watched("learning_rate"), thrice("mode = max"));
  EXPECT_THAT(watched("confusion_matrix"), thrice("does not have"));
  EXPECT_THAT(watched("val_los"), AllOf(thrice("'val_los'"), thrice("it has loss, accuracy, top_2")));
  EXPECT_THAT(watched("val_loss", false), thrice("fit with a validation"));
  try {  // only its value says so
    model_.fit(data, {.callbacks = {early_stopping({.monitor = "table"})}, .verbose = 0});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("not one number"));
  }
  model_.compile({.metrics = {summed("seconds", Better::kLower)}});
  EXPECT_THAT(message({}, false), HasSubstr("two lists called 'seconds'"));
}

// The record ends with the variables that the model has in memory.
TEST_F(EarlyStoppingTest, TheRecordHasTheWeightsThatAreRestored) {
  const Dataset data = blobs(40).batch({.global_batch = 8});
  std::vector<float> corners(32);  // with wrong labels: the more is learned, the worse
  for (std::size_t i = 0; i < 4; ++i) corners[8 * i + i] = corners[8 * i + i + 4] = 1;
  const Dataset other = labelled({8}, corners, {1, 2, 3, 0}).batch({.global_batch = 4});
  const TempFolder folder;
  for (const int patience : {1, 10}) {  // ended by it, and after all epochs
    Model model = compiled(training_.strategy, small_mlp, adam(0.1F));
    const History history =
        model.fit(data, {.epochs = 6,
                         .validation = other,
                         .callbacks = {early_stopping({.patience = patience, .restore_best_weights = true})},
                         .verbose = 0,
                         .checkpoints = CheckpointOptions{.folder = folder / std::to_string(patience),
                                                          .record = folder / "record.safetensors"}});
    const std::vector<double>& losses = history["val_loss"];
    ASSERT_LT(*std::ranges::min_element(losses), losses.back());
    Model record = restore_model(training_.strategy, folder / "record.safetensors");
    EXPECT_EQ(record.weights_sha256(), model.weights_sha256()) << patience;
    EXPECT_EQ(record.evaluate(other).loss, *std::ranges::min_element(losses)) << patience;
    Model checkpoint = restore_model(training_.strategy, *newest_checkpoint(folder / std::to_string(patience)));
    EXPECT_EQ(checkpoint.evaluate(other).loss, losses.back()) << "it goes on from there";
  }
}

TEST_F(EarlyStoppingTest, PassesOverAnEpochThatWasStopped) {
  const Callback callback = early_stopping();
  FitControl control(model_);
  EXPECT_NO_THROW(callback.on_epoch_end({.steps = 3, .planned_steps = 10, .loss = 1}, control));
}

TEST_F(EarlyStoppingTest, RefusesWhatCannotBe) {
  EXPECT_THROW(early_stopping({.patience = -1}), ConfigError);
  EXPECT_THROW(early_stopping({.min_delta = -0.1}), ConfigError);
}

// With all that an optimizer keeps beside the weights; the best epoch is the second.
TEST_F(EarlyStoppingTest, GivesTheBestWeightsBack) {
  model_.compile({.optimizer = with_all_around(adam(0.1F))});
  std::vector<std::string> names = model_.variable_names();
  for (const std::string& name : model_.optimizer_variable_names()) {
    if (name.ends_with(":slow") || name.ends_with(":average")) names.push_back(name);
  }
  ASSERT_GT(names.size(), model_.variable_names().size());
  const auto read = [&] {
    std::vector<std::vector<float>> values;
    for (const std::string& name : names) values.push_back(model_.read_variable(name));
    return values;
  };
  std::vector<std::vector<float>> best;
  const std::vector<double> losses = {3, 1, 2, 4};
  const Callback stop = early_stopping({.patience = 5, .restore_best_weights = true});
  Callback chosen = stop;
  chosen.on_epoch_end = [&](const EpochReport& report, FitControl& control) {
    if (report.epoch == 1) best = read();
    EpochReport changed = report;
    changed.val_loss = losses[static_cast<std::size_t>(report.epoch)];
    stop.on_epoch_end(changed, control);
  };
  const Dataset data = blobs(40).batch({.global_batch = 8});
  model_.fit(data, {.epochs = 4, .validation = data, .callbacks = {chosen}, .verbose = 0});
  EXPECT_EQ(read(), best);
}

// The best, the waiting and the best weights go through a checkpoint; a fit after the resumed one begins anew.
TEST_F(EarlyStoppingTest, GoesOnFromWhatItSaved) {
  const EarlyStoppingOptions options{.patience = 3, .restore_best_weights = true};
  const Callback first = early_stopping(options);
  const std::vector<std::vector<float>> best = variables_of(model_);
  EXPECT_EQ(report_losses(first, model_, {2, 3, 3}), 3U);
  const std::string state = first.save();

  for (const std::string& name : model_.variable_names()) {
    std::vector<float> values = model_.read_variable(name);
    for (float& value : values) value += 1;
    model_.write_variable(name, values);
  }
  const Callback second = early_stopping(options);
  second.restore(state);
  EXPECT_EQ(report_losses(second, model_, {2.5, 1, 1}), 1U) << "two epochs were waited before";
  EXPECT_EQ(variables_of(model_), best) << "those of the first program, bit for bit";
  EXPECT_EQ(report_losses(second, model_, {2.5, 1, 2, 2, 2}), 5U) << "another fit";

  const Callback ended = early_stopping(options);
  report_losses(ended, model_, {1, 2, 2, 2});
  second.restore(ended.save());
  EXPECT_EQ(report_losses(second, model_, {0.5}), 0U) << "it had asked for the end";

  for (const char* damaged : {"", "{}", R"({"best": "x", "waited": 0, "variables": []})",
                              R"({"best": 1, "waited": 0, "variables": [["dense/bias", "###="]]})",
                              R"({"best": 1, "waited": 0, "variables": [["dense/bias", "AAA="]]})"}) {
    EXPECT_THROW(second.restore(damaged), ConfigError) << damaged;
  }
}

}  // namespace
}  // namespace headrace::test

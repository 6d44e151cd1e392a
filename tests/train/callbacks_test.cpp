// Callbacks, progress and the history.
#include "headrace/train/callbacks.h"
#include "headrace/tests/support/test.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/fit/callback_list.h"
#include "headrace/train/fit/progress.h"

namespace headrace::test {
namespace {

Dataset ten_steps() { return blobs(80).batch({.global_batch = 8}); }  // 10 steps an epoch

TEST(Callbacks, AnEpochsBeginIsHeardBeforeItsSteps) {
  Training training(2);
  Model model = compiled(training.strategy, small_mlp);
  std::vector<std::string> heard;
  const Callback callback{
      .on_epoch_begin = [&](int epoch, FitControl&) { heard.push_back("begin " + std::to_string(epoch)); },
      .on_step = [&](const StepReport& report, FitControl&) { heard.push_back(std::to_string(report.step)); },
      .every_steps = 5,
      .on_epoch_end = [&](const EpochReport& report,
                          FitControl&) { heard.push_back("end " + std::to_string(report.epoch)); }};
  model.fit(ten_steps(), {.epochs = 2, .callbacks = {callback}, .verbose = 0});
  EXPECT_THAT(heard, ElementsAre("begin 0", "5", "10", "end 0", "begin 1", "5", "10", "end 1"));
}

TEST(Callbacks, EverySoManyStepsOfTheModelExactly) {
  Training training(2);
  Model model = compiled(training.strategy, small_mlp);
  std::vector<std::uint64_t> steps;
  const Callback callback{
      .on_step = [&](const StepReport& report, FitControl&) { steps.push_back(report.global_step); },
      .every_steps = 7};
  model.fit(ten_steps(), {.epochs = 2, .callbacks = {callback}, .verbose = 0});
  model.fit(ten_steps(), {.epochs = 1, .callbacks = {callback}, .verbose = 0});
  EXPECT_THAT(steps, ElementsAre(7, 14, 21, 28)) << "counted from compile() on, over epochs and fits";
}

// The report's loss is the mean over all steps up to it: that of a fit which ends there.
TEST(Callbacks, AnExactReportCountsAllStepsAndLeavesTheWeightsAlone) {
  Training training(2);
  std::vector<double> losses;
  std::vector<std::string> weights;
  Model model = compiled(training.strategy, small_mlp);
  const Callback callback{.on_step =
                              [&](const StepReport& report, FitControl& control) {
                                losses.push_back(report.loss);
                                weights.push_back(control.model().weights_sha256());
                              },
                          .every_steps = 1};
  const History watched = model.fit(ten_steps(), {.epochs = 1, .callbacks = {callback}, .verbose = 0});
  ASSERT_EQ(losses.size(), 10U);
  for (std::uint64_t steps : {1U, 4U, 10U}) {
    Model alone = compiled(training.strategy, small_mlp);
    const History history = alone.fit(ten_steps(), {.epochs = 1, .verbose = 0, .stop_after_steps = steps});
    EXPECT_EQ(losses[steps - 1], history["loss"][0]) << steps;
    EXPECT_EQ(weights[steps - 1], alone.weights_sha256()) << steps;
  }
}

TEST(Callbacks, AStopTakesEffectAtTheStepThatAskedForIt) {
  Training training(2);
  Model model = compiled(training.strategy, small_mlp);
  const Callback callback{.on_step = [](const StepReport&, FitControl& control) { control.request_stop(); },
                          .every_steps = 13};
  const History history = model.fit(ten_steps(), {.epochs = 5, .callbacks = {callback}, .verbose = 0});
  EXPECT_EQ(model.global_step(), 13U);
  EXPECT_THAT(history["steps"], ElementsAre(10, 3));
}

// Without the epoch's first step, which waits for the engine's start or for a validation before it.
TEST(Callbacks, TellWhatTheInputEngineDidForTheEpoch) {
  Training training(2);
  Model model = compiled(training.strategy, small_mlp);
  EXPECT_EQ(FitControl(model).input_stats().examples, 0U) << "no fit";
  std::vector<std::uint64_t> in_steps, at_end;
  const Callback callback{
      .on_epoch_begin = [](int, FitControl& control) { EXPECT_EQ(control.input_stats().examples, 0U); },
      .on_step = [&](const StepReport&,
                     FitControl& control) { in_steps.push_back(control.input_stats().examples); },
      .every_steps = 5,
      .on_epoch_end =
          [&](const EpochReport& report, FitControl& control) {
            const LoaderStats stats = control.input_stats();
            at_end.push_back(stats.examples);
            EXPECT_EQ(stats.batches, 9U);
            EXPECT_EQ(stats.stages.back().kind, StageKind::kConsume);
            EXPECT_EQ(stats.stages.back().items, 72U);
            EXPECT_LE(static_cast<double>(stats.elapsed_ns) * 1e-9, report.seconds);
          }};
  model.fit(ten_steps(), {.epochs = 2, .validation = ten_steps(), .callbacks = {callback}, .verbose = 0});
  EXPECT_THAT(in_steps, ElementsAre(32, 72, 32, 72));
  EXPECT_THAT(at_end, ElementsAre(72, 72));
}

TEST(Callbacks, TheScaleOfTheLearningRateHoldsFromTheNextStepOn) {
  Training training(2);
  const auto end = [&](float rate, double scale) {
    Model model = compiled(training.strategy, small_mlp, sgd(rate));
    const Callback callback{.on_train_begin = [scale](FitControl& control) {
      control.set_learning_rate_scale(scale);
      EXPECT_EQ(control.learning_rate_scale(), scale);
    }};
    model.fit(ten_steps(), {.epochs = 1, .callbacks = {callback}, .verbose = 0});
    return model.weights_sha256();
  };
  EXPECT_EQ(end(0.5F, 0.25), end(0.125F, 1));
  EXPECT_NE(end(0.5F, 0.25), end(0.5F, 1));

  Model model = compiled(training.strategy, small_mlp, sgd(0.5F));
  std::string frozen;
  const Callback callback{.on_step =
                              [&](const StepReport&, FitControl& control) {
                                control.set_learning_rate_scale(0);
                                if (frozen.empty()) frozen = control.model().weights_sha256();
                              },
                          .every_steps = 4};
  model.fit(ten_steps(), {.epochs = 1, .callbacks = {callback}, .verbose = 0});
  EXPECT_EQ(model.weights_sha256(), frozen);
}

TEST(Callbacks, TheScaleIsOfAllGroupsAndEndsWithCompile) {
  Training training(1);
  Model model = compiled(training.strategy, small_cnn, grouped());
  FitControl control(model);
  const std::vector<double> before = control.learning_rates();
  ASSERT_EQ(before.size(), 3U);
  control.set_learning_rate_scale(0.5);
  const std::vector<double> after = control.learning_rates();
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_DOUBLE_EQ(after[i], 0.5 * before[i]);
  model.compile({.optimizer = grouped()});
  EXPECT_EQ(control.learning_rate_scale(), 1.0);
  for (const double wrong : {-1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_THROW(control.set_learning_rate_scale(wrong), ConfigError) << wrong;
  }
}

Callback remembers(const std::string& name, std::string& state) {
  return {.name = name,
          .save = [&state] { return state; },
          .restore = [&state](const std::string& saved) { state = saved; }};
}

TEST(CallbackStates, ComeBackToTheirOwners) {
  Training training(1);
  Model model = compiled(training.strategy, small_mlp);
  FitControl control(model);
  std::string first = "1", second = R"({"best": 2})", other = "three";
  const std::vector<Callback> callbacks{
      remembers("a", first), {.on_train_end = [](FitControl&) {}}, remembers("a", second), remembers("b", other)};
  const CallbackList list(callbacks, control);
  const std::string saved = list.save();
  first = second = other = "lost";
  list.restore(saved);
  EXPECT_EQ(first, "1");
  EXPECT_EQ(second, R"({"best": 2})");
  EXPECT_EQ(other, "three");

  first = "kept";
  list.restore(R"({"b": "new", "gone": "x"})");
  EXPECT_EQ(first, "kept") << "it was not saved";
  EXPECT_EQ(other, "new");
  EXPECT_THROW(list.restore("[]"), ConfigError);
  EXPECT_THROW(list.restore("{"), ConfigError);
  EXPECT_THROW(list.restore(R"({"b": 1})"), ConfigError);
}

TEST(CallbackStates, HaveNamesOfTheirOwnHoweverTheyAreCalled) {
  Training training(1);
  Model model = compiled(training.strategy, small_mlp);
  FitControl control(model);
  std::string first = "1", second = "2", third = "3";
  const std::vector<Callback> callbacks{remembers("a", first), remembers("a", second), remembers("a_2", third)};
  const CallbackList list(callbacks, control);
  const std::string saved = list.save();
  first = second = third = "lost";
  list.restore(saved);
  EXPECT_EQ(first + second + third, "123");
}

TEST(CallbackStates, NeedANameAndBothDirections) {
  Training training(1);
  Model model = compiled(training.strategy, small_mlp);
  FitControl control(model);
  std::string state;
  Callback one_way = remembers("half", state);
  one_way.restore = {};
  for (const Callback& wrong : {remembers("", state), one_way}) {
    EXPECT_THAT(
        error_of<ConfigError>([&] { model.fit(ten_steps(), {.callbacks = {wrong}, .verbose = 0}); }).what(),
        HasSubstr("save() or restore()"));
  }
}

MetricValue number(const std::string& name, double value) { return {.name = name, .values = {value}}; }

TEST(Progress, AnEpochsLineHasItsFieldsInOrder) {
  const EpochReport report{.steps = 1563,
                           .planned_steps = 1563,
                           .seconds = 7.2,
                           .loss = 0.25,
                           .val_loss = 0.2,
                           .metrics = {number("accuracy", 0.925)},
                           .val_metrics = {number("accuracy", 0.94)}};
  EXPECT_EQ(
      epoch_line(report),
      "1563/1563 - 7.2s - 4.6ms/step - loss: 0.2500 - accuracy: 0.9250 - val_loss: 0.2000 - val_accuracy: 0.9400");
}

TEST(Progress, NamesTheMetricsThatAreNumbersInTheirOrder) {
  EpochReport report{.steps = 1563, .planned_steps = 1563, .seconds = 7.2, .loss = 0.25, .val_loss = 0.2};
  EXPECT_EQ(epoch_line(report), "1563/1563 - 7.2s - 4.6ms/step - loss: 0.2500 - val_loss: 0.2000");
  const MetricValue table{.name = "confusion_matrix", .values = {1, 2, 3, 4}, .shape = {2, 2}};
  report.metrics = {number("top_5", 0.99), table, number("mean_absolute_error", 0.125)};
  report.val_metrics = {number("top_5", 0.98)};
  EXPECT_EQ(epoch_line(report),
            "1563/1563 - 7.2s - 4.6ms/step - loss: 0.2500 - top_5: 0.9900 - mean_absolute_error: 0.1250 - "
            "val_loss: 0.2000 - val_top_5: 0.9800");
}

TEST(Progress, OfSeveralWorkersNamesTheOneThatOthersWaitFor) {
  StepReport report{.step = 5, .steps = 10, .loss = 1};
  const auto waits = [](std::int64_t sync_ns) { return StepTimes{.elapsed_ns = 1000, .sync_wait_ns = sync_ns}; };
  report.workers = {waits(120), waits(110), waits(20)};
  EXPECT_THAT(step_line(report), HasSubstr(" sync 12.0% (slowest: worker 2)"));
  report.workers = {waits(20), waits(30)};
  EXPECT_THAT(step_line(report), AllOf(HasSubstr(" sync 3.0% -"), Not(HasSubstr("slowest"))));
  report.workers.clear();
  EXPECT_THAT(step_line(report), Not(HasSubstr("sync")));
}

TEST(Progress, WithoutValidationItEndsAfterTraining) {
  const EpochReport report{
      .steps = 10, .planned_steps = 10, .seconds = 75, .loss = 1, .metrics = {number("accuracy", 0.5)}};
  EXPECT_EQ(epoch_line(report), "10/10 - 1:15 - 7.5s/step - loss: 1.0000 - accuracy: 0.5000");
  const EpochReport fast{.steps = 1000, .planned_steps = 1000, .seconds = 0.4, .loss = 1};
  EXPECT_THAT(epoch_line(fast), HasSubstr("- 0.4s - 400us/step -"));
}

TEST(Progress, AStoppedEpochSaysHowFarItCame) {
  const EpochReport report{.steps = 3, .planned_steps = 10, .seconds = 6, .loss = 1};
  EXPECT_EQ(epoch_line(report), "3/10 - 6.0s - 2.0s/step - loss: 1.0000");
}

TEST(Progress, BadRecordsAreNotPassedOverInSilence) {
  const EpochReport report{.steps = 10, .planned_steps = 10, .seconds = 75, .loss = 1, .bad_records = 3};
  EXPECT_EQ(epoch_line(report), "10/10 - 1:15 - 7.5s/step - loss: 1.0000 - bad records: 3");
}

TEST(Progress, AStepsLineShowsRateTimeAndStall) {
  const StepReport report{.step = 50,
                          .steps = 100,
                          .loss = 0.5,
                          .examples_per_second = 23'400,
                          .input_stall_fraction = 0.012,
                          .exposed_copy_fraction = 0.003,
                          .device_idle_fraction = 0.004,
                          .remaining_seconds = 3,
                          .metrics = {number("accuracy", 0.75)}};
  EXPECT_EQ(step_line(report),
            "50/100 [==========>.........] 23k/s - ETA 3.0s - input stall 1.2% copy 0.3% idle 0.4% - "
            "loss: 0.5000 - accuracy: 0.7500");
}

TEST(Progress, AStepsLineFitsItsTerminal) {
  const StepReport report{.step = 781,
                          .steps = 1563,
                          .loss = 0.5,
                          .examples_per_second = 23'400,
                          .remaining_seconds = 65,
                          .metrics = {number("accuracy", 0.75)}};
  const std::string whole = step_line(report);
  for (int columns = 0; columns < 140; ++columns) {
    const std::string line = step_line(report, columns);
    EXPECT_LE(static_cast<int>(line.size()), std::max(0, columns - 3));
    if (static_cast<int>(whole.size()) <= columns - 3) {
      EXPECT_EQ(line, whole);
    }
  }
  EXPECT_EQ(step_line(report, 20), "781/1563 23k/s");
  EXPECT_EQ(step_line(report, 40), "781/1563 - ETA 1:05 - loss: 0.5000");
  EXPECT_EQ(step_line(report, 80), "781/1563 [===>....] 23k/s - ETA 1:05 - loss: 0.5000 - accuracy: 0.7500");
  EXPECT_EQ(
      step_line(report, 110),
      "781/1563 [=========>..........] 23k/s - ETA 1:05 - input stall 0.0% - loss: 0.5000 - accuracy: 0.7500");
}

TEST(Progress, AnEpochsLineFitsItsTerminal) {
  EpochReport report{.steps = 1563,
                     .planned_steps = 1563,
                     .seconds = 7.2,
                     .loss = 0.25,
                     .val_loss = 0.2,
                     .metrics = {number("accuracy", 0.9)},
                     .val_metrics = {number("accuracy", 0.9)}};
  const std::string whole = epoch_line(report);
  EXPECT_GT(whole.size(), 80U);
  EXPECT_EQ(epoch_line(report, static_cast<int>(whole.size())), whole);
  EXPECT_EQ(epoch_line(report, 80),
            "7.2s - loss: 0.2500 - accuracy: 0.9000 - val_loss: 0.2000 - val_accuracy: 0.9000");
  EXPECT_EQ(epoch_line(report, 40), "7.2s - loss: 0.2500 - val_loss: 0.2000");
  report.bad_records = 3;
  EXPECT_EQ(epoch_line(report, 40), "7.2s - loss: 0.2500 - bad records: 3");
}

TEST(History, KeepsOneListAMetric) {
  History history;
  history.append("loss", 2.0);
  history.append("loss", 1.0);
  history.append("accuracy", 0.5);
  EXPECT_EQ(history["loss"], (std::vector<double>{2.0, 1.0}));
  EXPECT_TRUE(history.has("accuracy"));
  EXPECT_FALSE(history.has("val_loss"));
}

TEST(History, AnUnknownNameListsTheNames) {
  History history;
  history.append("loss", 2.0);
  EXPECT_NE(std::string(error_of<ConfigError>([&] { history["lost"]; }).what()).find("it has loss"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::test

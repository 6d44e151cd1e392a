#include "headrace/train/fit/progress.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

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

}  // namespace
}  // namespace headrace::test

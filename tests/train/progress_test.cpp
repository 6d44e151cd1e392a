#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/train/engine/progress.h"

namespace headrace {
namespace {

TEST(Progress, AnEpochsLineHasItsFieldsInOrder) {
  const EpochReport report{.steps = 1563,
                           .planned_steps = 1563,
                           .seconds = 7.2,
                           .loss = 0.25,
                           .accuracy = 0.925,
                           .val_loss = 0.2,
                           .val_accuracy = 0.94};
  EXPECT_EQ(
      epoch_line(report, true),
      "1563/1563 - 7.2s - 4.6ms/step - loss: 0.2500 - accuracy: 0.9250 - val_loss: 0.2000 - val_accuracy: 0.9400");
  EXPECT_EQ(epoch_line(report, false), "1563/1563 - 7.2s - 4.6ms/step - loss: 0.2500 - val_loss: 0.2000");
}

TEST(Progress, WithoutValidationItEndsAfterTraining) {
  const EpochReport report{.steps = 10, .planned_steps = 10, .seconds = 75, .loss = 1, .accuracy = 0.5};
  EXPECT_EQ(epoch_line(report, true), "10/10 - 1:15 - 7.5s/step - loss: 1.0000 - accuracy: 0.5000");
  const EpochReport fast{.steps = 1000, .planned_steps = 1000, .seconds = 0.4, .loss = 1, .accuracy = 0.5};
  EXPECT_THAT(epoch_line(fast, true), testing::HasSubstr("- 0.4s - 400us/step -"));
}

TEST(Progress, AStoppedEpochSaysHowFarItCame) {
  const EpochReport report{.steps = 3, .planned_steps = 10, .seconds = 6, .loss = 1, .accuracy = 0.5};
  EXPECT_EQ(epoch_line(report, false), "3/10 - 6.0s - 2.0s/step - loss: 1.0000");
}

TEST(Progress, BadRecordsAreNotPassedOverInSilence) {
  const EpochReport report{
      .steps = 10, .planned_steps = 10, .seconds = 75, .loss = 1, .accuracy = 0.5, .bad_records = 3};
  EXPECT_EQ(epoch_line(report, false), "10/10 - 1:15 - 7.5s/step - loss: 1.0000 - bad records: 3");
}

TEST(Progress, AStepsLineShowsRateTimeAndStall) {
  const StepReport report{.step = 50,
                          .steps = 100,
                          .loss = 0.5,
                          .accuracy = 0.75,
                          .examples_per_second = 23'400,
                          .input_stall_fraction = 0.012,
                          .exposed_copy_fraction = 0.003,
                          .device_idle_fraction = 0.004,
                          .remaining_seconds = 3};
  EXPECT_EQ(step_line(report, true),
            "50/100 [==========>.........] 23k/s - ETA 3.0s - input stall 1.2% copy 0.3% idle 0.4% - "
            "loss: 0.5000 - accuracy: 0.7500");
}

TEST(Progress, AStepsLineFitsItsTerminal) {
  const StepReport report{.step = 781,
                          .steps = 1563,
                          .loss = 0.5,
                          .accuracy = 0.75,
                          .examples_per_second = 23'400,
                          .remaining_seconds = 65};
  const std::string whole = step_line(report, true);
  for (int columns = 0; columns < 140; ++columns) {
    const std::string line = step_line(report, true, columns);
    EXPECT_LE(static_cast<int>(line.size()), std::max(0, columns - 3));
    if (static_cast<int>(whole.size()) <= columns - 3) {
      EXPECT_EQ(line, whole);
    }
  }
  EXPECT_EQ(step_line(report, true, 20), "781/1563 23k/s");
  EXPECT_EQ(step_line(report, true, 40), "781/1563 - ETA 1:05 - loss: 0.5000");
  EXPECT_EQ(step_line(report, true, 80), "781/1563 [===>....] 23k/s - ETA 1:05 - loss: 0.5000 - accuracy: 0.7500");
  EXPECT_EQ(
      step_line(report, true, 110),
      "781/1563 [=========>..........] 23k/s - ETA 1:05 - input stall 0.0% - loss: 0.5000 - accuracy: 0.7500");
}

}  // namespace
}  // namespace headrace

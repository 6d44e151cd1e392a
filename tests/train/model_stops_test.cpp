// How a fit or an evaluation ends before its data does.
#include "headrace/tests/train/training_fixture.h"

namespace headrace::test {
namespace {

TEST_F(ModelTest, CallbacksHearEveryEpochAndCanStop) {
  Model model = make();
  std::vector<std::string> heard;
  const Callback callback{.on_train_begin = [&](FitControl&) { heard.push_back("begin"); },
                          .on_epoch_end =
                              [&](const EpochReport& report, FitControl& control) {
                                heard.push_back("epoch " + std::to_string(report.epoch));
                                EXPECT_EQ(&control.model(), &model);
                                EXPECT_EQ(report.global_step, 20U * static_cast<unsigned>(report.epoch + 1));
                                if (report.epoch == 1) control.request_stop();
                              },
                          .on_train_end = [&](FitControl&) { heard.push_back("end"); }};
  const History history = model.fit(data_, {.epochs = 5, .callbacks = {callback}, .verbose = 0});
  EXPECT_THAT(heard, ElementsAre("begin", "epoch 0", "epoch 1", "end"));
  EXPECT_EQ(history.epochs(), 2U);
}

TEST_F(ModelTest, AStopFlagEndsTheFitWithinAnEpoch) {
  Model model = make();
  std::atomic<bool> stop = false;
  const Callback callback{.on_step = [&](const StepReport& report, FitControl&) {
    EXPECT_LE(report.step, report.steps);
    stop = true;
  }};
  const History history = model.fit(
      data_, {.epochs = 1, .steps_per_epoch = 100'000'000, .callbacks = {callback}, .verbose = 0, .stop = &stop});
  ASSERT_EQ(history.epochs(), 1U);
  EXPECT_EQ(history["steps"][0], static_cast<double>(model.global_step())) << "as far as it came";
  EXPECT_GT(model.global_step(), 0U);
  model.check_mirrored();
  stop = true;
  EXPECT_EQ(model.fit(data_, {.epochs = 3, .verbose = 0, .stop = &stop}).epochs(), 0U);
}

TEST_F(ModelTest, StopsAfterSoManySteps) {
  Model model = make();
  EXPECT_EQ(model.fit(data_, {.epochs = 5, .verbose = 0, .stop_after_steps = 40}).epochs(), 2U);
  EXPECT_EQ(model.global_step(), 40U);
  EXPECT_EQ(model.fit(data_, {.epochs = 5, .verbose = 0, .stop_after_steps = 40}).epochs(), 0U) << "at once";
  std::vector<EpochReport> reports;
  const Callback callback{
      .on_epoch_end = [&](const EpochReport& report, FitControl&) { reports.push_back(report); }};
  const History history = model.fit(
      data_, {.epochs = 5, .validation = fresh_, .callbacks = {callback}, .verbose = 0, .stop_after_steps = 67});
  EXPECT_EQ(model.global_step(), 67U);
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0].steps, 20U);
  EXPECT_EQ(reports[0].planned_steps, 20U);
  EXPECT_TRUE(reports[0].val_loss);
  EXPECT_EQ(reports[1].steps, 7U);
  EXPECT_EQ(reports[1].planned_steps, 20U);
  EXPECT_GT(reports[1].loss, 0);
  EXPECT_FALSE(reports[1].val_loss) << "an epoch that is cut short is not validated";
  EXPECT_THAT(history["loss"], SizeIs(2));
  EXPECT_THAT(history["val_loss"], SizeIs(1));
}

// What a second thread or a handler of Ctrl-C sets; with the progress function to know that it has begun.
TEST_F(ModelTest, AStopFlagEndsAnEvaluation) {
  Model model = make();
  std::atomic<bool> stop = false;
  std::uint64_t batches = 0;
  const EvaluateOptions options{.progress =
                                    [&](std::uint64_t done, std::uint64_t of) {
                                      batches = done;
                                      EXPECT_GT(of, 2U);
                                      stop = done == 2;
                                    },
                                .stop = &stop};
  for (const bool predicts : {false, true}) {
    stop = false;
    EXPECT_EQ(error_of([&] {
                predicts ? void(model.predict(data_, options)) : void(model.evaluate(data_, options));
              }).code(),
              ErrorCode::kCancelled);
    EXPECT_EQ(batches, 2U);
  }
  stop = false;
  EXPECT_EQ(model.evaluate(fresh_).examples, model.evaluate(fresh_, {.stop = &stop}).examples);
}

TEST_F(ModelTest, AFitOfDataThatStallsEndsAfterItsTimeOut) {
  Model model = make();
  const Dataset slow =
      blobs(40)
          .map(user_map({.name = "stall",
                         .output = {.dtype = DType::kF32, .shape = {8}},
                         .function =
                             [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox&) {
                               std::this_thread::sleep_for(std::chrono::milliseconds(600));
                               std::ranges::copy(in, out.begin());
                             }}))
          .batch({.global_batch = 20});
  const Error error =
      error_of([&] { model.fit(slow, {.verbose = 0, .input = {.threads = 1, .stall_timeout_seconds = 0.1}}); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout) << error.what();
}

TEST_F(ModelTest, ACallbacksExceptionReachesTheCaller) {
  Model model = make();
  const Callback callback{
      .on_epoch_end = [](const EpochReport&, FitControl&) { throw std::runtime_error("enough"); }};
  EXPECT_THAT(message_of<std::runtime_error>([&] { model.fit(data_, {.callbacks = {callback}, .verbose = 0}); }),
              "enough");
  EXPECT_EQ(model.fit(data_, {.verbose = 0}).epochs(), 1U) << "the model can be used again";
}

}  // namespace
}  // namespace headrace::test

#include "headrace/train/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

#include "headrace/devices/base/error.h"
#include "headrace/tests/train/toy_data.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/sequential.h"

namespace headrace {
namespace {

using test::Training;
using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

template <typename Thrown, typename Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Thrown& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another exception: ") + error.what();
  }
  return "no exception";
}

class ModelTest : public testing::Test {
 protected:
  Model make(const Net& net = test::small_mlp, const Optimizer& optimizer = adam(1e-2F)) {
    return test::compiled(training_.strategy, net, optimizer);
  }

  Training training_{2};
  Dataset data_ = test::blobs(400).shuffle().batch({.global = 20});
  Dataset fresh_ = test::blobs(200, {8}, 4, 99).batch({.global = 64});
};

TEST_F(ModelTest, LearnsWhatCanBeLearned) {
  for (const Optimizer& optimizer : {adam(1e-2F), sgd(0.1F, {.momentum = 0.9F, .nesterov = true}), sgd(0.3F)}) {
    Model model = make(test::small_mlp, optimizer);
    const double before = model.evaluate(fresh_).accuracy;
    model.fit(data_, {.epochs = 5, .verbose = 0});
    const Evaluation after = model.evaluate(fresh_);
    EXPECT_LT(before, 0.7);
    EXPECT_GT(after.accuracy, 0.95) << optimizer.name();
    EXPECT_EQ(after.examples, 200);
  }
}

TEST_F(ModelTest, HistoryHasOneEntryAnEpochInEveryList) {
  Model model = make();
  const History history = model.fit(data_, {.epochs = 3, .validation = fresh_, .verbose = 0});
  for (const char* name :
       {"loss", "accuracy", "val_loss", "val_accuracy", "steps", "seconds", "examples_per_second",
        "input_stall_fraction", "exposed_copy_fraction", "device_idle_fraction"}) {
    EXPECT_THAT(history[name], SizeIs(3)) << name;
  }
  EXPECT_THAT(history["steps"], testing::Each(20.0));
  EXPECT_EQ(history.epochs(), 3U);
  EXPECT_LT(history["loss"][2], history["loss"][0]);
  EXPECT_EQ(model.global_step(), 60U);
  const Evaluation last = model.evaluate(fresh_);
  EXPECT_DOUBLE_EQ(history["val_loss"][2], last.loss);
  EXPECT_DOUBLE_EQ(history["val_accuracy"][2], last.accuracy);
}

TEST_F(ModelTest, WithoutMetricsThereIsOnlyTheLoss) {
  Model model = make();
  model.compile({.metrics = {}});
  const History history = model.fit(data_, {.validation = fresh_, .verbose = 0});
  EXPECT_TRUE(history.has("val_loss"));
  EXPECT_FALSE(history.has("accuracy"));
  EXPECT_FALSE(history.has("val_accuracy"));
}

TEST_F(ModelTest, StepsPerEpochGoesOnThroughTheData) {
  // 20 batches a pass; the learning rate is 0, so an epoch's loss says which records it saw.
  Model model = make(test::small_mlp, sgd(0.0F));
  const Dataset ordered = test::blobs(400).batch({.global = 20});
  const double whole = model.fit(ordered, {.verbose = 0})["loss"][0];
  const History parts = model.fit(ordered, {.epochs = 5, .steps_per_epoch = 8, .verbose = 0});
  EXPECT_THAT(parts["steps"], testing::Each(8.0));
  EXPECT_NE(parts["loss"][0], parts["loss"][1]);
  // 5 x 8 steps are two passes.
  EXPECT_NEAR(std::accumulate(parts["loss"].begin(), parts["loss"].end(), 0.0) / 5, whole, 1e-6 * test::slack());
}

TEST_F(ModelTest, FitContinuesWhereTheLastOneStopped) {
  Model model = make();
  model.fit(data_, {.verbose = 0});
  model.fit(data_, {.epochs = 2, .verbose = 0});
  EXPECT_EQ(model.global_step(), 60U);
  model.compile({});
  EXPECT_EQ(model.global_step(), 0U);
}

TEST_F(ModelTest, PredictGivesEveryRecordsResultInOrder) {
  const Net probabilities = [](Graph& g) { return g.softmax(test::small_mlp(g)); };
  Model model = training_.strategy.build(probabilities, {.seed = 3});
  const Predictions all = model.predict(test::blobs(53).batch({.global = 10}));
  EXPECT_EQ(all.shape, (Shape{53, 4}));
  ASSERT_THAT(all.values, SizeIs(53 * 4));
  for (std::size_t i = 0; i < 53; ++i) {
    EXPECT_EQ(all.records[i], i);
    const float sum = std::accumulate(&all.values[4 * i], &all.values[4 * i] + 4, 0.0F);
    EXPECT_NEAR(sum, 1.0F, 1e-5F);
  }
  const Predictions whole = model.predict(test::blobs(53).batch({.global = 64}));
  ASSERT_EQ(all.values.size(), whole.values.size());
  // A result does not depend on its batch, but on a GPU for the order of sums.
  const float tolerance = test::on_gpu() ? 1e-6F : 0;
  for (std::size_t i = 0; i < all.values.size(); ++i) ASSERT_NEAR(all.values[i], whole.values[i], tolerance) << i;
  EXPECT_THAT(model.predict(test::blobs(53).batch({.global = 10}), {.steps = 2}).records, SizeIs(20));
}

TEST_F(ModelTest, ASoftmaxAtTheEndIsFusedWithTheLoss) {
  Model logits = make();
  Model probabilities =
      training_.strategy.build([](Graph& g) { return g.softmax(test::small_mlp(g)); }, {.seed = 3});
  probabilities.compile(
      {.optimizer = adam(1e-2F), .loss = sparse_categorical_crossentropy({.from_logits = false})});
  const History a = logits.fit(data_, {.epochs = 2, .verbose = 0});
  const History b = probabilities.fit(data_, {.epochs = 2, .verbose = 0});
  EXPECT_EQ(a["loss"], b["loss"]);
  EXPECT_EQ(logits.weights_sha256(), probabilities.weights_sha256());
}

TEST_F(ModelTest, BytesAreTakenAsShareOfTheirRange) {
  std::vector<std::uint8_t> bytes(40 * 8);
  std::vector<float> floats(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(i * 37);
    floats[i] = static_cast<float>(bytes[i]) * (1.0F / 255.0F);
  }
  const std::vector<std::int64_t> labels(40, 1);
  const Dataset raw = Dataset::from(in_memory(
      "bytes", 40, {test::array_of("image", Shape{8}, bytes), test::array_of("label", Shape{}, labels)}));
  Model model = make();
  EXPECT_NEAR(model.evaluate(raw.batch({.global = 16})).loss,
              model.evaluate(test::labelled({8}, floats, labels).batch({.global = 16})).loss,
              1e-6 * test::slack());
}

TEST_F(ModelTest, DropoutActsOnlyInTraining) {
  Model model = make([](Graph& g) { return g.dense(g.dropout(g.input("image", {8}), 0.5F), 4); }, sgd(0.0F));
  const double evaluated = model.evaluate(fresh_).loss;
  EXPECT_EQ(evaluated, model.evaluate(fresh_).loss);
  EXPECT_GT(std::abs(model.fit(fresh_, {.verbose = 0})["loss"][0] - evaluated), 1e-4);
}

TEST_F(ModelTest, BatchNormUsesRunningStatisticsOnlyOutsideTraining) {
  Training single(1);
  Model model = test::compiled(
      single.strategy,
      [](Graph& g) { return g.dense(g.batch_norm(g.input("image", {8}), {.momentum = 0.0F}), 4); }, sgd(0.0F));
  const Dataset one_batch = test::blobs(200, {8}, 4, 99).batch({.global = 200});
  const double before = model.evaluate(one_batch).loss;
  const double trained = model.fit(one_batch, {.verbose = 0})["loss"][0];
  const double after = model.evaluate(one_batch).loss;
  EXPECT_GT(std::abs(after - before), 1e-2);
  EXPECT_NEAR(after, trained, 2e-3) << "the running statistics are the batch's, but for the unbiased variance";
}

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
  EXPECT_THAT(heard, testing::ElementsAre("begin", "epoch 0", "epoch 1", "end"));
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
    try {
      predicts ? void(model.predict(data_, options)) : void(model.evaluate(data_, options));
      ADD_FAILURE() << "it went on";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCancelled);
    }
    EXPECT_EQ(batches, 2U);
  }
  stop = false;
  EXPECT_EQ(model.evaluate(fresh_).examples, model.evaluate(fresh_, {.stop = &stop}).examples);
}

// Each is a loader's option that fit() and evaluate() pass on, by its effect or by the refusal of the loader.
TEST_F(ModelTest, TheLoadersOptionsAreReachable) {
  Model model = make();
  const auto refusal = [&](const LoaderOptions& input) {
    const std::string of_fit = message_of<ConfigError>([&] { model.fit(data_, {.verbose = 0, .input = input}); });
    EXPECT_EQ(message_of<ConfigError>([&] { model.evaluate(data_, {.input = input}); }), of_fit);
    return of_fit;
  };
  // Batches lie in pinned memory where a device has memory of its own.
  const LoaderOptions tight{.memory_budget_bytes = 10, .pinned_budget_bytes = 10};
  EXPECT_THAT(refusal(tight), HasSubstr("_budget_bytes = 10"));
  EXPECT_THAT(refusal({.threads = 3, .cpu_budget = 2}), HasSubstr("cpu_budget = 2"));
  EXPECT_THAT(refusal({.reader_threads = 5000}), HasSubstr("reader_threads = 5000"));
  const std::string before = model.weights_sha256();
  EXPECT_THAT(
      message_of<ConfigError>([&] { model.fit(data_, {.validation = fresh_, .verbose = 0, .input = tight}); }),
      HasSubstr("_budget_bytes"));
  EXPECT_EQ(model.weights_sha256(), before);
}

TEST_F(ModelTest, AFitOfDataThatStallsEndsAfterItsTimeOut) {
  Model model = make();
  const Dataset slow =
      test::blobs(40)
          .map(user_map({.name = "stall",
                         .output = {.dtype = DType::kF32, .shape = {8}},
                         .function =
                             [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox&) {
                               std::this_thread::sleep_for(std::chrono::milliseconds(600));
                               std::ranges::copy(in, out.begin());
                             }}))
          .batch({.global = 20});
  try {
    model.fit(slow, {.verbose = 0, .input = {.threads = 1, .stall_timeout_seconds = 0.1}});
    FAIL() << "it waited";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout) << error.what();
  }
}

TEST_F(ModelTest, WhatTheTrainerDecidesIsRefused) {
  Model model = make();
  const std::vector<std::pair<std::string, LoaderOptions>> decided = {{"epochs", {.epochs = 2}},
                                                                      {"start", {.start = LoaderState{}}},
                                                                      {"converted", {.converted = DType::kBF16}},
                                                                      {"trace_spans", {.trace_spans = 8}}};
  for (const auto& [name, input] : decided) {
    EXPECT_THAT(message_of<ConfigError>([&] { model.fit(data_, {.verbose = 0, .input = input}); }),
                HasSubstr("FitOptions::input." + name));
    EXPECT_THAT(message_of<ConfigError>([&] { model.evaluate(data_, {.input = input}); }),
                HasSubstr("EvaluateOptions::input." + name));
    EXPECT_THAT(message_of<ConfigError>([&] { model.predict(data_, {.input = input}); }),
                HasSubstr("EvaluateOptions::input." + name));
  }
  EXPECT_THAT(message_of<ConfigError>([&] { model.evaluate(data_, {.input = {.headspace = 1}}); }),
              HasSubstr("EvaluateOptions::input.headspace"));
}

TEST_F(ModelTest, KnowsItsStepsBeforeItTrains) {
  EXPECT_EQ(steps_of_pass(data_, {}), 20U);
  EXPECT_EQ(steps_of_pass(data_, {.accumulate = 3}), 7U);
  EXPECT_EQ(steps_of_fit(data_, {.epochs = 4, .accumulate = 3}), 28U);
  EXPECT_EQ(steps_of_epoch(data_, {.steps_per_epoch = 11, .accumulate = 3}), 11U);
  EXPECT_EQ(steps_of_fit(data_, {.epochs = 4, .steps_per_epoch = 11, .accumulate = 3}), 44U);
  Model model = make();
  model.fit(data_, {.epochs = 2, .verbose = 0, .accumulate = 3});
  EXPECT_EQ(model.global_step(), steps_of_fit(data_, {.epochs = 2, .accumulate = 3}));
}

TEST_F(ModelTest, ACallbacksExceptionReachesTheCaller) {
  Model model = make();
  const Callback callback{
      .on_epoch_end = [](const EpochReport&, FitControl&) { throw std::runtime_error("enough"); }};
  EXPECT_THAT(message_of<std::runtime_error>([&] { model.fit(data_, {.callbacks = {callback}, .verbose = 0}); }),
              "enough");
  EXPECT_EQ(model.fit(data_, {.verbose = 0}).epochs(), 1U) << "the model can be used again";
}

TEST_F(ModelTest, PrintsALineAnEpochWhereThereIsNoTerminal) {
  Model model = make();
  testing::internal::CaptureStdout();
  model.fit(data_, {.epochs = 2, .validation = fresh_, .verbose = 1});
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_THAT(printed, testing::ContainsRegex(
                           "^Epoch 1/2\n20/20 - [0-9.]+s - [0-9.]+[mu]s/step - loss: [0-9.]+ - accuracy: "
                           "[0-9.]+ - val_loss: [0-9.]+ - val_accuracy: [0-9.]+\nEpoch 2/2\n"));
  testing::internal::CaptureStdout();
  model.fit(data_, {.verbose = 0});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST_F(ModelTest, SequentialIsTheSameNet) {
  const Net net = Sequential().dense(16, {.activation = Activation::kRelu}).dense(4).net("image", Shape{8});
  Model model = make(net);
  EXPECT_EQ(model.weights_sha256(), make().weights_sha256());
  Model inferred =
      training_.strategy.build(Sequential().flatten().dense(4).net("image"), {.fields = data_.fields()});
  EXPECT_EQ(inferred.parameter_count(), 36);
}

TEST_F(ModelTest, InitialParametersFollowFromTheSeed) {
  EXPECT_EQ(make().weights_sha256(), make().weights_sha256());
  Model other = training_.strategy.build(test::small_mlp, {.seed = 4});
  EXPECT_NE(other.weights_sha256(), make().weights_sha256());
  const float limit = std::sqrt(6.0F / (8 + 16));
  float largest = 0;
  for (const float value : other.read_variable("dense/weights", 1)) largest = std::max(largest, std::abs(value));
  EXPECT_LE(largest, limit);
  EXPECT_GT(largest, 0.9F * limit);
  EXPECT_THAT(other.read_variable("dense/bias"), testing::Each(0.0F));
}

TEST_F(ModelTest, VariablesCanBeReadAndWritten) {
  Model model = make();
  EXPECT_THAT(model.variable_names(),
              testing::ElementsAre("dense/weights", "dense/bias", "dense_1/weights", "dense_1/bias"));
  EXPECT_EQ(model.variable_shape("dense/weights"), (Shape{16, 8}));
  const std::vector<float> values(16, 0.5F);
  model.write_variable("dense/bias", values);
  EXPECT_EQ(model.read_variable("dense/bias", 1), values);
  EXPECT_THAT(message_of<ConfigError>([&] { model.read_variable("dense/wait"); }), HasSubstr("dense/weights"));
  EXPECT_THAT(message_of<ConfigError>([&] { model.write_variable("dense/weights", values); }),
              AllOf(HasSubstr("(16, 8)"), HasSubstr("16 values")));
}

TEST_F(ModelTest, NeedsCompile) {
  Model model = training_.strategy.build(test::small_mlp);
  EXPECT_THAT(message_of<ConfigError>([&] { model.fit(data_, {.verbose = 0}); }), HasSubstr("compile"));
  EXPECT_THAT(message_of<ConfigError>([&] { model.evaluate(data_); }), HasSubstr("compile"));
}

TEST_F(ModelTest, LossAndNetMustFitTogether) {
  Model logits = training_.strategy.build(test::small_mlp);
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { logits.compile({.loss = sparse_categorical_crossentropy({.from_logits = false})}); }),
              AllOf(HasSubstr("'dense_1'"), HasSubstr("softmax")));
  Model probabilities = training_.strategy.build([](Graph& g) { return g.softmax(test::small_mlp(g)); });
  EXPECT_THAT(message_of<ConfigError>([&] { probabilities.compile({}); }), HasSubstr("probabilities"));
  Model image = training_.strategy.build([](Graph& g) { return g.conv(g.input("image", {4, 4, 1}), 2); });
  EXPECT_THAT(message_of<ConfigError>([&] { image.compile({}); }), HasSubstr("(4, 4, 2)"));
  EXPECT_THROW(sparse_categorical_crossentropy({.label_smoothing = 1.5F}), ConfigError);
  Model empty = training_.strategy.build([](Graph& g) { return g.flatten(g.input("image", {4})); });
  EXPECT_THAT(message_of<ConfigError>([&] { empty.compile({}); }), HasSubstr("no parameters"));
}

TEST_F(ModelTest, DataMustFitTheNet) {
  Model model = make();
  EXPECT_THAT(message_of<ConfigError>([&] {
                model.fit(test::blobs(20, {3, 3, 1}).batch({.global = 4}), {.verbose = 0});
              }),
              AllOf(HasSubstr("'image'"), HasSubstr("(3, 3, 1)"), HasSubstr("(8,)")));
  const Dataset no_label =
      Dataset::from(in_memory("half", 4, {test::array_of("image", Shape{8}, std::vector<float>(32))}))
          .batch({.global = 4});
  EXPECT_THAT(message_of<ConfigError>([&] { model.fit(no_label, {.verbose = 0}); }), HasSubstr("label"));
  const Dataset float_label = Dataset::from(in_memory("floats", 4,
                                                      {test::array_of("image", Shape{8}, std::vector<float>(32)),
                                                       test::array_of("label", Shape{}, std::vector<float>(4))}));
  EXPECT_THAT(message_of<ConfigError>([&] { model.fit(float_label.batch({.global = 4}), {.verbose = 0}); }),
              AllOf(HasSubstr("float32"), HasSubstr("int64")));
  EXPECT_THAT(message_of<ConfigError>([&] { model.fit(data_, {.epochs = 0, .verbose = 0}); }), HasSubstr("epoch"));
  EXPECT_THAT(message_of<ConfigError>([&] { model.fit(data_, {.verbose = 0, .accumulate = 0}); }),
              HasSubstr("accumulate"));
}

}  // namespace
}  // namespace headrace

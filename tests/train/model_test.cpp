#include "headrace/train/model.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/nets.h"

namespace headrace::test {
namespace {

TEST_F(ModelTest, LearnsWhatCanBeLearned) {
  for (const Optimizer& optimizer : {adam(1e-2F), sgd(0.1F, {.momentum = 0.9F, .nesterov = true}), sgd(0.3F)}) {
    Model model = make(small_mlp, optimizer);
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
  EXPECT_THAT(history["steps"], Each(20.0));
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
  Model model = make(small_mlp, sgd(0.0F));
  const Dataset ordered = blobs(400).batch({.global_batch = 20});
  const double whole = model.fit(ordered, {.verbose = 0})["loss"][0];
  const History parts = model.fit(ordered, {.epochs = 5, .steps_per_epoch = 8, .verbose = 0});
  EXPECT_THAT(parts["steps"], Each(8.0));
  EXPECT_NE(parts["loss"][0], parts["loss"][1]);
  // 5 x 8 steps are two passes.
  EXPECT_NEAR(std::accumulate(parts["loss"].begin(), parts["loss"].end(), 0.0) / 5, whole, 1e-6 * slack());
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
  const Net probabilities = [](Graph& g) { return g.softmax(small_mlp(g)); };
  Model model = training_.strategy.build(probabilities, {.seed = 3});
  const Predictions all = model.predict(blobs(53).batch({.global_batch = 10}));
  EXPECT_EQ(all.shape, (Shape{53, 4}));
  ASSERT_THAT(all.values, SizeIs(53 * 4));
  for (std::size_t i = 0; i < 53; ++i) {
    EXPECT_EQ(all.records[i], i);
    const float sum = std::accumulate(&all.values[4 * i], &all.values[4 * i] + 4, 0.0F);
    EXPECT_NEAR(sum, 1.0F, 1e-5F);
  }
  const Predictions whole = model.predict(blobs(53).batch({.global_batch = 64}));
  ASSERT_EQ(all.values.size(), whole.values.size());
  // A result does not depend on its batch, but for the order of sums.
  const float tolerance = sums_by_shape() ? 1e-6F : 0;
  for (std::size_t i = 0; i < all.values.size(); ++i) ASSERT_NEAR(all.values[i], whole.values[i], tolerance) << i;
  EXPECT_THAT(model.predict(blobs(53).batch({.global_batch = 10}), {.steps = 2}).records, SizeIs(20));
}

TEST_F(ModelTest, ASoftmaxAtTheEndIsFusedWithTheLoss) {
  Model logits = make();
  Model probabilities = training_.strategy.build([](Graph& g) { return g.softmax(small_mlp(g)); }, {.seed = 3});
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
  const Dataset raw = Dataset::from(
      in_memory("bytes", 40, {array_of("image", Shape{8}, bytes), array_of("label", Shape{}, labels)}));
  Model model = make();
  EXPECT_NEAR(model.evaluate(raw.batch({.global_batch = 16})).loss,
              model.evaluate(labelled({8}, floats, labels).batch({.global_batch = 16})).loss, 1e-6 * slack());
}

TEST_F(ModelTest, DropoutActsOnlyInTraining) {
  Model model = make([](Graph& g) { return g.dense(g.dropout(g.input("image", {8}), 0.5F), 4); }, sgd(0.0F));
  const double evaluated = model.evaluate(fresh_).loss;
  EXPECT_EQ(evaluated, model.evaluate(fresh_).loss);
  EXPECT_GT(std::abs(model.fit(fresh_, {.verbose = 0})["loss"][0] - evaluated), 1e-4);
}

TEST_F(ModelTest, BatchNormUsesRunningStatisticsOnlyOutsideTraining) {
  Training single(1);
  Model model = compiled(
      single.strategy,
      [](Graph& g) { return g.dense(g.batch_norm(g.input("image", {8}), {.momentum = 0.0F}), 4); }, sgd(0.0F));
  const Dataset one_batch = blobs(200, {8}, 4, 99).batch({.global_batch = 200});
  const double before = model.evaluate(one_batch).loss;
  const double trained = model.fit(one_batch, {.verbose = 0})["loss"][0];
  const double after = model.evaluate(one_batch).loss;
  EXPECT_GT(std::abs(after - before), 1e-2);
  EXPECT_NEAR(after, trained, 2e-3) << "the running statistics are the batch's, but for the unbiased variance";
}

TEST_F(ModelTest, KnowsItsStepsBeforeItTrains) {
  EXPECT_EQ(steps_of_pass(data_, {}), 20U);
  EXPECT_EQ(steps_of_pass(data_, {.step = {.accumulate = 3}}), 7U);
  EXPECT_EQ(steps_of_fit(data_, {.epochs = 4, .step = {.accumulate = 3}}), 28U);
  EXPECT_EQ(steps_of_epoch(data_, {.steps_per_epoch = 11, .step = {.accumulate = 3}}), 11U);
  EXPECT_EQ(steps_of_fit(data_, {.epochs = 4, .steps_per_epoch = 11, .step = {.accumulate = 3}}), 44U);
  Model model = make();
  model.fit(data_, {.epochs = 2, .verbose = 0, .step = {.accumulate = 3}});
  EXPECT_EQ(model.global_step(), steps_of_fit(data_, {.epochs = 2, .step = {.accumulate = 3}}));
}

TEST_F(ModelTest, ValidatesWithTheShareThatItHoldsOut) {
  const Dataset records = blobs(203);
  const Dataset train = records.take(162).shuffle({.seed = 5}).batch({.global_batch = 10});
  const FitOptions split{.epochs = 2, .validation_split = 0.2, .verbose = 0};
  Model model = make(), other = make();
  const History history = model.fit(records.shuffle({.seed = 5}).batch({.global_batch = 10}), split);
  const History wanted =
      other.fit(train, {.epochs = 2, .validation = records.skip(162).batch({.global_batch = 10}), .verbose = 0});
  EXPECT_EQ(history["val_loss"], wanted["val_loss"]);
  EXPECT_EQ(model.weights_sha256(), other.weights_sha256());
  EXPECT_EQ(steps_of_fit(records.batch({.global_batch = 10}), split), 34U);
  EXPECT_THROW(model.fit(train, {.validation = data_, .validation_split = 0.2}), ConfigError);
  EXPECT_THROW(model.fit(train, {.validation_split = 1}), ConfigError);
}

TEST_F(ModelTest, PrintsALineAnEpochWhereThereIsNoTerminal) {
  Model model = make();
  testing::internal::CaptureStdout();
  model.fit(data_, {.epochs = 2, .validation = fresh_, .verbose = 1});
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_THAT(printed,
              ContainsRegex("^Epoch 1/2\n20/20 - [0-9.]+s - [0-9.]+[mu]s/step - loss: [0-9.]+ - accuracy: "
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
  const auto doubled = [](Graph& g, Node x) { return g.concat({g.scale(x, 2), x}); };
  Model any = training_.strategy.build(Sequential().then(doubled).dense(4).net("image", Shape{8}));
  EXPECT_EQ(any.parameter_count(), 16 * 4 + 4);
}

TEST_F(ModelTest, InitialParametersFollowFromTheSeed) {
  EXPECT_EQ(make().weights_sha256(), make().weights_sha256());
  Model other = training_.strategy.build(small_mlp, {.seed = 4});
  EXPECT_NE(other.weights_sha256(), make().weights_sha256());
  const float limit = std::sqrt(6.0F / (8 + 16));
  float largest = 0;
  for (const float value : other.read_variable("dense/weights", 1)) largest = std::max(largest, std::abs(value));
  EXPECT_LE(largest, limit);
  EXPECT_GT(largest, 0.9F * limit);
  EXPECT_THAT(other.read_variable("dense/bias"), Each(0.0F));
}

TEST_F(ModelTest, VariablesCanBeReadAndWritten) {
  Model model = make();
  EXPECT_THAT(model.variable_names(),
              ElementsAre("dense/weights", "dense/bias", "dense_1/weights", "dense_1/bias"));
  EXPECT_EQ(model.variable_shape("dense/weights"), (Shape{16, 8}));
  const std::vector<float> values(16, 0.5F);
  model.write_variable("dense/bias", values);
  EXPECT_EQ(model.read_variable("dense/bias", 1), values);
  EXPECT_THAT(message_of<ConfigError>([&] { model.read_variable("dense/wait"); }), HasSubstr("dense/weights"));
  EXPECT_THAT(message_of<ConfigError>([&] { model.write_variable("dense/weights", values); }),
              AllOf(HasSubstr("(16, 8)"), HasSubstr("16 values")));
}

}  // namespace
}  // namespace headrace::test

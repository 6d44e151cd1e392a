// Variables of optimizers, averages of weights, and their records.
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/training_record.h"

namespace headrace::test {
namespace {

// What an optimizer keeps of each variable, and the options it refuses.

// Two runs of one model differ in nothing that is written down: so a checkpoint of variables and the optimizer's
// variables is whole.
TEST(OptimizerVariables, HoldAllThatTrainingDependsOn) {
  const Optimizer optimizer = with_all_around(grouped());
  const Dataset data = blobs(64, {6, 6, 2}).batch({.global_batch = 8});
  Training training(2), other_training(1);
  Model model = compiled(training.strategy, small_cnn, optimizer);
  model.fit(data, {.verbose = 0});
  EXPECT_EQ(model.optimizer_variable_names().size(), 4 * 4U);
  Training copied_training(2);
  Model copied = compiled(copied_training.strategy, small_cnn, optimizer, 99);
  for (const std::string& name : model.variable_names()) copied.write_variable(name, model.read_variable(name));
  for (const std::string& name : model.optimizer_variable_names()) {
    copied.write_variable(name, model.read_variable(name, 1));
  }
  copied.state().step = model.global_step();
  for (Model* each : {&model, &copied}) each->fit(data, {.verbose = 0});
  EXPECT_EQ(model.weights_sha256(), copied.weights_sha256());
  for (const std::string& name : model.optimizer_variable_names()) {
    EXPECT_EQ(model.read_variable(name), copied.read_variable(name)) << name;
  }
  EXPECT_THROW(model.write_variable("dense/bias:slow", std::vector<float>(3)), ConfigError);
  EXPECT_THROW(model.read_variable("dense/bias:third_moment"), ConfigError);
}

TEST(OptimizerVariables, AreMirroredToo) {
  Optimizer optimizer = sgd(0.1F);
  optimizer.average = WeightAverage{};
  Training training(2);
  Model model = compiled(training.strategy, small_mlp, optimizer);
  model.check_mirrored();
  const Buffer& average = model.state().optimizer[1].average;
  upload(training.strategy.device(1), reinterpret_cast<float*>(average.data()), 5.0F);
  EXPECT_THAT(error_of<DeviceError>([&] { model.check_mirrored(); }).what(),
              HasSubstr("'dense_1/weights:average' differs between replicas 0 and 1"));
}

TEST(OptimizerOptions, ThatCannotBeAreRefused) {
  Training training(1);
  const auto refusal = [&](const auto& change) -> std::string {
    Optimizer optimizer = adam();
    change(optimizer);
    return message_of([&] { compiled(training.strategy, small_mlp, optimizer); });
  };
  EXPECT_THAT(refusal([](Optimizer& of) { of.clip.max_norm = -1; }), HasSubstr("limited to -1"));
  EXPECT_THAT(refusal([](Optimizer& of) { of.clip.max_value = NAN; }), HasSubstr("limited to nan"));
  EXPECT_THAT(refusal([](Optimizer& of) { of.lookahead = {.every = 0}; }), HasSubstr("every 0 steps"));
  EXPECT_THAT(refusal([](Optimizer& of) { of.lookahead = {.share = 0}; }), HasSubstr("share of 0"));
  EXPECT_THAT(refusal([](Optimizer& of) { of.average = {.decay = 1.5F}; }), HasSubstr("decay by 1.5"));
  Model model = compiled(training.strategy, small_mlp);
  const Dataset data = blobs(16).batch({.global_batch = 8});
  EXPECT_THROW(model.evaluate(data, {.averaged_weights = true}), ConfigError);
  EXPECT_THROW(model.predict(data, {.averaged_weights = true}), ConfigError);
}

// Averages of the weights, which are evaluated in their place.

TEST(WeightAverages, AreEvaluatedInThePlaceOfTheWeights) {
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    for (const int replicas : {1, 2, 4}) {
      Training training(replicas);
      Optimizer optimizer = adam(2e-2F);
      optimizer.average = {.decay = 0.9F};
      Model model = training.strategy.build(small_cnn, {.seed = 3});
      model.compile({.optimizer = optimizer, .precision = precision});
      const Dataset data = blobs(60, {6, 6, 2}).batch({.global_batch = 16});
      const History history = model.fit(data, {.epochs = 2,
                                               .validation = data,
                                               .verbose = 0,
                                               .step = {.mirror_check_every = 1},
                                               .validate_averaged = true});
      const std::string weights = model.weights_sha256();
      const Evaluation averaged = model.evaluate(data, {.averaged_weights = true});
      const std::vector<float> predicted = model.predict(data, {.averaged_weights = true}).values;
      EXPECT_EQ(model.weights_sha256(), weights) << "the weights stay as they are";
      EXPECT_EQ(averaged.loss, history["val_loss"].back());
      EXPECT_NE(averaged.loss, model.evaluate(data).loss);
      for (const std::string& name : model.variable_names()) {
        model.write_variable(name, model.read_variable(name + ":average"));
      }
      EXPECT_EQ(model.evaluate(data).loss, averaged.loss);
      EXPECT_EQ(model.predict(data).values, predicted);
    }
  }
}

TEST(WeightAverages, BeginAsTheWeightsWhoeverWroteThem) {
  Training training(2);
  Optimizer optimizer = sgd(0.1F);
  optimizer.average = WeightAverage{};
  optimizer.lookahead = Lookahead{};
  Model model = compiled(training.strategy, small_mlp, optimizer);
  const std::vector<float> written(model.read_variable("dense/bias").size(), 0.25F);
  model.write_variable("dense/bias", written);
  for (const char* name : {"dense/bias", "dense/bias:average", "dense/bias:slow"}) {
    EXPECT_EQ(model.read_variable(name, 1), written) << name;
  }
  const Dataset data = blobs(16).batch({.global_batch = 8});
  EXPECT_EQ(model.evaluate(data, {.averaged_weights = true}).loss, model.evaluate(data).loss);
  model.fit(data, {.verbose = 0, .stop_after_steps = 1});
  EXPECT_EQ(model.read_variable("dense/bias:average"), model.read_variable("dense/bias"));
  EXPECT_EQ(model.read_variable("dense/bias:slow"), written);
}

TEST(WeightAverages, AMeanOfAllWeights) {
  Training training(1);
  Optimizer optimizer = sgd(0.1F);
  optimizer.average = {.decay = 1, .warmup = 1};
  Model model = compiled(training.strategy, small_mlp, optimizer);
  const Dataset data = blobs(64).batch({.global_batch = 8});
  std::vector<double> sum(model.read_variable("dense/weights").size());
  for (std::uint64_t step = 1; step <= 20; ++step) {
    model.fit(data, {.epochs = 9, .verbose = 0, .stop_after_steps = step});
    const std::vector<float> now = model.read_variable("dense/weights");
    for (std::size_t i = 0; i < now.size(); ++i) sum[i] += now[i];
  }
  for (double& value : sum) value /= 20;
  const std::vector<float> mean = model.read_variable("dense/weights:average");
  for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(mean[i], sum[i], 1e-6 * slack()) << i;
}

// Images of one channel, and labels.
SourcePtr in_memory_blobs(std::uint64_t count) {
  std::vector<float> images;
  std::vector<std::int64_t> labels;
  Philox random({.seed = 9});
  for (std::uint64_t i = 0; i < count; ++i) {
    labels.push_back(static_cast<std::int64_t>(i % 4));
    for (std::uint64_t k = 0; k < 8; ++k) images.push_back(random.uniform() + (k % 4 == i % 4 ? 1.0F : 0.0F));
  }
  return in_memory("toy", count, {array_of("image", Shape{4, 2, 1}, images), array_of("label", Shape{}, labels)});
}

TEST(TrainingRecords, AreEvaluatedByWhoKnowsNothingOfTheModel) {
  const TempFolder folder;
  Training training(2);
  const Dataset data =
      Dataset::from(in_memory_blobs(60)).map(normalize({0.5F}, {2.0F})).batch({.global_batch = 8});
  Model model = training.strategy.build([](Graph& g) {
    return g.dense(g.dense(g.flatten(g.input("image", {4, 2, 1})), 16), 4);
  });
  TrainingRecord record = create_training_record(model, sparse_categorical_crossentropy(), adam(1e-2F), 3,
                                                 {.file = folder / "record"});
  const History history = record.train(data, 0, {.verbose = 0});
  EXPECT_EQ(history["loss"].size(), 3U);
  const Evaluation wanted = model.evaluate(data);

  Training other(3);
  const Evaluation found = evaluate_record(other.strategy, folder / "record", in_memory_blobs(60));
  EXPECT_EQ(found.examples, 60);
  EXPECT_NEAR(found.loss, wanted.loss, 1e-6);  // of three replicas
  EXPECT_EQ(found.accuracy, wanted.accuracy);
  const Predictions predicted = predict_record(other.strategy, folder / "record", in_memory_blobs(60));
  EXPECT_EQ(predicted.shape, (Shape{60, 4}));
  EXPECT_EQ(record.train(data, 5, {.verbose = 0})["loss"].size(), 5U) << "goes on where it ended";
  EXPECT_EQ(model.global_step(), 40U);
}

}  // namespace
}  // namespace headrace::test

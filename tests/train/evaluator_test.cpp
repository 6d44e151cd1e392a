// One Evaluator for all of it: passes over a loader or a data set, results, and what it refuses.
#include "headrace/train/evaluator.h"
#include "headrace/tests/train/training_fixture.h"

namespace headrace::test {
namespace {

TEST(Evaluator, EachPassOverALoaderIsAnEvaluation) {
  const Dataset data = loop_data(16, 27);
  Training training(2);
  Model model = compiled(training.strategy, small_cnn);
  Loader loader(data, training.devices, {.epochs = 3});
  Evaluator evaluator(model, loader, {.views = mirrored_views()});
  evaluator.warm_up();
  for (int pass = 0; pass < 3; ++pass) {
    const Evaluation expected = model.evaluate(data, {.views = mirrored_views()});
    const Evaluation made = evaluator.evaluate();
    EXPECT_EQ(made.loss, expected.loss);
    EXPECT_EQ(made.accuracy, expected.accuracy);
    EXPECT_EQ(made.examples, 27);
    model.fit(data, {.verbose = 0});
  }
}

TEST(Evaluator, PredictsFromALoaderAsTheModelDoes) {
  const Dataset data = loop_data(16, 27);
  Training training(2);
  Model model = training.strategy.build(small_cnn, {.seed = 3});  // not compiled
  const Predictions expected = model.predict(data);
  Loader loader(data, training.devices, {.epochs = 2});
  Evaluator evaluator(model, loader, {}, Mode::kPredict);
  for (int pass = 0; pass < 2; ++pass) {
    const Predictions made = evaluator.predict();
    EXPECT_EQ(made.values, expected.values);
    EXPECT_EQ(made.records, expected.records);
    EXPECT_EQ(made.shape, expected.shape);
  }
}

TEST(Evaluator, VirtualShardsOfALoader) {
  const Dataset data = loop_data(16, 27);
  Training training(2);
  Model model = compiled(training.strategy, small_cnn);
  const Evaluation expected = model.evaluate(data, {.virtual_shards = 4});
  DeviceGroup shards = training.devices.repeated(2);
  Loader loader(data, shards, {.epochs = 2});
  Evaluator evaluator(model, loader, {.virtual_shards = 4});
  EXPECT_EQ(evaluator.evaluate().loss, expected.loss);
  EXPECT_TRUE(evaluator.step());
  EXPECT_THAT(message_of([&] { evaluator.forward(*evaluator.take()); }), HasSubstr("virtual shards share memory"));
  EXPECT_THAT(message_of([&] { Evaluator(model, loader); }),
              HasSubstr("among 4 replicas, the evaluation among 2"));
}

// The steps of a loop take the averages, too, as they are then.
TEST(Evaluator, AveragedWeightsBatchByBatch) {
  const Dataset data = loop_data(16, 27);
  Training training(2);
  Optimizer averaging = sgd(0.1F);
  averaging.average = WeightAverage{.decay = 0.5F};
  Model model = compiled(training.strategy, small_cnn, averaging);
  Loader loader(data, training.devices);
  Evaluator evaluator(model, loader, {.averaged_weights = true});
  model.fit(data, {.epochs = 2, .verbose = 0});
  const Evaluation expected = model.evaluate(data, {.averaged_weights = true});
  EXPECT_NE(expected.loss, model.evaluate(data).loss);
  while (evaluator.step()) {
  }
  EXPECT_EQ(mean_loss(evaluator.finish()), expected.loss);
}

TEST(Evaluator, AStopEndsAPass) {
  Training training;
  Model model = compiled(training.strategy, small_cnn);
  const std::atomic<bool> stop = true;
  Loader loader(loop_data(), training.devices);
  Evaluator evaluator(model, loader, {.stop = &stop});
  EXPECT_EQ(evaluator.pass(), std::nullopt);
  EXPECT_THROW(evaluator.evaluate(), Error);
  Evaluator predicting(model, loader, {.stop = &stop}, Mode::kPredict);
  EXPECT_THROW(predicting.predict(), Error);
}

TEST(Evaluator, RefusesWhatItsModeDoesNotDo) {
  Training training;
  Model model = training.strategy.build(small_cnn);
  const Dataset data = loop_data();
  EXPECT_THAT(message_of([&] { Evaluator(model, data); }), HasSubstr("needs a compiled model"));
  EXPECT_THAT(message_of([&] { Evaluator(model, data, {}, Mode::kTrain); }), HasSubstr("does not train"));
  EXPECT_THAT(message_of([&] { Evaluator(model, data, {.views = mirrored_views()}, Mode::kPredict); }),
              HasSubstr("takes no views"));
  Evaluator predicting(model, data, {}, Mode::kPredict);
  EXPECT_THAT(message_of([&] { predicting.evaluate(); }), HasSubstr("this Evaluator predicts"));
  EXPECT_THAT(message_of([&] { predicting.step(); }), HasSubstr("this Evaluator predicts"));
  predicting.predict();
  EXPECT_THAT(message_of([&] { predicting.predict(); }), HasSubstr("this prediction has been run"));
  model.compile({});
  Evaluator counting(model, data);
  EXPECT_THAT(message_of([&] { counting.predict(); }), HasSubstr("this Evaluator counts"));
}

}  // namespace
}  // namespace headrace::test

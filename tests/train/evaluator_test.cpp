// The evaluator, and records that are skipped.
#include "headrace/train/evaluator.h"
#include "headrace/tests/train/training_fixture.h"

namespace headrace::test {
namespace {

// One Evaluator for all of it: passes over a loader or a data set, results, and what it refuses.

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

// Records that are skipped weigh nothing: not in a gradient, not in the loss, not in the accuracy.

constexpr float kRotten = 99;
const ErrorPolicy kSkip{.on_error = OnError::kSkip, .max_bad_share = 1};

// 40 records; with `rotten` ones, every fifth more is one that cannot be used.
Dataset records_with(bool rotten) {
  std::vector<float> images;
  std::vector<std::int64_t> labels;
  Philox random({.seed = 1});
  for (std::int64_t i = 0; i < 40; ++i) {
    if (rotten && i % 4 == 1) {
      images.insert(images.end(), 8, kRotten);
      labels.push_back(0);
    }
    labels.push_back(i % 4);
    for (std::int64_t k = 0; k < 8; ++k) images.push_back(random.uniform() + (k % 4 == i % 4 ? 1.0F : 0.0F));
  }
  UserMap inspect{.name = "inspect", .output = {.dtype = DType::kF32, .shape = {8}}};
  inspect.function = [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox&) {
    float first = 0;
    std::memcpy(&first, in.data(), sizeof first);
    if (first == kRotten) throw std::runtime_error("rotten");
    std::memcpy(out.data(), in.data(), out.size());
  };
  return labelled({8}, images, labels).map(user_map(std::move(inspect))).batch({.global_batch = rotten ? 10 : 8});
}

TEST(Skipped, TrainsAsIfTheyHadNeverBeen) {
  for (const int replicas : {1, 3}) {
    for (const int accumulate : {1, 2}) {
      const auto run = [&](bool rotten, std::vector<float>& weights) {
        Training training(replicas);
        Model model = compiled(training.strategy, small_mlp);
        const Dataset from = records_with(rotten);
        History history = model.fit(from, {.epochs = 3,
                                           .validation = from,
                                           .verbose = 0,
                                           .input = {.threads = 2, .errors = kSkip},
                                           .step = {.accumulate = accumulate}});
        weights = model.read_variable(model.variable_names().front());
        const Evaluation test = model.evaluate(from, {.input = {.errors = kSkip}});
        EXPECT_EQ(test.examples, 40);
        return history;
      };
      std::vector<float> with, without;
      const History rotten = run(true, with), good = run(false, without);
      for (std::size_t epoch = 0; epoch < 3; ++epoch) {
        for (const char* figure : {"loss", "accuracy", "val_loss", "val_accuracy"}) {
          EXPECT_NEAR(rotten[figure][epoch], good[figure][epoch], 1e-5 * slack())
              << figure << " of epoch " << epoch;
        }
      }
      for (std::size_t i = 0; i < with.size(); ++i) EXPECT_NEAR(with[i], without[i], 1e-5 * slack()) << i;
    }
  }
}

TEST(Skipped, AnEpochOfNothingElseIsAnErrorAndChangesNothing) {
  Training training(2);
  Model model = compiled(training.strategy, small_mlp, sgd(0.1F));
  const Dataset rotten = labelled({8}, std::vector<float>(64, kRotten), std::vector<std::int64_t>(8, 1))
                             .map(user_map({.name = "never",
                                            .output = {.dtype = DType::kF32, .shape = {8}},
                                            .function = [](auto&&...) { throw std::runtime_error("rotten"); }}))
                             .batch({.global_batch = 4});
  const std::string before = model.weights_sha256();
  EXPECT_THROW(model.fit(rotten, {.verbose = 0, .input = {.errors = kSkip}}), DataError);
  EXPECT_EQ(model.weights_sha256(), before);
  EXPECT_THROW(model.evaluate(rotten, {.input = {.errors = kSkip}}), DataError);
  // Nor is a part of an epoch.
  EXPECT_THROW(model.fit(rotten, {.steps_per_epoch = 1, .verbose = 0, .input = {.errors = kSkip}}), Error);
  EXPECT_THROW(model.evaluate(rotten, {.steps = 1, .input = {.errors = kSkip}}), Error);
}

}  // namespace
}  // namespace headrace::test

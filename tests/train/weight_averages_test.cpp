// Averages of the weights, which are evaluated in their place.
#include "headrace/tests/train/training_fixture.h"

namespace headrace::test {
namespace {

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

}  // namespace
}  // namespace headrace::test

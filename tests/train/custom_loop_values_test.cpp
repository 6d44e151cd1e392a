// What lies between the pieces of a step: it can be read, and gradients can be changed.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/trainer.h"

namespace headrace {
namespace {

using test::loop_data;
using test::Training;

TEST(CustomLoop, PredictionsAreThoseOfTheModel) {
  Training training(2);
  Model model = test::compiled(training.strategy, test::small_cnn);
  const Dataset data = loop_data(16, 27);
  const Predictions expected = model.predict(data);
  Loader loader(data, training.devices);
  Evaluator evaluator(model, loader);
  std::vector<float> seen;
  while (std::optional<GlobalBatch> batches = evaluator.take()) {
    const ForwardPass& pass = evaluator.forward(std::move(*batches));
    training.strategy.run([&](const ReplicaContext& replica) {
      const std::vector<float> all = replica.read<float>(pass.predictions(replica.index));
      seen.insert(seen.end(), all.begin(), all.begin() + 4 * pass.examples(replica.index));
    });
  }
  EXPECT_EQ(seen, expected.values);
}

// A loss's own values, whatever it is made of.
TEST(CustomLoop, ExampleLossesAverageToTheLoss) {
  const Net ending_in_softmax = [](Graph& g) { return g.softmax(test::small_mlp(g)); };
  const Loss sparse = sparse_categorical_crossentropy();
  const Loss fused = sparse_categorical_crossentropy({.from_logits = false, .label_smoothing = 0.1F});
  const Loss hosted = host_loss("first", [](const HostExample& example) {
    std::ranges::fill(example.gradient, 0.0F);
    return static_cast<double>(example.result[0]) + static_cast<double>(example.class_number);
  });
  const std::vector<std::pair<Net, Loss>> cases = {
      {test::small_mlp, sparse}, {ending_in_softmax, fused}, {test::small_mlp, 0.25F * sparse + 0.75F * hosted}};
  for (const auto& [net, loss] : cases) {
    Training training(3);
    Model model = training.strategy.build(net, {.seed = 3});
    model.compile({.loss = loss});
    Loader loader(test::blobs(17).batch({.global_batch = 7}), training.devices);  // the last batch has 3
    Trainer trainer(training.strategy, model, loader);
    while (std::optional<GlobalBatch> batches = trainer.take()) {
      const ForwardPass& pass = trainer.forward(std::move(*batches));
      const std::vector<double> losses = training.strategy.run([&](const ReplicaContext& replica) {
        const std::vector<float> each = pass.example_losses(replica.index);
        EXPECT_EQ(static_cast<std::int64_t>(each.size()), pass.examples(replica.index));
        return compute_average_loss(each, pass.global_examples());
      });
      EXPECT_NEAR(training.strategy.reduce(ReduceOp::kSum, losses), mean_loss(trainer.finish()),
                  1e-6 * test::slack());
      trainer.backward();
      trainer.all_reduce();
      trainer.apply_gradients();
      trainer.reset_metrics();
    }
  }
}

TEST(CustomLoop, AScalarLossIsRefused) { EXPECT_THROW(compute_average_loss(0.5, 8), ConfigError); }

TEST(CustomLoop, GradientsCanBeChangedBeforeTheUpdate) {
  const auto trained = [](float rate, float factor) {
    Training training(2);
    Model model = test::compiled(training.strategy, test::small_cnn, sgd(rate));
    Loader loader(loop_data(), training.devices);
    Trainer trainer(training.strategy, model, loader);
    while (std::optional<GlobalBatch> batches = trainer.take()) {
      trainer.gradients(std::move(*batches));
      trainer.all_reduce();
      training.strategy.run([&](const ReplicaContext& replica) {
        for (const std::string& name : model.variable_names()) {
          const TensorView gradient = trainer.gradient(name, replica.index);
          replica.kernels.scale(replica.stream, {gradient, gradient, factor});
        }
      });
      trainer.apply_gradients();
    }
    trainer.finish();
    model.check_mirrored();
    return model.weights_sha256();
  };
  EXPECT_EQ(trained(0.5F, 0.25F), trained(0.125F, 1.0F)) << "powers of two: the same bits";
  EXPECT_NE(trained(0.5F, 0.25F), trained(0.5F, 1.0F));
}

TEST(CustomLoop, GradientsAreEachReplicasUntilTheyAreSummed) {
  Training training(2);
  Model model = test::compiled(training.strategy, test::norm_cnn);
  Loader loader(loop_data(), training.devices);
  Trainer trainer(training.strategy, model, loader);
  const auto read = [&] {
    return training.strategy.run([&](const ReplicaContext& replica) {
      return replica.read<float>(trainer.gradient("dense/bias", replica.index));
    });
  };
  trainer.gradients(*trainer.take());
  const std::vector<std::vector<float>> parts = read();
  trainer.all_reduce();
  const std::vector<std::vector<float>> sums = read();
  EXPECT_NE(parts[0], parts[1]);
  EXPECT_EQ(sums[0], sums[1]);
  for (std::size_t i = 0; i < sums[0].size(); ++i) EXPECT_EQ(sums[0][i], parts[0][i] + parts[1][i]);
  EXPECT_THROW(trainer.gradient("batch_norm/running_mean", 0), ConfigError);
  EXPECT_THROW(trainer.gradient("dense/nothing", 0), ConfigError);
}

TEST(CustomLoop, TestingEqualsEvaluation) {
  const Dataset data = loop_data(16, 27);
  for (const int replicas : {1, 4}) {
    Training training(replicas);
    Model model = training.strategy.build(test::small_cnn, {.seed = 3});
    model.compile({.metrics = {accuracy(), top_k(2), confusion_matrix()}});
    const Evaluation expected = model.evaluate(data);
    Loader loader(data, training.devices, {.epochs = 2});
    Evaluator evaluator(model, loader);
    while (evaluator.step()) {
    }
    EXPECT_EQ(evaluator.finish().examples, 54);
    EXPECT_EQ(mean_accuracy(evaluator.finish()), expected.accuracy);
    EXPECT_NEAR(mean_loss(evaluator.finish()), expected.loss, 1e-12);
    ASSERT_EQ(evaluator.metrics().size(), 3U);
    EXPECT_EQ(evaluator.metrics()[1].values, expected.metrics[1].values);
    evaluator.reset_metrics();
    EXPECT_EQ(evaluator.finish().examples, 0);
  }
}

}  // namespace
}  // namespace headrace

// The trainer, and the documents' MNIST program.
#include "headrace/train/trainer.h"
#include "headrace/tests/support/data.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/nets.h"

namespace headrace::test {
namespace {

Dataset toy() { return blobs(50, {6, 6, 2}).batch({.global_batch = 16}); }

TEST(Trainer, TheStepInPiecesEqualsTheStep) {
  std::vector<std::string> hashes;
  std::vector<double> losses;
  for (const bool pieces : {false, true}) {
    Training training(2);
    Model model = compiled(training.strategy, norm_cnn);
    Loader loader(toy(), training.devices);
    Trainer trainer(training.strategy, model, loader);
    if (!pieces) {
      while (trainer.step()) {
      }
    } else {
      while (std::optional<GlobalBatch> batches = trainer.take()) {
        trainer.gradients(std::move(*batches));
        trainer.all_reduce();
        trainer.apply_gradients();
      }
    }
    const MetricSums sums = trainer.finish();
    EXPECT_EQ(sums.examples, 50);
    EXPECT_EQ(model.global_step(), 4U);
    losses.push_back(sums.loss);
    hashes.push_back(model.weights_sha256());
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(hashes[0], hashes[1]);
}

TEST(Trainer, MetricsCountEveryExampleOnce) {
  Training training(4);
  Model model = compiled(training.strategy, small_cnn, sgd(0.0F));
  Loader loader(blobs(7, {6, 6, 2}).batch({.global_batch = 3}), training.devices);
  Trainer trainer(training.strategy, model, loader);
  EXPECT_TRUE(trainer.step());
  EXPECT_EQ(trainer.finish().examples, 3);
  trainer.reset_metrics();
  EXPECT_TRUE(trainer.step());
  EXPECT_TRUE(trainer.step());
  EXPECT_FALSE(trainer.step());
  EXPECT_EQ(trainer.finish().examples, 4);
  EXPECT_EQ(trainer.progress().examples, 4);
}

TEST(Trainer, RefusesAModelOfAnotherStrategy) {
  Training mine, other;
  Model model = compiled(other.strategy, small_cnn);
  Loader loader(toy(), mine.devices);
  EXPECT_THAT(error_of<ConfigError>([&] { Trainer trainer(mine.strategy, model, loader); }).what(),
              HasSubstr("another strategy"));
}

TEST(Trainer, RefusesALoaderThatServesOtherReplicas) {
  Training training(2);
  Model model = compiled(training.strategy, small_mlp);
  EXPECT_EQ(training.strategy.world(), (World{.total = 2}));
  for (const World world : {World{.total = 4}, World{.total = 4, .first = 2}}) {
    Loader loader(blobs(20).batch({.global_batch = 5}), training.devices, {.world = world});
    EXPECT_NE(error_of<ConfigError>([&] { Trainer trainer(training.strategy, model, loader); })
                  .message()
                  .find("of 4, the training has those from 0 on of 2"),
              std::string::npos);
  }
}

TEST(Trainer, TheScheduleIsEvaluatedAtEveryStep) {
  // With plain SGD on a constant gradient direction the first update is exactly rate x gradient.
  const auto moved = [](const Schedule& rate, int steps) {
    Training training;
    Model model = compiled(training.strategy, small_cnn, sgd(rate));
    const std::vector<float> before = model.read_variable("dense/bias");
    LoaderOptions options;
    options.epochs = 10;
    Loader loader(toy(), training.devices, options);
    Trainer trainer(training.strategy, model, loader);
    for (int i = 0; i < steps; ++i) trainer.step();
    trainer.finish();
    float distance = 0;
    const std::vector<float> after = model.read_variable("dense/bias");
    for (std::size_t i = 0; i < before.size(); ++i) distance += std::abs(after[i] - before[i]);
    return distance;
  };
  const Schedule warmed = Schedule::linear_decay({.peak = 0.1F, .warmup_steps = 10, .total_steps = 20});
  EXPECT_NEAR(moved(warmed, 1), 0.1F * moved(0.1F, 1), 1e-6F);
  EXPECT_NEAR(moved(warmed, 25), moved(warmed, 20), 1e-7F) << "the rate is 0 at the end";
}

// The documents' MNIST program: their accuracy after one and two epochs.

TEST(Mnist, TheMlpReachesTheDocumentedAccuracy) {
  const auto folder = shared_data("mnist");
  if (!folder) GTEST_SKIP() << "no MNIST: name the data's folder in HEADRACE_DATA";
  const Dataset all = Dataset::from(idx_folder(*folder, Split::kTrain));
  const Dataset train = all.take(50'000).shuffle().batch({.global_batch = 32});
  const Dataset validation = all.skip(50'000).batch({.global_batch = 250});
  const Dataset held_out = Dataset::from(idx_folder(*folder, Split::kTest)).batch({.global_batch = 250});

  Training training;
  Model model = training.strategy.build(mnist_mlp, {.fields = train.fields()});
  model.compile({});
  const History history = model.fit(train, {.epochs = 2, .validation = validation, .verbose = 0});
  EXPECT_EQ(history["steps"][0], 1563);
  EXPECT_GE(history["val_accuracy"][0], 0.957);
  EXPECT_GE(model.evaluate(held_out).accuracy, 0.967);
}

}  // namespace
}  // namespace headrace::test

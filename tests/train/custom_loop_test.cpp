// Custom training loops: a loss in the place of the built-in one, and the pieces of a step against the step.
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

// In a replica's share of a pass: cross-entropy as a user would write it. Returns each example's loss.
std::vector<float> own_cross_entropy(const ReplicaContext& replica, const ForwardPass& pass) {
  const std::vector<float> logits = replica.read<float>(pass.predictions(replica.index));
  const auto labels = replica.read<std::int64_t>(pass.labels(replica.index));
  const std::size_t classes = logits.size() / labels.size();
  std::vector<float> losses, gradients(logits.size());
  for (std::size_t i = 0; i < static_cast<std::size_t>(pass.examples(replica.index)); ++i) {
    const float* row = &logits[i * classes];
    const float max = *std::max_element(row, row + classes);
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(row[c] - max));
    const auto label = static_cast<std::size_t>(labels[i]);
    losses.push_back(static_cast<float>(std::log(sum) - (row[label] - max)));
    for (std::size_t c = 0; c < classes; ++c) {
      const double probability = std::exp(static_cast<double>(row[c] - max)) / sum;
      gradients[i * classes + c] = pass.gradient_scale() * static_cast<float>(probability - (c == label ? 1 : 0));
    }
  }
  replica.write<float>(pass.prediction_gradients(replica.index), gradients);
  return losses;
}

struct LoopRun {
  int replicas = 1;
  int accumulate = 1;
  std::int64_t batch = 16;
  Net net = small_cnn;
  Optimizer optimizer = adam(1e-2F);
};

struct LoopOutcome {
  std::vector<double> losses;  // of each batch
  std::vector<std::vector<float>> variables;
};

void expect_same_training(const LoopOutcome& a, const LoopOutcome& b) {
  ASSERT_EQ(a.losses.size(), b.losses.size());
  for (std::size_t i = 0; i < a.losses.size(); ++i) EXPECT_NEAR(a.losses[i], b.losses[i], 1e-5 * slack());
  for (std::size_t v = 0; v < a.variables.size(); ++v) {
    for (std::size_t i = 0; i < a.variables[v].size(); ++i) {
      ASSERT_NEAR(a.variables[v][i], b.variables[v][i], 1e-3 * slack()) << "variable " << v << "[" << i << "]";
    }
  }
}

// Two passes, with the loss above in place of another that the model is compiled with.
LoopOutcome train_with_own_loss(const LoopRun& run) {
  Training training(run.replicas);
  Strategy& strategy = training.strategy;
  Model model = strategy.build(run.net, {.seed = 3});
  model.compile({.optimizer = run.optimizer, .loss = sparse_categorical_crossentropy({.label_smoothing = 0.5F})});
  Loader loader(loop_data(run.batch), training.devices, {.epochs = 2});
  Trainer trainer(strategy, model, loader);
  LoopOutcome outcome;
  while (std::optional<GlobalBatch> batches = trainer.take()) {
    const ForwardPass& pass = trainer.forward(std::move(*batches));
    const std::vector<double> losses = strategy.run([&](const ReplicaContext& replica) {
      return compute_average_loss(own_cross_entropy(replica, pass), pass.global_examples());
    });
    outcome.losses.push_back(strategy.reduce(ReduceOp::kSum, losses));
    trainer.backward();
    trainer.all_reduce();
    trainer.apply_gradients();
  }
  trainer.finish();
  model.check_mirrored();
  outcome.variables = variables_of(model);
  return outcome;
}

// The same with the loss that the model is compiled with, in whole steps.
LoopOutcome train_in_steps(const LoopRun& run) {
  Training training(run.replicas);
  Model model = compiled(training.strategy, run.net, run.optimizer);
  Loader loader(loop_data(run.batch), training.devices, {.epochs = 2});
  Trainer trainer(training.strategy, model, loader, {.step = {.accumulate = run.accumulate}});
  LoopOutcome outcome;
  while (trainer.step()) {
    outcome.losses.push_back(mean_loss(trainer.finish()));
    trainer.reset_metrics();
  }
  outcome.variables = variables_of(model);
  return outcome;
}

TEST(CustomLoop, ALossOfOnesOwnTrainsAsTheSameLossBuiltIn) {
  const LoopOutcome expected = train_in_steps({});
  for (const int replicas : {1, 2, 4}) expect_same_training(expected, train_with_own_loss({.replicas = replicas}));
}

TEST(CustomLoop, PiecesOfEveryOptimizerGiveTheStepsBits) {
  for (const Net& net : {Net(small_cnn), Net(norm_cnn)}) {
    const Optimizer optimizer = with_all_around(grouped());
    const LoopRun run{.replicas = 2, .net = net, .optimizer = optimizer};
    Training training(2);
    Model model = compiled(training.strategy, net, optimizer);
    Loader loader(loop_data(), training.devices, {.epochs = 2});
    Trainer trainer(training.strategy, model, loader);
    while (std::optional<GlobalBatch> batches = trainer.take()) {
      trainer.gradients(std::move(*batches));
      trainer.all_reduce();
      trainer.apply_gradients();
    }
    trainer.finish();
    EXPECT_EQ(variables_of(model), train_in_steps(run).variables);
  }
}

TEST(CustomLoop, GradientsOfSeveralBatchesAreThoseOfALargerOne) {
  for (const int replicas : {1, 2, 4}) {
    Training training(replicas);
    Model model = compiled(training.strategy, small_cnn);
    Loader loader(loop_data(4), training.devices,
                  {.epochs = 2});  // 13 batches an epoch, the last one of 2 examples
    Trainer trainer(training.strategy, model, loader, {.step = {.accumulate = 4}});
    bool more = true;
    while (more) {
      int batches_of_step = 0;
      bool last = false;
      while (batches_of_step < 4 && !last) {
        std::optional<GlobalBatch> batches = trainer.take();
        more = batches.has_value();
        if (!more) break;
        last = batches->front().position().last_of_epoch;
        trainer.gradients(std::move(*batches));
        ++batches_of_step;
      }
      if (batches_of_step == 0) break;
      trainer.all_reduce();
      trainer.apply_gradients();
    }
    trainer.finish();
    EXPECT_EQ(model.global_step(), 8U);
    LoopOutcome outcome = train_in_steps({});
    outcome.losses.clear();
    expect_same_training(outcome, {.losses = {}, .variables = variables_of(model)});
  }
}

TEST(CustomLoop, DiscardedGradientsLeaveNoTrace) {
  std::vector<std::string> weights;
  for (const bool discards : {false, true}) {
    Training training(2);
    Model model = compiled(training.strategy, small_cnn);
    Loader loader(loop_data(10), training.devices);
    Trainer trainer(training.strategy, model, loader, {.step = {.accumulate = 2}});
    GlobalBatch first = *trainer.take();
    if (discards) {
      trainer.gradients(std::move(first));
      trainer.discard_gradients();
    }
    trainer.step();
    trainer.finish();
    weights.push_back(model.weights_sha256());
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(CustomLoop, AccumulatedPiecesGiveTheBitsOfAccumulatedSteps) {
  const LoopRun run{.replicas = 2, .accumulate = 2, .batch = 10};
  Training training(2);
  Model model = compiled(training.strategy, small_cnn);
  Loader loader(loop_data(10), training.devices, {.epochs = 2});
  Trainer trainer(training.strategy, model, loader, {.step = {.accumulate = 2}});
  int pending = 0;
  while (std::optional<GlobalBatch> batches = trainer.take()) {
    const bool last = batches->front().position().last_of_epoch;
    trainer.gradients(std::move(*batches));
    if (++pending < 2 && !last) continue;
    trainer.all_reduce();
    trainer.apply_gradients();
    pending = 0;
  }
  trainer.finish();
  EXPECT_EQ(variables_of(model), train_in_steps(run).variables);
}

TEST(CustomLoop, PiecesOfVirtualShardsGiveTheStepsBits) {
  std::vector<std::string> weights;
  for (const int replicas : {1, 2, 4}) {
    for (const bool pieces : {false, true}) {
      Training training(replicas);
      Model model = compiled(training.strategy, norm_cnn);
      DeviceGroup repeated = training.devices.repeated(4 / replicas);
      Loader loader(loop_data(10), repeated, {.epochs = 2});
      Trainer trainer(training.strategy, model, loader, {.step = {.accumulate = 2, .virtual_shards = 4}});
      while (!pieces && trainer.step()) {
      }
      for (int pending = 0; pieces;) {
        std::optional<GlobalBatch> batches = trainer.take();
        if (!batches) break;
        const bool last = batches->front().position().last_of_epoch;
        trainer.gradients(std::move(*batches));
        if (++pending < 2 && !last) continue;
        trainer.all_reduce();
        trainer.apply_gradients();
        pending = 0;
      }
      trainer.finish();
      weights.push_back(model.weights_sha256());
      EXPECT_EQ(weights.back(), weights.front()) << replicas << (pieces ? ", in pieces" : ", in steps");
    }
  }
}

TEST(CustomLoop, VirtualShardsKeepNoResultsApart) {
  Training training(1);
  Model model = compiled(training.strategy, small_cnn);
  DeviceGroup repeated = training.devices.repeated(4);
  Loader loader(loop_data(), repeated);
  Trainer trainer(training.strategy, model, loader, {.step = {.virtual_shards = 4}});
  EXPECT_THROW(trainer.forward(*trainer.take()), ConfigError);
  EXPECT_TRUE(trainer.step());
}

}  // namespace
}  // namespace headrace::test

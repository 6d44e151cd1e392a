// Training loops of one's own: what lies between the pieces of a step can be read, changed and replaced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "headrace/devices/base/error.h"
#include "headrace/tests/support/undisturbed.h"
#include "headrace/tests/train/toy_data.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/tester.h"
#include "headrace/train/trainer.h"

namespace headrace {
namespace {

using test::Training;
using testing::HasSubstr;

Dataset loop_data(std::int64_t batch = 16, std::int64_t examples = 50) {
  return test::blobs(examples, {6, 6, 2}).batch({.global = batch});
}

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
  Net net = test::small_cnn;
  Optimizer optimizer = adam(1e-2F);
};

struct LoopOutcome {
  std::vector<double> losses;  // of each batch
  std::vector<std::vector<float>> variables;
};

void expect_same_training(const LoopOutcome& a, const LoopOutcome& b) {
  ASSERT_EQ(a.losses.size(), b.losses.size());
  for (std::size_t i = 0; i < a.losses.size(); ++i) EXPECT_NEAR(a.losses[i], b.losses[i], 1e-5 * test::slack());
  for (std::size_t v = 0; v < a.variables.size(); ++v) {
    for (std::size_t i = 0; i < a.variables[v].size(); ++i) {
      ASSERT_NEAR(a.variables[v][i], b.variables[v][i], 1e-3 * test::slack())
          << "variable " << v << "[" << i << "]";
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
  outcome.variables = test::variables_of(model);
  return outcome;
}

// The same with the loss that the model is compiled with, in whole steps.
LoopOutcome train_in_steps(const LoopRun& run) {
  Training training(run.replicas);
  Model model = test::compiled(training.strategy, run.net, run.optimizer);
  Loader loader(loop_data(run.batch), training.devices, {.epochs = 2});
  Trainer trainer(training.strategy, model, loader, {.accumulate = run.accumulate});
  LoopOutcome outcome;
  while (trainer.step()) {
    outcome.losses.push_back(mean_loss(trainer.finish()));
    trainer.reset_metrics();
  }
  outcome.variables = test::variables_of(model);
  return outcome;
}

TEST(CustomLoop, ALossOfOnesOwnTrainsAsTheSameLossBuiltIn) {
  const LoopOutcome expected = train_in_steps({});
  for (const int replicas : {1, 2, 4}) expect_same_training(expected, train_with_own_loss({.replicas = replicas}));
}

TEST(CustomLoop, PiecesOfEveryOptimizerGiveTheStepsBits) {
  for (const Net& net : {Net(test::small_cnn), Net(test::norm_cnn)}) {
    const Optimizer optimizer = test::with_all_around(test::grouped());
    const LoopRun run{.replicas = 2, .net = net, .optimizer = optimizer};
    Training training(2);
    Model model = test::compiled(training.strategy, net, optimizer);
    Loader loader(loop_data(), training.devices, {.epochs = 2});
    Trainer trainer(training.strategy, model, loader);
    while (std::optional<GlobalBatch> batches = trainer.take()) {
      trainer.gradients(std::move(*batches));
      trainer.all_reduce();
      trainer.apply_gradients();
    }
    trainer.finish();
    EXPECT_EQ(test::variables_of(model), train_in_steps(run).variables);
  }
}

TEST(CustomLoop, GradientsOfSeveralBatchesAreThoseOfALargerOne) {
  for (const int replicas : {1, 2, 4}) {
    Training training(replicas);
    Model model = test::compiled(training.strategy, test::small_cnn);
    Loader loader(loop_data(4), training.devices,
                  {.epochs = 2});  // 13 batches an epoch, the last one of 2 examples
    Trainer trainer(training.strategy, model, loader, {.accumulate = 4});
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
    expect_same_training(outcome, {.losses = {}, .variables = test::variables_of(model)});
  }
}

TEST(CustomLoop, DiscardedGradientsLeaveNoTrace) {
  std::vector<std::string> weights;
  for (const bool discards : {false, true}) {
    Training training(2);
    Model model = test::compiled(training.strategy, test::small_cnn);
    Loader loader(loop_data(10), training.devices);
    Trainer trainer(training.strategy, model, loader, {.accumulate = 2});
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
  Model model = test::compiled(training.strategy, test::small_cnn);
  Loader loader(loop_data(10), training.devices, {.epochs = 2});
  Trainer trainer(training.strategy, model, loader, {.accumulate = 2});
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
  EXPECT_EQ(test::variables_of(model), train_in_steps(run).variables);
}

TEST(CustomLoop, PiecesOfVirtualShardsGiveTheStepsBits) {
  std::vector<std::string> weights;
  for (const int replicas : {1, 2, 4}) {
    for (const bool pieces : {false, true}) {
      Training training(replicas);
      Model model = test::compiled(training.strategy, test::norm_cnn);
      DeviceGroup repeated = training.devices.repeated(4 / replicas);
      Loader loader(loop_data(10), repeated, {.epochs = 2});
      Trainer trainer(training.strategy, model, loader, {.accumulate = 2, .virtual_shards = 4});
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
  Model model = test::compiled(training.strategy, test::small_cnn);
  DeviceGroup repeated = training.devices.repeated(4);
  Loader loader(loop_data(), repeated);
  Trainer trainer(training.strategy, model, loader, {.virtual_shards = 4});
  EXPECT_THROW(trainer.forward(*trainer.take()), ConfigError);
  EXPECT_TRUE(trainer.step());
}

TEST(CustomLoop, PredictionsAreThoseOfTheModel) {
  Training training(2);
  Model model = test::compiled(training.strategy, test::small_cnn);
  const Dataset data = loop_data(16, 27);
  const Predictions expected = model.predict(data);
  Loader loader(data, training.devices);
  Tester tester(training.strategy, model, loader);
  std::vector<float> seen;
  while (std::optional<GlobalBatch> batches = tester.take()) {
    const ForwardPass& pass = tester.forward(std::move(*batches));
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
    Loader loader(test::blobs(17).batch({.global = 7}), training.devices);  // the last batch has 3
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
          replica.kernels.scale(replica.stream, gradient, factor, gradient);
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

TEST(CustomLoop, AnOrderThatWouldLoseGradientsIsRefused) {
  Training training(2);
  Model model = test::compiled(training.strategy, test::small_cnn);
  Loader loader(loop_data(8), training.devices, {.epochs = 2});
  const auto refused = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "nothing was refused";
  };
  Trainer trainer(training.strategy, model, loader);
  EXPECT_THAT(refused([&] { trainer.backward(); }), HasSubstr("needs a forward()"));
  EXPECT_THAT(refused([&] { trainer.all_reduce(); }), HasSubstr("without gradients"));
  EXPECT_THAT(refused([&] { trainer.apply_gradients(); }), HasSubstr("before all_reduce()"));
  trainer.forward(*trainer.take());
  EXPECT_THAT(refused([&] { trainer.all_reduce(); }), HasSubstr("without its backward()"));
  trainer.forward(*trainer.take());  // the one before was only looked at
  trainer.backward();
  EXPECT_THAT(refused([&] { trainer.gradients(*trainer.take()); }), HasSubstr("TrainerOptions::accumulate"));
  EXPECT_THAT(refused([&] { trainer.step(); }), HasSubstr("not used yet"));
  EXPECT_THAT(refused([&] { trainer.apply_gradients(); }), HasSubstr("before all_reduce()"));
  trainer.discard_gradients();
  EXPECT_THAT(refused([&] { trainer.all_reduce(); }), HasSubstr("without gradients"));
  trainer.gradients(*trainer.take());
  trainer.all_reduce();
  EXPECT_THAT(refused([&] { trainer.gradients(*trainer.take()); }), HasSubstr("call apply_gradients()"));
  trainer.apply_gradients();
  EXPECT_TRUE(trainer.step());
  trainer.finish();
  EXPECT_EQ(model.global_step(), 2U);
  EXPECT_THAT(refused([&] { trainer.forward(*trainer.take()).labels(0, "colour"); }), HasSubstr("they use label"));
}

TEST(CustomLoop, GoesOnFromAnyStep) {
  const Schedule falling = Schedule::linear_decay({.peak = 0.2F, .total_steps = 8});
  const Dataset data = test::blobs(64, {6, 6, 2}).shuffle().batch({.global = 8});
  Training whole(2);
  Model expected = test::compiled(whole.strategy, test::small_cnn, sgd(falling));
  Loader all(data, whole.devices);
  Trainer trainer(whole.strategy, expected, all);
  std::vector<std::vector<float>> halfway;
  LoaderState position;
  while (trainer.step()) {
    if (expected.global_step() != 5) continue;
    trainer.finish();
    halfway = test::variables_of(expected);
    position = all.state();
  }
  trainer.finish();

  Training later(2);
  Model model = test::compiled(later.strategy, test::small_cnn, sgd(falling));
  for (std::size_t v = 0; v < halfway.size(); ++v) model.write_variable(model.variable_names()[v], halfway[v]);
  Loader rest(data, later.devices, {.start = position});
  Trainer second(later.strategy, model, rest, {.first_step = 5});
  while (second.step()) {
  }
  second.finish();
  EXPECT_EQ(model.global_step(), 8U);
  EXPECT_EQ(model.weights_sha256(), expected.weights_sha256());
}

TEST(CustomLoop, RefusesALoaderOnOtherDevices) {
  Training mine(2), other(2);
  Model model = test::compiled(mine.strategy, test::small_cnn);
  Loader loader(loop_data(), other.devices);
  try {
    Trainer trainer(mine.strategy, model, loader);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("other devices"));
  }
  EXPECT_THROW(Tester(mine.strategy, model, loader), ConfigError);
}

TEST(CustomLoop, TestingEqualsEvaluation) {
  const Dataset data = loop_data(16, 27);
  for (const int replicas : {1, 4}) {
    Training training(replicas);
    Model model = training.strategy.build(test::small_cnn, {.seed = 3});
    model.compile({.metrics = {accuracy(), top_k(2), confusion_matrix()}});
    const Evaluation expected = model.evaluate(data);
    Loader loader(data, training.devices, {.epochs = 2});
    Tester tester(training.strategy, model, loader);
    while (tester.step()) {
    }
    EXPECT_EQ(tester.finish().examples, 54);
    EXPECT_EQ(mean_accuracy(tester.finish()), expected.accuracy);
    EXPECT_NEAR(mean_loss(tester.finish()), expected.loss, 1e-12);
    ASSERT_EQ(tester.metrics().size(), 3U);
    EXPECT_EQ(tester.metrics()[1].values, expected.metrics[1].values);
    tester.reset_metrics();
    EXPECT_EQ(tester.finish().examples, 0);
  }
}

TEST(CustomLoop, TimesTellWhichReplicaTheOthersWaitFor) {
  test::undisturbed([](int slower) {
    Training training("cpu", 3);  // where waits are known
    Model model = test::compiled(training.strategy, test::small_mlp);
    Loader loader(test::blobs(40).batch({.global = 8}), training.devices);
    Trainer trainer(training.strategy, model, loader);
    const std::chrono::milliseconds pause(10 * slower);
    trainer.reset_metrics();
    while (std::optional<GlobalBatch> batches = trainer.take()) {
      trainer.gradients(std::move(*batches));
      training.strategy.on(1, [&](const ReplicaContext& replica) {
        replica.stream.call([pause] { std::this_thread::sleep_for(pause); });
      });
      trainer.all_reduce();
      trainer.apply_gradients();
    }
    trainer.finish();
    const std::vector<StepTimes> times = trainer.replica_times();
    const std::int64_t paused = 5 * std::chrono::nanoseconds(pause).count();
    for (const std::size_t waiting : {0U, 2U}) {
      EXPECT_GT(times[waiting].sync_wait_ns, paused / 2);
      EXPECT_LE(times[waiting].sync_wait_ns, times[waiting].elapsed_ns);
    }
    EXPECT_LT(times[1].sync_wait_ns, paused / 4);
    EXPECT_EQ(trainer.times().sync_wait_ns, times[0].sync_wait_ns + times[1].sync_wait_ns + times[2].sync_wait_ns);
    trainer.reset_metrics();
    EXPECT_EQ(trainer.times().sync_wait_ns, 0);
  });
}

// Split, assign, start, train, release.
TEST(CustomLoop, GivesBackAllMemory) {
  DeviceGroup devices = test::test_devices(4, DeviceNeed::kKernels);
  Buffer others = devices[0].allocate(1 << 16), pinned = devices[0].allocate_pinned(1 << 10);
  DeviceGroup rest = devices.split(2);
  const auto use = [&] {
    std::vector<std::uint64_t> bytes;
    for (const DeviceGroup* group : {&devices, &rest}) {
      for (int i = 0; i < 2; ++i) {
        bytes.push_back((*group)[i].memory_use().device_bytes);
        bytes.push_back((*group)[i].memory_use().pinned_bytes);
      }
    }
    return bytes;
  };
  const std::vector<std::uint64_t> before = use();
  EXPECT_GT(before[0] + before[1], 0U);
  for (DeviceGroup* group : {&devices, &rest}) {
    Strategy strategy(*group, {.announce = false});
    Model model = test::compiled(strategy, test::norm_cnn);
    Loader loader(loop_data(), *group, {.epochs = 2});
    Trainer trainer(strategy, model, loader, {.accumulate = 2});
    const ForwardPass& pass = trainer.forward(*trainer.take());
    pass.example_losses(1);
    trainer.backward();
    trainer.all_reduce();
    trainer.apply_gradients();
    while (trainer.step()) {
    }
    Loader held_out(loop_data(), *group);
    Tester tester(strategy, model, held_out);
    tester.step();
    EXPECT_NE(use(), before);
  }
  EXPECT_EQ(use(), before);
}

}  // namespace
}  // namespace headrace

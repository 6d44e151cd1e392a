// What a custom loop must and may do, and the values that it sees.
#include "headrace/tests/support/long_run.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

// What a custom training loop may do and may not, what it costs, and what it leaves.

TEST(CustomLoop, AnOrderThatWouldLoseGradientsIsRefused) {
  Training training(2);
  Model model = compiled(training.strategy, small_cnn);
  Loader loader(loop_data(8), training.devices, {.epochs = 2});
  Trainer trainer(training.strategy, model, loader);
  EXPECT_THAT(message_of([&] { trainer.backward(); }), HasSubstr("needs a forward()"));
  EXPECT_THAT(message_of([&] { trainer.all_reduce(); }), HasSubstr("without gradients"));
  EXPECT_THAT(message_of([&] { trainer.apply_gradients(); }), HasSubstr("before all_reduce()"));
  trainer.forward(*trainer.take());
  EXPECT_THAT(message_of([&] { trainer.all_reduce(); }), HasSubstr("without its backward()"));
  trainer.forward(*trainer.take());  // the one before was only looked at
  trainer.backward();
  EXPECT_THAT(message_of([&] { trainer.gradients(*trainer.take()); }), HasSubstr("StepOptions::accumulate"));
  EXPECT_THAT(message_of([&] { trainer.step(); }), HasSubstr("not used yet"));
  EXPECT_THAT(message_of([&] { trainer.apply_gradients(); }), HasSubstr("before all_reduce()"));
  trainer.discard_gradients();
  EXPECT_THAT(message_of([&] { trainer.all_reduce(); }), HasSubstr("without gradients"));
  trainer.gradients(*trainer.take());
  trainer.all_reduce();
  EXPECT_THAT(message_of([&] { trainer.gradients(*trainer.take()); }), HasSubstr("call apply_gradients()"));
  trainer.apply_gradients();
  EXPECT_TRUE(trainer.step());
  trainer.finish();
  EXPECT_EQ(model.global_step(), 2U);
  EXPECT_THAT(message_of([&] { trainer.forward(*trainer.take()).labels(0, "colour"); }),
              HasSubstr("they use label"));
}

TEST(CustomLoop, RefusesALoaderOnOtherDevices) {
  Training mine(2), other(2);
  Model model = compiled(mine.strategy, small_cnn);
  Loader loader(loop_data(), other.devices);
  EXPECT_THAT(error_of<ConfigError>([&] { Trainer trainer(mine.strategy, model, loader); }).what(),
              HasSubstr("other devices"));
  EXPECT_THROW(Evaluator(model, loader), ConfigError);
}

TEST(CustomLoop, GoesOnFromAnyStep) {
  const Schedule falling = Schedule::linear_decay({.peak = 0.2F, .total_steps = 8});
  const Dataset data = blobs(64, {6, 6, 2}).shuffle().batch({.global_batch = 8});
  Training whole(2);
  Model expected = compiled(whole.strategy, small_cnn, sgd(falling));
  Loader all(data, whole.devices);
  Trainer trainer(whole.strategy, expected, all);
  std::vector<std::vector<float>> halfway;
  LoaderState position;
  while (trainer.step()) {
    if (expected.global_step() != 5) continue;
    trainer.finish();
    halfway = variables_of(expected);
    position = all.state();
  }
  trainer.finish();

  Training later(2);
  Model model = compiled(later.strategy, small_cnn, sgd(falling));
  for (std::size_t v = 0; v < halfway.size(); ++v) model.write_variable(model.variable_names()[v], halfway[v]);
  Loader rest(data, later.devices, {.start = position});
  Trainer second(later.strategy, model, rest, {.first_step = 5});
  while (second.step()) {
  }
  second.finish();
  EXPECT_EQ(model.global_step(), 8U);
  EXPECT_EQ(model.weights_sha256(), expected.weights_sha256());
}

TEST(CustomLoop, TimesTellWhichReplicaTheOthersWaitFor) {
  undisturbed([](int slower) {
    Training training("cpu", 3);  // where waits are known
    Model model = compiled(training.strategy, small_mlp);
    Loader loader(blobs(40).batch({.global_batch = 8}), training.devices);
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
  DeviceGroup devices = test_devices(4, DeviceNeed::kKernels);
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
    Model model = compiled(strategy, norm_cnn);
    Loader loader(loop_data(), *group, {.epochs = 2});
    Trainer trainer(strategy, model, loader, {.step = {.accumulate = 2}});
    const ForwardPass& pass = trainer.forward(*trainer.take());
    pass.example_losses(1);
    trainer.backward();
    trainer.all_reduce();
    trainer.apply_gradients();
    while (trainer.step()) {
    }
    Loader held_out(loop_data(), *group);
    Evaluator evaluator(model, held_out);
    evaluator.step();
    EXPECT_NE(use(), before);
  }
  EXPECT_EQ(use(), before);
}

// What lies between the pieces of a step: it can be read, and gradients can be changed.

TEST(CustomLoop, PredictionsAreThoseOfTheModel) {
  Training training(2);
  Model model = compiled(training.strategy, small_cnn);
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
  const Net ending_in_softmax = [](Graph& g) { return g.softmax(small_mlp(g)); };
  const Loss sparse = sparse_categorical_crossentropy();
  const Loss fused = sparse_categorical_crossentropy({.from_logits = false, .label_smoothing = 0.1F});
  const Loss hosted = host_loss("first", [](const HostExample& example) {
    std::ranges::fill(example.gradient, 0.0F);
    return static_cast<double>(example.result[0]) + static_cast<double>(example.class_number);
  });
  const std::vector<std::pair<Net, Loss>> cases = {
      {small_mlp, sparse}, {ending_in_softmax, fused}, {small_mlp, 0.25F * sparse + 0.75F * hosted}};
  for (const auto& [net, loss] : cases) {
    Training training(3);
    Model model = training.strategy.build(net, {.seed = 3});
    model.compile({.loss = loss});
    Loader loader(blobs(17).batch({.global_batch = 7}), training.devices);  // the last batch has 3
    Trainer trainer(training.strategy, model, loader);
    while (std::optional<GlobalBatch> batches = trainer.take()) {
      const ForwardPass& pass = trainer.forward(std::move(*batches));
      const std::vector<double> losses = training.strategy.run([&](const ReplicaContext& replica) {
        const std::vector<float> each = pass.example_losses(replica.index);
        EXPECT_EQ(static_cast<std::int64_t>(each.size()), pass.examples(replica.index));
        return compute_average_loss(each, pass.global_examples());
      });
      EXPECT_NEAR(training.strategy.reduce(ReduceOp::kSum, losses), mean_loss(trainer.finish()), 1e-6 * slack());
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
    Model model = compiled(training.strategy, small_cnn, sgd(rate));
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
  Model model = compiled(training.strategy, norm_cnn);
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
    Model model = training.strategy.build(small_cnn, {.seed = 3});
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
}  // namespace headrace::test

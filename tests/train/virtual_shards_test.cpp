// With virtual shards the number of replicas, and that of their threads, changes no bit of the result.
#include "headrace/devices/cpu/cpu_backend.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

constexpr int kShards = 8;

// All kinds of state: dropout, running statistics, a frozen variable, products of both kinds.
Node sharded_cnn(Graph& g) {
  Node x = g.conv(g.input("image", {6, 6, 2}), 4, {.bias = false, .trained_weights = false});
  x = g.relu(g.batch_norm(g.max_pool(x, 2), {.momentum = 0.5F}));
  x = g.dropout(g.conv(x, 8, {.activation = Activation::kGelu}), 0.25F);
  return g.dense(g.flatten(x), 4);
}

// Convolutions of every kind, with groups and windows that are not square.
Node sharded_groups(Graph& g) {
  Node x = g.conv(g.input("image", {6, 6, 2}), 8,
                  {.kernel = {1, 3}, .stride = {1, 2}, .groups = 2, .activation = Activation::kRelu});
  x = g.conv(x, 8, {.kernel = {3, 2}, .dilation = {2, 1}, .groups = 4, .activation = Activation::kGelu});
  x = g.depthwise_conv(x, {.kernel = {2, 3}, .stride = {2, 1}});
  return g.dense(g.flatten(g.conv_transpose(x, 4, {.kernel = {2, 3}, .stride = {2, 1}, .groups = 2})), 4);
}

struct ShardedRun {
  Net net = sharded_cnn;
  std::function<Dataset()> data = [] { return blobs(100, {6, 6, 2}).shuffle().batch({.global_batch = 16}); };
  CompileOptions compiled = {.optimizer = adam(1e-2F)};
  FitOptions fit = {};
  int shards = kShards;
};

struct ShardedOutcome {
  std::string weights;
  std::vector<std::vector<float>> optimizer;
  std::map<std::string, std::vector<double>> history;
  double evaluated = 0;
};

ShardedOutcome train_sharded(const ShardedRun& run, Training& training) {
  Model model = training.strategy.build(run.net, {.seed = 3});
  model.compile(run.compiled);
  FitOptions fit = run.fit;
  fit.epochs = 3;
  fit.verbose = 0;
  fit.validation = run.data();
  fit.step.virtual_shards = run.shards;
  const History history = model.fit(run.data(), fit);
  model.check_mirrored();
  ShardedOutcome outcome;
  outcome.weights = model.weights_sha256();
  for (const std::string& name : model.optimizer_variable_names()) {
    outcome.optimizer.push_back(model.read_variable(name));
  }
  for (const char* name : {"loss", "accuracy", "val_loss", "val_accuracy", "steps"}) {
    outcome.history[name] = history[name];
  }
  EvaluateOptions evaluate{.virtual_shards = run.shards};
  evaluate.input.errors = fit.input.errors;
  outcome.evaluated = model.evaluate(run.data(), evaluate).loss;
  return outcome;
}

void expect_same(const ShardedOutcome& a, const ShardedOutcome& b, const std::string& which) {
  EXPECT_EQ(a.weights, b.weights) << which;
  EXPECT_EQ(a.optimizer, b.optimizer) << which;
  EXPECT_EQ(a.history, b.history) << which;
  EXPECT_EQ(a.evaluated, b.evaluated) << which;
}

void expect_independent(const ShardedRun& run) {
  Training one(1);
  const ShardedOutcome expected = train_sharded(run, one);
  for (const int replicas : {2, 4, 8}) {
    Training training(replicas);
    expect_same(expected, train_sharded(run, training), std::to_string(replicas) + " replicas");
  }
}

TEST(VirtualShards, GiveOneResultWithAPartialLastBatch) { expect_independent({}); }

TEST(VirtualShards, GiveOneResultWithConvolutionsOfGroups) { expect_independent({.net = sharded_groups}); }

TEST(VirtualShards, GiveOneResultWhenABatchIsNotDivisible) {
  expect_independent({.data = [] { return blobs(53, {6, 6, 2}).batch({.global_batch = 19}); }});
}

TEST(VirtualShards, GiveOneResultWhenSomeHaveNoExamples) {
  expect_independent({.data = [] { return blobs(11, {6, 6, 2}).batch({.global_batch = 7}); }});
}

TEST(VirtualShards, GiveOneResultWhenBatchesAreSummed) {
  ShardedRun run{.data = [] { return blobs(53, {6, 6, 2}).batch({.global_batch = 9}); }};
  run.fit.step.accumulate = 3;
  expect_independent(run);
  run.compiled.loss = sparse_categorical_crossentropy({.reduction = Reduction::kSum});
  run.compiled.optimizer = sgd(1e-3F);
  expect_independent(run);
}

TEST(VirtualShards, GiveOneResultWithEveryKindOfUpdate) {
  ShardedRun run;
  run.compiled.optimizer = with_all_around(grouped());
  run.fit.validate_averaged = true;
  expect_independent(run);
}

TEST(VirtualShards, GiveOneResultWithMixedLabels) {
  ShardedRun run{.data = [] {
    return blobs(53, {6, 6, 2}).map(one_hot(4)).shuffle().batch({.global_batch = 16}).map(mixup());
  }};
  run.compiled.loss = categorical_crossentropy();
  run.compiled.metrics = {accuracy(), confusion_matrix()};
  expect_independent(run);
}

TEST(VirtualShards, GiveOneResultInBf16) {
  ShardedRun run;
  run.compiled.precision = Precision::kBF16;
  expect_independent(run);
}

TEST(VirtualShards, GiveOneResultWhereEpochsAreNoPasses) {
  ShardedRun run;
  run.fit.steps_per_epoch = 5;
  run.fit.stop_after_steps = 13;
  expect_independent(run);
}

// Rows of a record that is skipped leave a shard smaller: the same shard with any number of replicas.
TEST(VirtualShards, GiveOneResultWhereRecordsAreSkipped) {
  ShardedRun run{.data = [] {
    UserMap inspect{.name = "inspect", .output = {.dtype = DType::kF32, .shape = {6, 6, 2}}};
    inspect.function = [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox&) {
      float first = 0;
      std::memcpy(&first, in.data(), sizeof first);
      if (first > 1.2F) throw std::runtime_error("too bright");
      std::memcpy(out.data(), in.data(), out.size());
    };
    return blobs(100, {6, 6, 2}).map(user_map(std::move(inspect))).batch({.global_batch = 16});
  }};
  run.fit.input.errors = {.on_error = OnError::kSkip, .max_bad_share = 1};
  expect_independent(run);
}

void expect_independent_of_threads(const ShardedRun& run) {
  std::optional<ShardedOutcome> expected;
  for (const int threads : {1, 2, 3}) {
    std::vector<std::unique_ptr<Device>> devices;
    devices.push_back(std::make_unique<CpuDevice>("cpu:0", threads));
    Training training{DeviceGroup(std::move(devices))};
    const ShardedOutcome outcome = train_sharded(run, training);
    if (expected) expect_same(*expected, outcome, std::to_string(threads) + " threads");
    expected = outcome;
  }
}

TEST(VirtualShards, DoNotDependOnThreads) {
  expect_independent_of_threads({});
  expect_independent_of_threads({.net = sharded_groups});
}

// Where nothing but the order of sums differs, they are what a step without them is, within rounding.
TEST(VirtualShards, AreAStepWithoutThem) {
  const auto fit = [](int shards) {
    Training training(1);
    Model model = compiled(training.strategy, small_cnn);
    model.fit(blobs(100, {6, 6, 2}).batch({.global_batch = 16}),
              {.verbose = 0, .step = {.virtual_shards = shards}});
    return variables_of(model);
  };
  const auto plain = fit(0), sharded = fit(4);
  for (std::size_t v = 0; v < plain.size(); ++v) {
    for (std::size_t i = 0; i < plain[v].size(); ++i) {
      ASSERT_NEAR(plain[v][i], sharded[v][i], 1e-4 * slack()) << "variable " << v << "[" << i << "]";
    }
  }
}

TEST(VirtualShards, TakeAStepInPieces) {
  std::vector<std::string> hashes;
  for (const bool pieces : {false, true}) {
    Training training(2);
    Model model = compiled(training.strategy, sharded_cnn);
    DeviceGroup shards = training.devices.repeated(2);
    Loader loader(blobs(50, {6, 6, 2}).batch({.global_batch = 16}), shards);
    Trainer trainer(training.strategy, model, loader, {.step = {.virtual_shards = 4}});
    if (!pieces) {
      trainer.warm_up();
      while (trainer.step()) {
      }
    } else {
      while (std::optional<GlobalBatch> batches = trainer.take()) {
        EXPECT_EQ(batches->size(), 4U);
        trainer.gradients(std::move(*batches));
        trainer.all_reduce();
        trainer.apply_gradients();
      }
    }
    EXPECT_EQ(trainer.finish().examples, 50);
    hashes.push_back(model.weights_sha256());
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

TEST(VirtualShards, WhereOneFailsNothingIsUpdated) {
  Training training(1);
  Model model = training.strategy.build(small_cnn, {.seed = 3});
  std::atomic<int> seen = 0;
  model.compile({.optimizer = sgd(0.1F),
                 .loss = host_loss("picky",
                                   [&seen](const HostExample& example) {
                                     if (++seen == 20) throw Error(ErrorCode::kInvalidArgument, "not this one");
                                     for (float& slope : example.gradient) slope = 0.1F;
                                     return 1.0;
                                   }),
                 .metrics = {}});
  const Dataset data = blobs(64, {6, 6, 2}).batch({.global_batch = 16});
  const auto fit = [&] { model.fit(data, {.verbose = 0, .step = {.virtual_shards = 4}}); };
  EXPECT_THAT(error_of<DeviceError>([&] { fit(); }).what(),
              AllOf(HasSubstr("replica 0"), HasSubstr("step 1"), HasSubstr("not this one")));
  // The first step is done; of the second one not a part.
  const auto weights = variables_of(model);
  Training other(1);
  Model once = other.strategy.build(small_cnn, {.seed = 3});
  once.compile({.optimizer = sgd(0.1F),
                .loss = host_loss("plain",
                                  [](const HostExample& example) {
                                    for (float& slope : example.gradient) slope = 0.1F;
                                    return 1.0;
                                  }),
                .metrics = {}});
  once.fit(data, {.verbose = 0, .step = {.virtual_shards = 4}, .stop_after_steps = 1});
  EXPECT_EQ(weights, variables_of(once));
  EXPECT_NO_THROW(fit()) << "the model can be used again";
}

TEST(VirtualShards, GiveBackAllMemory) {
  DeviceGroup devices = test_devices(2, DeviceNeed::kKernels);
  {
    Strategy strategy(devices, {.announce = false});
    Model model = compiled(strategy, sharded_cnn);
    const Dataset data = blobs(30, {6, 6, 2}).batch({.global_batch = 8});
    model.fit(data, {.validation = data, .verbose = 0, .step = {.accumulate = 2, .virtual_shards = 8}});
    model.evaluate(data, {.views = mirrored_views(), .virtual_shards = 8});
  }
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(devices[r].memory_use().device_bytes, 0U);
    EXPECT_EQ(devices[r].memory_use().pinned_bytes, 0U);
  }
}

TEST(VirtualShards, PredictionsHaveNone) {
  Training training(2);
  Model model = compiled(training.strategy, small_cnn);
  const Dataset data = blobs(30, {6, 6, 2}).batch({.global_batch = 8});
  EXPECT_EQ(model.predict(data, {.virtual_shards = 8}).values, model.predict(data).values);
}

TEST(VirtualShards, WrongNumbersAreRefused) {
  const Dataset data = blobs(32).batch({.global_batch = 8});
  const auto refusal = [&](int replicas, int shards) -> std::string {
    Training training(replicas);
    Model model = compiled(training.strategy, small_mlp);
    return message_of([&] { model.fit(data, {.verbose = 0, .step = {.virtual_shards = shards}}); });
  };
  EXPECT_THAT(refusal(1, 6), HasSubstr("a power of two"));
  EXPECT_THAT(refusal(1, -8), HasSubstr("a power of two"));
  EXPECT_THAT(refusal(1, 128), HasSubstr("up to 64"));
  EXPECT_THAT(refusal(4, 2), AllOf(HasSubstr("2 virtual shards"), HasSubstr("4 replicas")));
  EXPECT_THAT(refusal(3, 8), HasSubstr("3 replicas"));
  Training training(2);
  Model model = compiled(training.strategy, small_mlp);
  Loader loader(data, training.devices);
  EXPECT_THROW(Trainer(training.strategy, model, loader, {.step = {.virtual_shards = 8}}), ConfigError);
}

}  // namespace
}  // namespace headrace::test

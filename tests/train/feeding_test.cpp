// Training on a stream of unknown length.
#include "headrace/pipeline/sources/sharded_source.h"
#include "headrace/tests/support/temp_folder.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

// The records of `source` one after another, round and round, but no more than `count`.
Dataset streamed(const SourcePtr& source, std::uint64_t count) {
  const auto open = [source, count](std::uint64_t first) {
    return [source, count, next = first](RecordWriter& record) mutable {
      if (next == count) return false;
      std::vector<std::byte> scratch;
      const RecordView view = source->read(next++ % source->info().records, scratch);
      for (std::size_t i = 0; i < source->info().fields.size(); ++i) record.put(i, view.fields[i]);
      return true;
    };
  };
  return Dataset::from(record_stream({.fields = source->info().fields, .open = open}));
}

SourcePtr toy_source() {
  std::vector<float> images;
  std::vector<std::int64_t> labels;
  Philox random({.seed = 4});
  for (int i = 0; i < 40; ++i) {
    labels.push_back(i % 4);
    for (int k = 0; k < 8; ++k) images.push_back(random.uniform() + (k % 4 == i % 4 ? 1.0F : 0.0F));
  }
  return in_memory("toy", 40, {array_of("image", Shape{8}, images), array_of("label", Shape{}, labels)});
}

TEST(Streamed, TrainsAsNumberedRecordsDo) {
  Training training(2);
  const BatchOptions batch{.global_batch = 10};
  Model numbered = compiled(training.strategy, small_mlp), piped = compiled(training.strategy, small_mlp);
  numbered.fit(Dataset::from(toy_source()).repeat(2).batch(batch), {.epochs = 3});
  const History history =
      piped.fit(streamed(toy_source(), ~std::uint64_t{0}).batch(batch), {.epochs = 3, .steps_per_epoch = 8});
  EXPECT_EQ(piped.weights_sha256(), numbered.weights_sha256());
  EXPECT_EQ(history["loss"].size(), 3U);
}

TEST(Streamed, EndsWhereTheStreamEnds) {
  Training training(1);
  Model model = compiled(training.strategy, small_mlp);
  const History history =
      model.fit(streamed(toy_source(), 125).batch({.global_batch = 10}), {.epochs = 5, .steps_per_epoch = 8});
  EXPECT_EQ(model.global_step(), 13U);
  EXPECT_THAT(history["steps"], testing::ElementsAre(8, 5));
}

// Four files of ten records each, one after another.
class ToyShards final : public ShardedSource {
 public:
  ToyShards() {
    info_.name = "toy shards";
    info_.fields = toy_->info().fields;
    info_.fingerprint = 3;
  }
  std::size_t shards() const noexcept override { return 4; }
  bool is_remote() const noexcept override { return false; }
  std::string shard_name(std::size_t shard) const override { return std::to_string(shard); }
  std::uint64_t shard_bytes(std::size_t shard) const override { return 10 * shard + 10; }
  std::unique_ptr<ShardReader> open_shard(std::size_t shard, std::uint64_t offset) const override {
    return std::make_unique<Reader>(*toy_, offset > 0 ? offset : 10 * shard, 10 * shard + 10);
  }

 private:
  class Reader final : public ShardReader {
   public:
    Reader(const Source& toy, std::uint64_t next, std::uint64_t end) : toy_(toy), next_(next), end_(end) {}
    std::optional<RecordView> next(std::vector<std::byte>& buffer) override {
      if (next_ == end_) return std::nullopt;
      return toy_.read(next_++, buffer);
    }
    std::uint64_t offset() const noexcept override { return next_ == end_ ? kEnd : next_; }

   private:
    const Source& toy_;
    std::uint64_t next_, end_;
  };

  SourcePtr toy_ = toy_source();
};

// Passes of the data end within epochs of the training, which is resumed after any step.
TEST(Streamed, ShardsTrainForManyPassesAndResume) {
  const Dataset data = Dataset::from(std::make_shared<ToyShards>())
                           .shuffle_shards({.window = 16, .shards = 2})
                           .batch({.global_batch = 7});
  const FitOptions options{.epochs = 4, .steps_per_epoch = 5};
  Training training(2);
  Model whole = compiled(training.strategy, small_mlp);
  whole.fit(data, options);
  EXPECT_EQ(whole.global_step(), 20U);
  for (const std::uint64_t stop : {1, 5, 6, 7, 13, 19}) {
    const test::TempFolder folder;
    FitOptions part = options;
    part.checkpoints = {.folder = folder.path(), .every_steps = 1};
    part.stop_after_steps = stop;
    Model first = compiled(training.strategy, small_mlp);
    first.fit(data, part);
    EXPECT_EQ(first.global_step(), stop);
    part.stop_after_steps = 0;
    part.resume = true;
    Model second = compiled(training.strategy, small_mlp);
    second.fit(data, part);
    EXPECT_EQ(second.global_step(), 20U);
    EXPECT_EQ(second.weights_sha256(), whole.weights_sha256()) << stop;
  }
}

TEST(Streamed, NeedsToBeToldHowLongAnEpochIs) {
  Training training(1);
  Model model = compiled(training.strategy, small_mlp);
  const ConfigError error =
      test::error_of<ConfigError>([&] { model.fit(streamed(toy_source(), 100).batch({.global_batch = 10}), {}); });
  EXPECT_THAT(std::string(error.what()) + error.hint(), testing::HasSubstr("FitOptions::steps_per_epoch"));
}

}  // namespace
}  // namespace headrace::test

// Sizes that do not divide: whatever the examples, batch, replicas and accumulation, a run ends and its losses are
// those of one replica.

namespace headrace {
namespace {

constexpr int kUnevenCases = 60;

struct Sizes {
  std::int64_t examples, batch;
  int replicas, accumulate;
  std::uint64_t steps_per_epoch;
};

Sizes draw(std::uint64_t number) {
  Philox random({.seed = 11, .record = number});
  Sizes sizes{.examples = 1 + random.below(40),
              .batch = 1 + random.below(17),
              .replicas = 2 + static_cast<int>(random.below(4)),
              .accumulate = 1 + static_cast<int>(random.below(3)),
              .steps_per_epoch = 0};
  if (random.below(2) == 1) sizes.steps_per_epoch = 1 + random.below(6);
  return sizes;
}

History run(const Sizes& sizes, int replicas) {
  test::Training training(replicas);
  Model model = test::compiled(training.strategy, test::small_mlp);
  const Dataset data = test::blobs(sizes.examples).shuffle().batch({.global_batch = sizes.batch});
  History history = model.fit(data, {.epochs = 3,
                                     .steps_per_epoch = sizes.steps_per_epoch,
                                     .validation = data,
                                     .verbose = 0,
                                     .input = {.threads = 1},
                                     .step = {.accumulate = sizes.accumulate}});
  model.check_mirrored();
  return history;
}

TEST(Uneven, EveryCombinationEndsWithTheLossesOfOneReplica) {
  for (std::uint64_t number = 0; number < kUnevenCases; ++number) {
    const Sizes sizes = draw(number);
    SCOPED_TRACE(testing::Message() << sizes.examples << " examples, batch " << sizes.batch << ", "
                                    << sizes.replicas << " replicas, accumulate " << sizes.accumulate
                                    << ", steps per epoch " << sizes.steps_per_epoch);
    const History one = run(sizes, 1);
    const History many = run(sizes, sizes.replicas);
    for (std::size_t epoch = 0; epoch < 3; ++epoch) {
      EXPECT_NEAR(one["loss"][epoch], many["loss"][epoch], 1e-5 * test::slack());
      EXPECT_NEAR(one["val_loss"][epoch], many["val_loss"][epoch], 1e-5 * test::slack());
      EXPECT_EQ(one["steps"][epoch], many["steps"][epoch]);
    }
  }
}

}  // namespace
}  // namespace headrace

// Trainings on batches that come in any order: each epoch trains on every example once, stopped and resumed, too.

namespace headrace::test {
namespace {

Node linear_net(Graph& g) { return g.dense(g.flatten(g.input("image", {6, 6, 2})), 4); }

// Without a learning rate the sums of an epoch are those of its examples in any order.
History fit_without_learning(const std::function<void(FitOptions&)>& change) {
  Training training(test_devices(2, DeviceNeed::kKernels));
  Model model = training.strategy.build(linear_net, {.seed = 3});
  model.compile({.optimizer = sgd(0.0F), .metrics = {accuracy(), confusion_matrix()}});
  FitOptions options{.epochs = 2,
                     .validation = blobs(20, {6, 6, 2}, 4, 2).batch({.global_batch = 6}),
                     .verbose = 0,
                     .input = {.seed = 5, .threads = 2, .prefetch = 4, .in_order = false},
                     .step = {.accumulate = 2}};
  change(options);
  return model.fit(blobs(50, {6, 6, 2}).shuffle().batch({.global_batch = 4}), options);
}

void expect_same_sums(const History& history, const History& expected) {
  for (const auto& [name, values] : expected.lists()) {
    if (!name.ends_with("loss") && !name.ends_with("accuracy") && name != "steps") continue;
    ASSERT_EQ(history.lists().at(name).size(), values.size()) << name;
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(history.lists().at(name)[i], values[i], 1e-5) << name;
  }
}

TEST(TrainingInAnyOrder, TrainsOnEachExampleOnceAnEpoch) {
  const History ordered = fit_without_learning([](FitOptions& options) { options.input.in_order = true; });
  ASSERT_EQ(ordered.lists().at("steps"), (std::vector<double>{7, 7}));
  expect_same_sums(fit_without_learning([](FitOptions&) {}), ordered);
  for (std::uint64_t stop = 1; stop < 14; ++stop) {
    const TempFolder folder;
    fit_without_learning([&](FitOptions& options) {
      options.checkpoints = CheckpointOptions{.folder = folder.path()};
      options.stop_after_steps = stop;
    });
    expect_same_sums(fit_without_learning([&](FitOptions& options) {
                       options.checkpoints = CheckpointOptions{.folder = folder.path()};
                       options.resume = true;
                       options.input.in_order = stop % 3 == 0;
                     }),
                     ordered);
  }
}

TEST(TrainingInAnyOrder, IsNoneForEvaluations) {
  Training training(test_devices(1, DeviceNeed::kKernels));
  Model model = training.strategy.build(linear_net, {.seed = 3});
  model.compile({.optimizer = sgd(), .metrics = {accuracy()}});
  const Dataset data = loop_data();
  EXPECT_THROW(model.evaluate(data, {.input = {.in_order = false}}), ConfigError);
  EXPECT_THROW(model.predict(data, {.input = {.in_order = false}}), ConfigError);
  Loader loader(data, training.devices, {.in_order = false});
  EXPECT_THROW(Evaluator(model, loader), ConfigError);
}

}  // namespace

// Trainings whose small batches come in bursts and whose steps are collected many at a time: only the time
// differs.

namespace {

constexpr int kFedSteps = 75;

Dataset many_steps() { return blobs(kFedSteps * 8).shuffle({.seed = 4}).batch({.global_batch = 8}); }

struct FedOutcome {
  std::string weights;
  std::vector<double> losses, accuracies;
  bool operator==(const FedOutcome&) const = default;
};

// `prefetch`: below 8 no batches come in bursts.
FedOutcome outcome_of(int replicas, int accumulate, int prefetch) {
  Training training(replicas);
  Model model = training.strategy.build(small_mlp, {.seed = 3});
  model.compile({.optimizer = adam(1e-2F), .metrics = {accuracy()}});
  const History history = model.fit(many_steps(), {.epochs = 2,
                                                   .validation = blobs(300).batch({.global_batch = 8}),
                                                   .verbose = 0,
                                                   .input = {.prefetch = prefetch},
                                                   .step = {.accumulate = accumulate}});
  return {.weights = model.weights_sha256(), .losses = history["val_loss"], .accuracies = history["accuracy"]};
}

TEST(TrainingInBursts, HasTheBitsOfATrainingWithout) {
  for (const int replicas : {1, 2}) {
    for (const int accumulate : {1, 4}) {
      SCOPED_TRACE(testing::Message() << replicas << " replicas, " << accumulate << " batches a step");
      EXPECT_EQ(outcome_of(replicas, accumulate, -1), outcome_of(replicas, accumulate, 1));
    }
  }
}

// The batch that fails is named by its step, whichever step it is and however many were submitted after it.
TEST(TrainingInBursts, NamesTheStepThatFailed) {
  for (const int bad : {0, 1, 15, 16, 17, 40, kFedSteps - 1}) {
    std::vector<float> images(kFedSteps * 8, 1.0F);
    images[static_cast<std::size_t>(bad) * 8] = std::numeric_limits<float>::quiet_NaN();
    const Dataset data =
        Dataset::from(in_memory("one is not a number", kFedSteps,
                                {array_of("image", Shape{8}, images),
                                 array_of("label", Shape{}, std::vector<std::int64_t>(kFedSteps, 1))}))
            .batch({.global_batch = 1});
    Training training(1);
    Model model = compiled(training.strategy, [](Graph& g) { return g.dense(g.input("image", {8}), 4); });
    const Error error = test::error_of([&] { model.fit(data, {.epochs = 1, .verbose = 0}); });
    EXPECT_NE(std::string(error.what()).find("step " + std::to_string(bad)), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace headrace::test

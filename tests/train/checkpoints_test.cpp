// Checkpoints in their folder: which there are, which is taken, what is made of it.
#include "headrace/train/checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_faults.h"
#include "headrace/tests/support/temp_folder.h"
#include "headrace/tests/train/toy_data.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/records/record.h"
#include "headrace/train/training_record.h"

namespace headrace::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Dataset& kept_data() {
  static const Dataset data = blobs(40).shuffle().batch({.global = 8});
  return data;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : list_directory(folder)) names.push_back(entry.path.filename().string());
  return names;
}

void patch_bit(const std::filesystem::path& file, std::uint64_t offset) {
  TempFolder::patch(file, offset, read_whole_file(file)[offset] ^ std::byte{1});
}

// Images of one channel, and labels.
SourcePtr in_memory_blobs(std::uint64_t count) {
  std::vector<float> images;
  std::vector<std::int64_t> labels;
  Philox random({.seed = 9});
  for (std::uint64_t i = 0; i < count; ++i) {
    labels.push_back(static_cast<std::int64_t>(i % 4));
    for (std::uint64_t k = 0; k < 8; ++k) images.push_back(random.uniform() + (k % 4 == i % 4 ? 1.0F : 0.0F));
  }
  return in_memory("toy", count, {array_of("image", Shape{4, 2, 1}, images), array_of("label", Shape{}, labels)});
}

TEST(Checkpoints, AreNamedAndTheLatestStay) {
  const TempFolder folder;
  Training training(2);
  Model model = compiled(training.strategy, small_mlp);
  model.fit(kept_data(), {.epochs = 5,
                          .validation = kept_data(),
                          .verbose = 0,
                          .checkpoints = CheckpointOptions{
                              .folder = folder / "made" / "here", .name = "ckpt-{epoch}-{step}", .keep = 2}});
  EXPECT_THAT(names_in(folder / "made" / "here"), ElementsAre("ckpt-4-20.safetensors", "ckpt-5-25.safetensors"));
}

TEST(Checkpoints, TheBestEpochIsKeptBeside) {
  const TempFolder folder;
  Training training(1);
  Model model = compiled(training.strategy, small_mlp, sgd(0.5F));
  const CheckpointOptions options{.folder = folder.path(), .keep = 1, .best = "val_loss"};
  // The rate grows until the loss does.
  const Callback spoil{.on_epoch_end = [](const EpochReport& report, FitControl& control) {
    if (report.epoch >= 2) control.set_learning_rate_scale(400);
  }};
  const History history = model.fit(kept_data(), {.epochs = 6,
                                                  .validation = kept_data(),
                                                  .callbacks = {spoil},
                                                  .verbose = 0,
                                                  .nan = NanPolicy::kIgnore,
                                                  .checkpoints = options});
  const std::vector<double>& losses = history["val_loss"];
  const auto best = std::ranges::min_element(losses) - losses.begin();
  ASSERT_LT(best, 5) << "the last epoch is not the best one";
  EXPECT_THAT(names_in(folder.path()), ElementsAre("best.safetensors", "checkpoint-30.safetensors"));
  const Record record(folder / "best.safetensors");
  EXPECT_EQ(record.step(), 5 * static_cast<std::uint64_t>(best + 1));
  EXPECT_EQ(record.training()->position.best, losses[static_cast<std::size_t>(best)]);
}

TEST(Checkpoints, OthersInTheFolderAreLeftAlone) {
  const TempFolder folder;
  folder.write("notes.safetensors", "no checkpoint");
  folder.write("checkpoint-1.safetensors.4194304.0.tmp", "being written a moment ago");
  Training training(1);
  for (const std::uint64_t seed : {1, 2}) {  // two trainings in one folder, which do not know of each other
    Model model = compiled(training.strategy, small_mlp, adam(), seed);
    const std::string name = "run" + std::to_string(seed) + "-{step}";
    model.fit(kept_data(), {.epochs = 3,
                            .verbose = 0,
                            .checkpoints = CheckpointOptions{.folder = folder.path(), .name = name, .keep = 1}});
  }
  EXPECT_THAT(names_in(folder.path()), ElementsAre("checkpoint-1.safetensors.4194304.0.tmp", "notes.safetensors",
                                                   "run1-15.safetensors", "run2-15.safetensors"));
}

TEST(Checkpoints, UnfinishedFilesOfTheDeadAreRemoved) {
  const TempFolder folder;
  const auto dead = folder.write("checkpoint-1.safetensors.4194304.0.tmp", "killed long ago");
  std::filesystem::last_write_time(dead, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  Training training(1);
  Model model = compiled(training.strategy, small_mlp);
  model.fit(kept_data(), {.verbose = 0, .checkpoints = CheckpointOptions{.folder = folder.path()}});
  EXPECT_THAT(names_in(folder.path()), ElementsAre("checkpoint-5.safetensors"));
}

// Two processes that were started by mistake, as threads: every file is whole at every moment.
TEST(Checkpoints, TwoTrainingsMayUseOneFolder) {
  const TempFolder folder;
  const Training there(1);  // where there is no such device, the test is skipped here
  std::atomic<int> running = 2;
  const auto train = [&](std::uint64_t seed) {
    Training training(1);
    Model model = compiled(training.strategy, small_mlp, adam(), seed);
    model.fit(kept_data(),
              {.epochs = 8,
               .verbose = 0,
               .checkpoints = CheckpointOptions{.folder = folder.path(), .every_steps = 1, .keep = 2}});
    --running;
  };
  std::thread one(train, 1), other(train, 2);
  while (running > 0) {
    for (const std::string& name : names_in(folder.path())) {
      if (!name.ends_with(".safetensors")) continue;
      try {
        Record(folder / name).verify();
      } catch (const DataError& error) {
        EXPECT_EQ(error.code(), ErrorCode::kNotFound) << error.what();
      }
    }
  }
  one.join();
  other.join();
  EXPECT_NE(newest_checkpoint(folder.path()), std::nullopt);
}

TEST(Checkpoints, TheNewestCompleteOneIsTaken) {
  const TempFolder folder;
  EXPECT_EQ(newest_checkpoint(folder / "missing"), std::nullopt);
  EXPECT_EQ(newest_checkpoint(folder.path()), std::nullopt);
  Training training(1);
  Model model = compiled(training.strategy, small_mlp);
  model.fit(kept_data(), {.epochs = 3, .verbose = 0, .checkpoints = CheckpointOptions{.folder = folder.path()}});
  const auto file = [&](int step) { return folder / ("checkpoint-" + std::to_string(step) + ".safetensors"); };
  EXPECT_EQ(newest_checkpoint(folder.path()), file(15));
  std::filesystem::resize_file(file(15), std::filesystem::file_size(file(15)) - 1);
  EXPECT_EQ(newest_checkpoint(folder.path()), file(10)) << "the newest is cut short";
  const TensorFile damaged(file(10));
  const StoredTensor* weights = damaged.find("dense/weights");
  patch_bit(file(10), weights->offset + 17);
  EXPECT_EQ(newest_checkpoint(folder.path()), file(5)) << "a bit of the next has turned";
  try {
    restore_model(training.strategy, file(10));
    ADD_FAILURE();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("tensor 'dense/weights'"));
    EXPECT_EQ(error.location().offset, weights->offset);
  }
}

TEST(Checkpoints, RestoreOrCreateSaysWhich) {
  const TempFolder folder;
  Training training(2);
  const auto create = [&] { return compiled(training.strategy, small_mlp, with_all_around(grouped())); };
  const auto run = [&](int epochs) {
    testing::internal::CaptureStdout();
    Model model = restore_or_create(training.strategy, folder.path(), create);
    const std::string said = testing::internal::GetCapturedStdout();
    model.fit(kept_data(), {.epochs = epochs,
                            .verbose = 0,
                            .checkpoints = CheckpointOptions{.folder = folder.path()},
                            .resume = true});
    return std::pair(said, model.weights_sha256());
  };
  EXPECT_EQ(run(1).first, "Creating a new model\n");
  const auto [said, weights] = run(2);
  EXPECT_EQ(said, "Restoring from " + (folder / "checkpoint-5.safetensors").string() + "\n");
  Model whole = create();
  whole.fit(kept_data(), {.epochs = 2, .verbose = 0});
  EXPECT_EQ(weights, whole.weights_sha256());
}

TEST(Checkpoints, HoldAllThatTheModelIs) {
  const TempFolder folder;
  Training training(2), other(3);
  Model model = training.strategy.build(norm_cnn, {.seed = 4});
  model.freeze("dense/bias");
  model.compile({.optimizer = with_all_around(grouped()),
                 .loss = sparse_categorical_crossentropy({.label_smoothing = 0.1F}),
                 .metrics = {accuracy(), top_k(3), confusion_matrix()}});
  const Dataset data = blobs(40, {6, 6, 2}).batch({.global = 8});
  model.fit(data, {.verbose = 0});
  save_model(model, folder / "model");
  Model same = restore_model(other.strategy, folder / "model");
  same.check_mirrored();
  EXPECT_EQ(same.weights_sha256(), model.weights_sha256());
  EXPECT_EQ(same.global_step(), model.global_step());
  EXPECT_EQ(same.summary(), model.summary());
  EXPECT_EQ(same.frozen_variables(), std::vector<std::string>{"dense/bias"});
  ASSERT_EQ(same.optimizer_variable_names(), model.optimizer_variable_names());
  for (const std::string& name : model.optimizer_variable_names()) {
    for (const int replica : {0, 1, 2}) {
      EXPECT_EQ(same.read_variable(name, replica), model.read_variable(name)) << name;
    }
  }
  const Evaluation wanted = model.evaluate(data), found = same.evaluate(data);
  EXPECT_NEAR(found.loss, wanted.loss, 1e-9);
  ASSERT_EQ(found.metrics.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(found.metrics[i].values, wanted.metrics[i].values);
}

TEST(Checkpoints, NameLossesOfTheProgramsOwn) {
  const TempFolder folder;
  Training training(1);
  const Loss own = host_loss("my_loss", [](const HostExample&) { return 0.5; });
  Model model = training.strategy.build(small_mlp);
  model.compile({.loss = 0.5F * own + 2.0F * sparse_categorical_crossentropy()});
  save_model(model, folder / "model");
  try {
    restore_model(training.strategy, folder / "model");
    ADD_FAILURE();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("loss of its program's own, 'my_loss' (hand it over: OwnParts{.losses"));
  }
  Model same = restore_model(training.strategy, folder / "model", {.losses = {own}});
  ASSERT_EQ(same.state().compiled->loss.terms.size(), 2U);
  EXPECT_EQ(same.state().compiled->loss.terms[0].function->name(), "my_loss");
  EXPECT_EQ(same.state().compiled->loss.terms[1].weight, 2.0F);
}

// Every built-in loss and metric is made again as it was.
TEST(Checkpoints, HoldLossesAndMetrics) {
  const TempFolder folder;
  Training training(1);
  for (const Loss& loss :
       {sparse_categorical_crossentropy({.label_smoothing = 0.25F, .reduction = Reduction::kSum}),
        categorical_crossentropy({.label_smoothing = 0.1F}), binary_crossentropy(), mean_squared_error(),
        binary_crossentropy({.from_logits = false}), mean_absolute_error()}) {
    Model model = training.strategy.build(small_mlp);
    model.compile({.loss = loss, .metrics = {top_k(2), mean_squared_error()}});
    save_model(model, folder / "model");
    const Model same = restore_model(training.strategy, folder / "model");
    const CompileOptions& made = *same.state().compiled;
    EXPECT_EQ(made.loss.terms.front().function->name(), loss.terms.front().function->name());
    EXPECT_EQ(made.loss.terms.front().function->options_json(), loss.terms.front().function->options_json());
    EXPECT_EQ(made.loss.reduction, loss.reduction);
    ASSERT_EQ(made.metrics.size(), 2U);
    EXPECT_EQ(made.metrics[0].function->name(), "top_2");
    EXPECT_EQ(made.metrics[1].function->name(), "mean_squared_error");
  }
}

// --- faults ---

// The n-th call of a kind on a file below a folder fails.
class FailsOnce final : public FileFaults {
 public:
  FailsOnce(FileOperation operation, int call, std::string folder)
      : operation_(operation), call_(call), folder_(std::move(folder)), before_(set_file_faults(this)) {}
  ~FailsOnce() override { set_file_faults(before_); }
  FailsOnce(const FailsOnce&) = delete;
  FailsOnce& operator=(const FailsOnce&) = delete;

  int before(FileOperation operation, const std::filesystem::path& path, std::uint64_t, std::size_t&) override {
    if (operation != operation_ || !path.string().starts_with(folder_)) return 0;
    return calls_.fetch_add(1) == call_ ? EIO : 0;
  }
  bool reached() const { return calls_ > call_; }

 private:
  FileOperation operation_;
  int call_;
  std::string folder_;
  std::atomic<int> calls_{0};
  FileFaults* before_;
};

TEST(CheckpointFaults, AtEveryCallOfASaveACompleteOneIsLeft) {
  for (const bool asynchronous : {false, true}) {
    for (const FileOperation operation : {FileOperation::kOpen, FileOperation::kWrite, FileOperation::kSync,
                                          FileOperation::kRename, FileOperation::kRemove}) {
      int failures = 0;
      for (int call = 0;; ++call) {
        const TempFolder folder;
        Training training(2);
        Model model = compiled(training.strategy, small_mlp);
        const FitOptions options{
            .epochs = 4,
            .verbose = 0,
            .checkpoints = CheckpointOptions{
                .folder = folder.path(), .keep = 2, .best = "loss", .asynchronous = asynchronous}};
        std::string said;
        bool reached = false;
        {
          const FailsOnce fault(operation, call, folder.path().string());
          try {
            model.fit(kept_data(), options);
          } catch (const DataError& error) {
            said = error.what();
          }
          reached = fault.reached();
        }
        if (!reached) break;
        ++failures;
        if (operation == FileOperation::kOpen && said.empty()) continue;  // a file that was only looked at
        EXPECT_THAT(said, HasSubstr(folder.path().string())) << "operation " << static_cast<int>(operation);
        // Whatever is in the folder is complete, and what was complete before the fault is there.
        for (const std::string& name : names_in(folder.path())) {
          if (!name.ends_with(".safetensors")) continue;
          EXPECT_NO_THROW(Record(folder / name).verify()) << name;
        }
        const auto newest = newest_checkpoint(folder.path());
        // Where the first save failed there is none; a writer of its own is found out some steps later.
        EXPECT_TRUE(newest || asynchronous || model.global_step() <= 5);
        if (!newest) continue;
        Model resumed = restore_model(training.strategy, *newest);
        FitOptions again = options;
        again.resume = true;
        resumed.fit(kept_data(), again);
        Model whole = compiled(training.strategy, small_mlp);
        whole.fit(kept_data(), {.epochs = 4, .verbose = 0});
        EXPECT_EQ(resumed.weights_sha256(), whole.weights_sha256());
      }
      EXPECT_GE(failures, 2) << static_cast<int>(operation);
    }
  }
}

// Holds every write below a folder back until it is let go, or for too long.
class HeldWrites final : public FileFaults {
 public:
  explicit HeldWrites(std::string folder) : folder_(std::move(folder)), before_(set_file_faults(this)) {}
  ~HeldWrites() override { set_file_faults(before_); }
  HeldWrites(const HeldWrites&) = delete;
  HeldWrites& operator=(const HeldWrites&) = delete;

  int before(FileOperation operation, const std::filesystem::path& path, std::uint64_t, std::size_t&) override {
    if (operation != FileOperation::kWrite || !path.string().starts_with(folder_)) return 0;
    held_ = true;
    for (int i = 0; i < 20'000 && !let_go_; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    in_time_ = in_time_ && let_go_;
    return 0;
  }
  void let_go() { let_go_ = true; }
  bool held() const { return held_; }
  bool in_time() const { return in_time_; }

 private:
  std::string folder_;
  std::atomic<bool> held_ = false, let_go_ = false, in_time_ = true;
  FileFaults* before_;
};

// The disk does not answer, training goes on: what is due meanwhile is made afterwards.
TEST(Checkpoints, TrainingDoesNotWaitForTheDisk) {
  const TempFolder folder;
  Training training(2);
  Model model = compiled(training.strategy, small_mlp);
  HeldWrites held(folder.path().string());
  const Callback releasing{.on_step =
                               [&](const StepReport& report, FitControl&) {
                                 if (report.global_step == 50) held.let_go();
                               },
                           .every_steps = 1};
  model.fit(blobs(40).repeat(40).shuffle().batch({.global = 8}),
            {.callbacks = {releasing},
             .verbose = 0,
             .checkpoints = CheckpointOptions{.folder = folder.path(), .every_steps = 5, .keep = 0}});
  EXPECT_TRUE(held.held());
  EXPECT_TRUE(held.in_time());
  const auto file = [&](int step) { return folder / ("checkpoint-" + std::to_string(step) + ".safetensors"); };
  for (const int step : {5, 10, 200}) EXPECT_EQ(Record(file(step)).step(), static_cast<std::uint64_t>(step));
  for (const int step : {15, 20, 45}) EXPECT_FALSE(std::filesystem::exists(file(step))) << step;
}

// The training learns of it, with the file's name, at one of the next steps.
TEST(CheckpointFaults, AFailedWriteEndsTheFitByName) {
  const TempFolder folder;
  Training training(1);
  Model model = compiled(training.strategy, small_mlp);
  const FailsOnce fault(FileOperation::kWrite, 0, folder.path().string());
  try {
    model.fit(kept_data(), {.epochs = 1000,
                            .verbose = 0,
                            .checkpoints = CheckpointOptions{.folder = folder.path(), .every_steps = 5}});
    ADD_FAILURE();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("checkpoint-5.safetensors"));
    EXPECT_THAT(error.what(), HasSubstr("cannot write"));
  }
  EXPECT_LT(model.global_step(), 5000U);
}

// What was good before is not replaced by what the fit ends for.
TEST(CheckpointFaults, VariablesThatAreNoNumbersAreNotKept) {
  const TempFolder folder;
  Training training(1);
  Model model = compiled(training.strategy, small_mlp, sgd(0.1F));
  const Callback spoil{.on_step =
                           [](const StepReport& report, FitControl& control) {
                             if (report.global_step == 3) control.set_learning_rate_scale(1e38);
                           },
                       .every_steps = 1};
  EXPECT_THROW(model.fit(kept_data(),
                         {.epochs = 4,
                          .callbacks = {spoil},
                          .verbose = 0,
                          .checkpoints =
                              CheckpointOptions{
                                  .folder = folder.path(), .every_steps = 1, .keep = 1, .asynchronous = false}}),
               Error);
  const auto newest = newest_checkpoint(folder.path());
  ASSERT_TRUE(newest);
  Model restored = restore_model(training.strategy, *newest);
  EXPECT_NO_THROW(restored.state().variables.check_finite());
  EXPECT_GE(restored.global_step(), 3U);
}

// --- training records ---

TEST(TrainingRecords, AreEvaluatedByWhoKnowsNothingOfTheModel) {
  const TempFolder folder;
  Training training(2);
  const Dataset data = Dataset::from(in_memory_blobs(60)).map(normalize({0.5F}, {2.0F})).batch({.global = 8});
  Model model = training.strategy.build([](Graph& g) {
    return g.dense(g.dense(g.flatten(g.input("image", {4, 2, 1})), 16), 4);
  });
  TrainingRecord record =
      create_training_record(model, sparse_categorical_crossentropy(), adam(1e-2F), 3,
                             {.file = folder / "record",
                              .input = {.operations = {Normalize{.mean = {0.5F}, .std = {2.0F}}}, .batch = 7}});
  const History history = record.train(data, 0, {.verbose = 0});
  EXPECT_EQ(history["loss"].size(), 3U);
  const Evaluation wanted = model.evaluate(data);

  Training other(3);
  const Evaluation found = evaluate_record(other.strategy, folder / "record", in_memory_blobs(60));
  EXPECT_EQ(found.examples, 60);
  EXPECT_NEAR(found.loss, wanted.loss, 1e-6);
  EXPECT_EQ(found.accuracy, wanted.accuracy);
  const Predictions predicted = predict_record(other.strategy, folder / "record", in_memory_blobs(60));
  EXPECT_EQ(predicted.shape, (Shape{60, 4}));
  EXPECT_EQ(record.train(data, 5, {.verbose = 0})["loss"].size(), 5U) << "goes on where it ended";
  EXPECT_EQ(model.global_step(), 40U);
}

}  // namespace
}  // namespace headrace::test

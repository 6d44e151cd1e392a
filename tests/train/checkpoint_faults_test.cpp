// Checkpoints that cannot be written, and resumptions with other plans of the device's libraries.
#include <cerrno>

#include "headrace/devices/base/system_file.h"
#include "headrace/tests/support/twin_kernels.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/records/record.h"

namespace headrace::test {
namespace {

// Checkpoints on a disk that fails or is slow, and of trainings that go wrong.

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

// The training learns of it, with the file's name, at one of the next steps.
TEST(CheckpointFaults, AFailedWriteEndsTheFitByName) {
  const TempFolder folder;
  Training training(1);
  Model model = compiled(training.strategy, small_mlp);
  const FailsOnce fault(FileOperation::kWrite, 0, folder.path().string());
  const DataError error = error_of<DataError>([&] {
    model.fit(kept_data(), {.epochs = 1000,
                            .verbose = 0,
                            .checkpoints = CheckpointOptions{.folder = folder.path(), .every_steps = 5}});
  });
  EXPECT_THAT(error.what(), HasSubstr("checkpoint-5.safetensors"));
  EXPECT_THAT(error.what(), HasSubstr("cannot write"));
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
  model.fit(blobs(40).repeat(40).shuffle().batch({.global_batch = 8}),
            {.callbacks = {releasing},
             .verbose = 0,
             .checkpoints = CheckpointOptions{.folder = folder.path(), .every_steps = 5, .keep = 0}});
  EXPECT_TRUE(held.held());
  EXPECT_TRUE(held.in_time());
  const auto file = [&](int step) { return folder / ("checkpoint-" + std::to_string(step) + ".safetensors"); };
  for (const int step : {5, 10, 200}) EXPECT_EQ(Record(file(step)).step(), static_cast<std::uint64_t>(step));
  for (const int step : {15, 20, 45}) EXPECT_FALSE(std::filesystem::exists(file(step))) << step;
}

using Plans = std::map<std::string, std::string>;

// A training that is continued with other plans of the device's libraries says so.

// What the library chooses next.
Plans& library() {
  static Plans plans;
  return plans;
}

class PlanningKernels final : public TwinKernels {
 public:
  using TwinKernels::TwinKernels;
  Plans chosen_plans() const override { return library(); }
};

class PlanningDevice final : public DiscreteDevice {
 public:
  explicit PlanningDevice(std::unique_ptr<Device> inner)
      : DiscreteDevice(std::move(inner)), kernels_(this->inner()) {}

  std::unique_ptr<Stream> create_stream() override { return std::make_unique<CpuStream>(*this, 1); }
  Kernels* kernels() noexcept override { return &kernels_; }
  Kernels* lane_kernels() noexcept override { return &kernels_; }

 private:
  PlanningKernels kernels_;
};

// What a fit writes while the library has these plans.
std::string output_of_fit(const TempFolder& folder, const Plans& plans, std::uint64_t stop, bool resume) {
  library() = plans;
  DeviceGroup devices = devices_of<PlanningDevice>(1);
  Strategy strategy(devices, {.announce = false});
  Model model = strategy.build([](Graph& g) { return g.dense(g.flatten(g.input("image", {4, 4, 1})), 4); });
  model.compile({.optimizer = sgd(0.1F)});
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> output(std::tmpfile(), std::fclose);
  model.fit(blobs(24, {4, 4, 1}).batch({.global_batch = 8}),
            {.epochs = 2,
             .verbose = 0,
             .output = output.get(),
             .stop_after_steps = stop,
             .checkpoints = CheckpointOptions{.folder = folder.path()},
             .resume = resume});
  std::rewind(output.get());
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), output.get()));
  return text;
}

const Plans kPlans{{"forward (2, 3)", "eng1"}, {"the GPU and its library", "Some GPU, cuDNN 9.19.0"}};

TEST(ResumedPlans, TheSameOnesAreNotWorthAWord) {
  const TempFolder folder;
  EXPECT_EQ(output_of_fit(folder, kPlans, 2, false), "");
  Plans more = kPlans;
  more["backward (2, 3)"] = "eng9";
  EXPECT_EQ(output_of_fit(folder, more, 4, true), "");
}

TEST(ResumedPlans, OthersAreSaidOnce) {
  const TempFolder folder;
  output_of_fit(folder, kPlans, 2, false);
  Plans other = kPlans;
  other["forward (2, 3)"] = "eng2";
  EXPECT_EQ(
      output_of_fit(folder, other, 0, true),
      "headrace: warning: the training continues with other plans, so that its bits differ from those of one "
      "that was not interrupted: forward (2, 3) was eng1, is eng2\n");
}

TEST(ResumedPlans, AnotherGpuIsNamedAndManyAreCounted) {
  const TempFolder folder;
  Plans before, after;
  for (int i = 0; i < 7; ++i) {
    before[std::to_string(i)] = "eng1";
    after[std::to_string(i)] = "eng2";
  }
  output_of_fit(folder, before, 2, false);
  EXPECT_THAT(output_of_fit(folder, after, 0, true), HasSubstr("3 was eng1, is eng2; and 3 more\n"));
}

TEST(ResumedPlans, ADeviceWithoutPlansSaysNothing) {
  const TempFolder folder;
  output_of_fit(folder, {}, 2, false);
  EXPECT_EQ(output_of_fit(folder, kPlans, 0, true), "");
}

}  // namespace
}  // namespace headrace::test

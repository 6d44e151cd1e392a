// A training that is continued with other plans of the device's libraries says so.
#include "headrace/tests/support/twin_kernels.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/checkpoints.h"

namespace headrace::test {
namespace {

using Plans = std::map<std::string, std::string>;

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

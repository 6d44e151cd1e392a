// What goes wrong is named, once, and nothing hangs.
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

class FailureTest : public testing::TestWithParam<int> {
 protected:
  Dataset data_ = blobs(64).batch({.global_batch = 8});
};

INSTANTIATE_TEST_SUITE_P(R, FailureTest, testing::Values(1, 2, 4));

TEST_P(FailureTest, AFailingReplicaEndsTheRunWithItsNameAndStep) {
  Training training(GetParam());
  Model model = compiled(training.strategy, small_mlp);
  const int victim = GetParam() - 1;
  {
    Loader loader(data_, training.devices);
    Trainer trainer(training.strategy, model, loader);
    trainer.step();
    trainer.finish();
    training.strategy.stream(victim).call([] { throw Error(ErrorCode::kDevice, "a bit flipped"); });
    const DeviceError error = error_of<DeviceError>([&] {
      while (trainer.step()) {
      }
      trainer.finish();
    });
    EXPECT_THAT(error.what(), AllOf(HasSubstr("replica " + std::to_string(victim)), HasSubstr("step 1"),
                                    HasSubstr("a bit flipped")));
    EXPECT_EQ(error.device(), training.devices[victim].info().name);
    EXPECT_THROW(trainer.step(), Error) << "a failed trainer stays failed";
  }
  // The replicas may differ now; set right, the strategy trains on.
  for (const std::string& name : model.variable_names()) model.write_variable(name, model.read_variable(name));
  model.compile({});
  EXPECT_EQ(model.fit(data_, {.verbose = 0}).epochs(), 1U);
  model.check_mirrored();
}

TEST_P(FailureTest, ALabelOutOfRangeIsNamedWithItsRecord) {
  for (const std::int64_t wrong : {std::int64_t{4}, std::int64_t{-1}}) {
    Training training(GetParam());
    Model model = compiled(training.strategy, small_mlp);
    std::vector<std::int64_t> labels(40, 1);
    labels[21] = wrong;
    const Dataset bad = labelled({8}, std::vector<float>(40 * 8, 0.5F), labels).batch({.global_batch = 8});
    for (const bool training_run : {true, false}) {
      const DataError error = error_of<DataError>([&] {
        if (training_run) model.fit(bad, {.verbose = 0});
        if (!training_run) model.evaluate(bad);
      });
      EXPECT_EQ(error.location().record, 21U);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("label " + std::to_string(wrong)), HasSubstr("0 to 3")));
    }
  }
}

TEST_P(FailureTest, ALossThatIsNoNumberStopsTheFitAtItsStep) {
  Training training(GetParam());
  const Net linear = [](Graph& g) { return g.dense(g.input("image", {8}), 4); };
  Model model = compiled(training.strategy, linear);
  std::vector<float> images(40 * 8, 0.5F);
  images[17 * 8] = std::numeric_limits<float>::quiet_NaN();
  const Dataset bad = labelled({8}, images, std::vector<std::int64_t>(40, 1)).batch({.global_batch = 8});
  try {
    model.fit(bad, {.verbose = 0});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("not a finite number"), HasSubstr("step 2")));
    EXPECT_EQ(dynamic_cast<const ConfigError*>(&error), nullptr) << "the run failed; nothing was asked wrongly";
  }
  Model careless = compiled(training.strategy, linear);
  EXPECT_EQ(careless.fit(bad, {.verbose = 0, .step = {.nan = NanPolicy::kIgnore}}).epochs(), 1U);
}

TEST(NotFinite, AParameterIsNamedAtTheEndOfTheEpoch) {
  // The loss need not show it: where a ReLU makes a zero of it, only the parameters before it are lost.
  Training training(2);
  Model model = compiled(training.strategy, small_mlp);
  const Callback fault{.on_epoch_end = [](const EpochReport&, FitControl& control) {
    std::vector<float> bias(4, 0.0F);
    bias[1] = std::numeric_limits<float>::infinity();
    if (control.model().global_step() == 8) control.model().write_variable("dense_1/bias", bias);
  }};
  const Dataset data = blobs(64).batch({.global_batch = 8});
  EXPECT_THROW(model.fit(data, {.epochs = 2, .callbacks = {fault}, .verbose = 0}), Error);
  EXPECT_THAT(error_of([&] { model.state().variables.check_finite(); }).what(), HasSubstr("'dense"));
}

// Of parameters and of state, wherever the memory is; what is finite is passed over, whatever its size.
TEST(NotFinite, EveryVariableIsLookedAt) {
  for (const bool own_memory : {false, true}) {
    Training training(own_memory ? own_memory_devices(1, "discrete", DeviceNeed::kKernels)
                                 : test_devices(1, DeviceNeed::kKernels));
    Model model = compiled(training.strategy, norm_cnn);
    MirroredVariables& variables = model.state().variables;
    for (const std::string& name : model.variable_names()) {
      const std::vector<float> before = model.read_variable(name);
      std::vector<float> changed = before;
      changed.back() = std::numeric_limits<float>::max();
      changed.front() = std::numeric_limits<float>::denorm_min();
      model.write_variable(name, changed);
      EXPECT_NO_THROW(variables.check_finite()) << name;
      for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
        changed.back() = bad;
        model.write_variable(name, changed);
        EXPECT_THAT(error_of([&] { variables.check_finite(); }).what(), HasSubstr("'" + name + "'"));
      }
      model.write_variable(name, before);
    }
    EXPECT_NO_THROW(variables.check_finite());
  }
}

TEST(Mirrored, ACopyThatDiffersIsNamed) {
  Training training(3);
  Model model = compiled(training.strategy, norm_cnn);
  model.check_mirrored();
  disturb(model, training.strategy, "batch_norm/gamma", 1, 2, 1e-6F);
  disturb(model, training.strategy, "dense/bias", 2, 0, 1.0F);
  EXPECT_THAT(
      error_of<DeviceError>([&] { model.check_mirrored(); }).what(),
      AllOf(HasSubstr("'batch_norm/gamma'"), HasSubstr("0 and 1"), HasSubstr(training.devices[1].info().name)));
}

TEST(Mirrored, TheFitFindsAFaultyReplicaAtTheNextCheck) {
  Training training(2);
  Model model = compiled(training.strategy, small_mlp);
  const Dataset data = blobs(64).batch({.global_batch = 8});
  EXPECT_EQ(model.fit(data, {.verbose = 0, .step = {.mirror_check_every = 3}}).epochs(), 1U);
  const Callback fault{.on_epoch_end = [&](const EpochReport&, FitControl& control) {
    disturb(control.model(), training.strategy, "dense_1/bias", 1, 1, 1.0F);
  }};
  EXPECT_THAT(error_of<DeviceError>([&] {
                model.fit(data,
                          {.epochs = 2, .callbacks = {fault}, .verbose = 0, .step = {.mirror_check_every = 3}});
              }).what(),
              HasSubstr("differs between replicas 0 and 1"));
}

// On the CPU: the text is what is tested.
TEST(Strategy, SaysWhatItRunsOn) {
  DeviceGroup devices = open_devices("cpu:2");
  testing::internal::CaptureStdout();
  Strategy strategy(devices);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "MirroredStrategy over cpu:0, cpu:1\nNumber of devices: 2\n");
  EXPECT_EQ(strategy.local_replicas(), 2);
}

}  // namespace
}  // namespace headrace::test

// What an optimizer keeps of each variable, and the options it refuses.
#include "headrace/tests/train/training_fixture.h"

namespace headrace::test {
namespace {

// Two runs of one model differ in nothing that is written down: so a checkpoint of variables and the optimizer's
// variables is whole.
TEST(OptimizerVariables, HoldAllThatTrainingDependsOn) {
  const Optimizer optimizer = with_all_around(grouped());
  const Dataset data = blobs(64, {6, 6, 2}).batch({.global_batch = 8});
  Training training(2), other_training(1);
  Model model = compiled(training.strategy, small_cnn, optimizer);
  model.fit(data, {.verbose = 0});
  EXPECT_EQ(model.optimizer_variable_names().size(), 4 * 4U);
  Training copied_training(2);
  Model copied = compiled(copied_training.strategy, small_cnn, optimizer, 99);
  for (const std::string& name : model.variable_names()) copied.write_variable(name, model.read_variable(name));
  for (const std::string& name : model.optimizer_variable_names()) {
    copied.write_variable(name, model.read_variable(name, 1));
  }
  copied.state().step = model.global_step();
  for (Model* each : {&model, &copied}) each->fit(data, {.verbose = 0});
  EXPECT_EQ(model.weights_sha256(), copied.weights_sha256());
  for (const std::string& name : model.optimizer_variable_names()) {
    EXPECT_EQ(model.read_variable(name), copied.read_variable(name)) << name;
  }
  EXPECT_THROW(model.write_variable("dense/bias:slow", std::vector<float>(3)), ConfigError);
  EXPECT_THROW(model.read_variable("dense/bias:third_moment"), ConfigError);
}

TEST(OptimizerVariables, AreMirroredToo) {
  Optimizer optimizer = sgd(0.1F);
  optimizer.average = WeightAverage{};
  Training training(2);
  Model model = compiled(training.strategy, small_mlp, optimizer);
  model.check_mirrored();
  const Buffer& average = model.state().optimizer[1].average;
  upload(training.strategy.device(1), reinterpret_cast<float*>(average.data()), 5.0F);
  EXPECT_THAT(error_of<DeviceError>([&] { model.check_mirrored(); }).what(),
              HasSubstr("'dense_1/weights:average' differs between replicas 0 and 1"));
}

TEST(OptimizerOptions, ThatCannotBeAreRefused) {
  Training training(1);
  const auto refusal = [&](const auto& change) -> std::string {
    Optimizer optimizer = adam();
    change(optimizer);
    return message_of([&] { compiled(training.strategy, small_mlp, optimizer); });
  };
  EXPECT_THAT(refusal([](Optimizer& of) { of.clip.max_norm = -1; }), HasSubstr("limited to -1"));
  EXPECT_THAT(refusal([](Optimizer& of) { of.clip.max_value = NAN; }), HasSubstr("limited to nan"));
  EXPECT_THAT(refusal([](Optimizer& of) { of.lookahead = {.every = 0}; }), HasSubstr("every 0 steps"));
  EXPECT_THAT(refusal([](Optimizer& of) { of.lookahead = {.share = 0}; }), HasSubstr("share of 0"));
  EXPECT_THAT(refusal([](Optimizer& of) { of.average = {.decay = 1.5F}; }), HasSubstr("decay by 1.5"));
  Model model = compiled(training.strategy, small_mlp);
  const Dataset data = blobs(16).batch({.global_batch = 8});
  EXPECT_THROW(model.evaluate(data, {.averaged_weights = true}), ConfigError);
  EXPECT_THROW(model.predict(data, {.averaged_weights = true}), ConfigError);
}

}  // namespace
}  // namespace headrace::test

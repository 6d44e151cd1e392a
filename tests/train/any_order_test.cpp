// Trainings on batches that come in any order: each epoch trains on every example once, stopped and resumed, too.
#include <gtest/gtest.h>

#include "headrace/devices/base/error.h"
#include "headrace/tests/support/temp_folder.h"
#include "headrace/tests/train/toy_data.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/evaluator.h"

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
}  // namespace headrace::test

// Trainings whose small batches come in bursts and whose steps are collected many at a time: only the time
// differs.
#include <gtest/gtest.h>

#include <limits>

#include "headrace/devices/base/error.h"
#include "headrace/tests/train/toy_data.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

constexpr int kSteps = 75;

Dataset many_steps() { return blobs(kSteps * 8).shuffle({.seed = 4}).batch({.global_batch = 8}); }

struct Outcome {
  std::string weights;
  std::vector<double> losses, accuracies;
  bool operator==(const Outcome&) const = default;
};

// `prefetch`: below 8 no batches come in bursts.
Outcome outcome_of(int replicas, int accumulate, int prefetch) {
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
  for (const int bad : {0, 1, 15, 16, 17, 40, kSteps - 1}) {
    std::vector<float> images(kSteps * 8, 1.0F);
    images[static_cast<std::size_t>(bad) * 8] = std::numeric_limits<float>::quiet_NaN();
    const Dataset data =
        Dataset::from(in_memory("one is not a number", kSteps,
                                {array_of("image", Shape{8}, images),
                                 array_of("label", Shape{}, std::vector<std::int64_t>(kSteps, 1))}))
            .batch({.global_batch = 1});
    Training training(1);
    Model model = compiled(training.strategy, [](Graph& g) { return g.dense(g.input("image", {8}), 4); });
    try {
      model.fit(data, {.epochs = 1, .verbose = 0});
      ADD_FAILURE() << "step " << bad << " passed";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("step " + std::to_string(bad)), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace headrace::test

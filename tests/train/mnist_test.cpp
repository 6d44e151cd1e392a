// The documents' MNIST program: their accuracy after one and two epochs.
#include "headrace/tests/support/data.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/nets.h"

namespace headrace::test {
namespace {

TEST(Mnist, TheMlpReachesTheDocumentedAccuracy) {
  const auto folder = shared_data("mnist");
  if (!folder) GTEST_SKIP() << "no MNIST: name the data's folder in HEADRACE_DATA";
  const Dataset all = Dataset::from(idx_folder(*folder, Split::kTrain));
  const Dataset train = all.take(50'000).shuffle().batch({.global_batch = 32});
  const Dataset validation = all.skip(50'000).batch({.global_batch = 250});
  const Dataset held_out = Dataset::from(idx_folder(*folder, Split::kTest)).batch({.global_batch = 250});

  Training training;
  Model model = training.strategy.build(mnist_mlp, {.fields = train.fields()});
  model.compile({});
  const History history = model.fit(train, {.epochs = 2, .validation = validation, .verbose = 0});
  EXPECT_EQ(history["steps"][0], 1563);
  EXPECT_GE(history["val_accuracy"][0], 0.957);
  EXPECT_GE(model.evaluate(held_out).accuracy, 0.967);
}

}  // namespace
}  // namespace headrace::test

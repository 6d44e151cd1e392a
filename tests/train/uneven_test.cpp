// Sizes that do not divide: whatever the examples, batch, replicas and accumulation, a run ends and its losses are
// those of one replica.
#include <gtest/gtest.h>

#include "headrace/devices/base/rng.h"
#include "headrace/tests/train/toy_data.h"
#include "headrace/tests/train/training_fixture.h"

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

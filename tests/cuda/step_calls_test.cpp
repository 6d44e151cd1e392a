// What a training step costs the host in calls of the CUDA runtime, exactly. Who adds a call to a step changes a
// number here, and says why. On an H100's host a copy or a small launch is said to take about 1.5 us, a graph's
// launch 3 to 5 us, an event 0.5 us, a look at one 0.2 us: about 11 us for a busy device, with a call for each
// copy. What one call for three of them takes, and setting a device that is current already, was not measured.
#include <gtest/gtest.h>

#include "headrace/tests/cuda/fake_cuda_fixture.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/trainer.h"

namespace headrace {
namespace {

using test::fake_cuda::Calls;
using test::fake_cuda::calls_elsewhere;
using test::fake_cuda::calls_here;

constexpr int kWarmSteps = 8, kSteps = 40;
constexpr std::int64_t kBatch = 8, kRecords = 64;

Calls difference(const Calls& after, const Calls& before) {
  Calls made;
  for (const auto& [name, count] : after) {
    const auto found = before.find(name);
    made[name] = count - (found == before.end() ? 0 : found->second);
  }
  return made;
}

// Of each of so many rounds; one that does not make the same calls as the others is an error.
Calls a_round(const Calls& made, std::uint64_t rounds) {
  Calls each;
  for (const auto& [name, count] : made) {
    EXPECT_EQ(count % rounds, 0U) << name << ": " << count << " calls in " << rounds << " rounds";
    if (count >= rounds) each[name] = count / rounds;
  }
  return each;
}

class StepCalls : public test::FakeCuda {
 protected:
  // Of the thread that trains, after the first steps. `busy`: the device is at work whenever it is looked at.
  static Calls of_a_step(int replicas, bool busy, const TrainerOptions& options = {}) {
    return of_a_step(replicas, busy, options, {}, test::blobs(kRecords, {6, 6, 2}));
  }
  static Calls of_a_step(int replicas, bool busy, const TrainerOptions& options, const CompileOptions& compiled,
                         const Dataset& data) {
    DeviceGroup devices = open(replicas);
    Strategy strategy(devices, {.announce = false});
    Model model = strategy.build(test::norm_cnn, {.seed = 3});
    model.compile(compiled);
    Loader loader(data.batch({.global_batch = kBatch * replicas}), devices, {.epochs = 1000, .threads = 1});
    Trainer trainer(strategy, model, loader, options);
    if (busy) test::fake_cuda::fall_behind();
    for (int i = 0; i < kWarmSteps; ++i) EXPECT_TRUE(trainer.step());
    const Calls before = calls_here();
    for (int i = 0; i < kSteps; ++i) EXPECT_TRUE(trainer.step());
    return a_round(difference(calls_here(), before), kSteps);
  }

  // Of the engine's threads, for four batches (one copy in four is timed, pipeline/engine/transfer.h): what
  // twice as many cost more. How often the assembler looks whether a slot is free depends on the time and does not
  // count.
  static Calls of_four_batches(const Dataset& data) {
    constexpr std::uint64_t kEpochs = 4;
    const auto run = [&](std::uint64_t epochs) {
      DeviceGroup devices = open();
      const std::unique_ptr<Stream> consumer = devices[0].create_stream();
      const Calls before = calls_elsewhere();
      {
        Loader loader(data.batch({.global_batch = kBatch}), devices,
                      {.epochs = epochs, .threads = 1, .resident = Residency::kNever});
        while (auto batch = loader.next()) {
          consumer->wait(batch->ready());
          batch->release(*consumer);
        }
      }
      Calls made = difference(calls_elsewhere(), before);
      made.erase("cudaEventQuery");
      return made;
    };
    const Calls once = run(kEpochs);
    return a_round(difference(run(2 * kEpochs), once), kEpochs * kRecords / kBatch / 4);
  }
};

const Calls kBusyStep{
    {"cudaEventQuery", 2},            // is the last step at work? has the batch arrived?
    {"cudaGetLastError", 1},          // it is: "not ready" is no error that a later call should find
    {"cudaMemcpyBatchAsync", 1},      // scalars, the image, the label
    {"cudaMemcpyAsync", 1},           // sums and labels back
    {"cudaEventRecordWithFlags", 2},  // the batch is passed; the step is done
    {"cudaGraphLaunch", 1},
    {"cudaEventSynchronize", 1},  // of the oldest step in flight
    {"cudaEventElapsedTime", 1},  // its length
    {"cudaSetDevice", 4},         // for the copies together, the events and the launch
};

TEST_F(StepCalls, OfABusyDevice) { EXPECT_EQ(of_a_step(1, true), kBusyStep); }

TEST_F(StepCalls, OfAnIdleDevice) {
  Calls budget = kBusyStep;
  budget.erase("cudaGetLastError");
  budget["cudaEventRecordWithFlags"] += 1;  // the step begins
  budget["cudaSetDevice"] += 1;
  budget["cudaEventElapsedTime"] += 1;  // how long the device had nothing to do
  EXPECT_EQ(of_a_step(1, false), budget);
}

// Losses and metrics are within the graph, their sums come back in the same copy.
TEST_F(StepCalls, OfOtherLossesAndMetrics) {
  const CompileOptions compiled{.loss = 0.7F * categorical_crossentropy() + 0.3F * mean_squared_error(),
                                .metrics = {accuracy(), top_k(2), confusion_matrix(), mean_absolute_error()}};
  EXPECT_EQ(of_a_step(1, true, {}, compiled, test::blobs(kRecords, {6, 6, 2}).map(one_hot(4))), kBusyStep);
}

TEST_F(StepCalls, OfTwoReplicasIsTwiceThat) {
  Calls twice;
  for (const auto& [name, count] : kBusyStep) twice[name] = 2 * count;
  EXPECT_EQ(of_a_step(2, true), twice) << "sums are within the graphs";
}

TEST_F(StepCalls, OfLimitsLookaheadAndAveragesAreNoMore) {
  const CompileOptions compiled{.optimizer = test::with_all_around(adam(1e-2F))};
  EXPECT_EQ(of_a_step(1, true, {}, compiled, test::blobs(kRecords, {6, 6, 2})), kBusyStep)
      << "they are within the graph";
}

// A batch more is one more of all but the launch of the update.
TEST_F(StepCalls, OfAStepOfTwoBatches) {
  Calls budget;
  for (const auto& [name, count] : kBusyStep) budget[name] = 2 * count;
  budget["cudaGraphLaunch"] = 3;
  budget["cudaSetDevice"] += 1;
  EXPECT_EQ(of_a_step(1, true, {.step = {.accumulate = 2}}), budget);
}

TEST_F(StepCalls, OfFourCopiedBatches) {
  const Calls budget{
      {"cudaMemcpyAsync", 4},     {"cudaEventRecordWithFlags", 4},  // the batch is there
      {"cudaStreamWaitEvent", 4},                                   // the consumer has passed what the slot held
      {"cudaLaunchHostFunc", 2},                                    // one copy in four is timed
      {"cudaSetDevice", 10},  // for all of these but copies: the thread's own is its own affair
  };
  EXPECT_EQ(of_four_batches(test::blobs(kRecords, {6, 6, 2})), budget);
}

TEST_F(StepCalls, OfFourConvertedBatches) {
  const Dataset data = Dataset::from(test::noise_images(kRecords, 8, 8))
                           .map(pad_crop(8, 2) | normalize({0.5F, 0.5F, 0.5F}, {0.2F, 0.2F, 0.2F}));
  const Calls budget{{"cudaMemcpyAsync", 4},    {"cudaEventRecordWithFlags", 4}, {"cudaStreamWaitEvent", 4},
                     {"cudaLaunchHostFunc", 2}, {"cudaSetDevice", 14},           {"kernel", 4}};
  EXPECT_EQ(of_four_batches(data), budget);
}

}  // namespace
}  // namespace headrace

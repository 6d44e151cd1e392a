// A world that cannot begin ends at once for all who wait.
#include "headrace/devices/base/clock.h"
#include "headrace/tests/workers/fake_worker.h"
#include "headrace/tests/workers/world_fixture.h"

namespace headrace::test {
namespace {

constexpr WorkerOptions kLong{.start_timeout_seconds = 60, .call_timeout_seconds = 60};

// Runs workers 0 and 2 of a world beside `other`, which acts as worker 1. Expects them to end within `seconds` of
// its end, and returns their errors.
std::vector<std::string> errors_beside(int world, const std::function<void(const WorkerPlan&)>& other,
                                       double seconds) {
  const std::vector<WorkerPlan> plans = plans_of(world);
  auto real = std::async(std::launch::async, [&] {
    return run_workers({plans[0], plans[2]}, kLong, [](Workers& workers) {
      std::vector<float> values(100, 1.0F);
      workers.all_reduce_sum(values);
    });
  });
  other(plans[1]);
  const Stopwatch since;
  std::vector<std::string> errors = real.get();
  EXPECT_LT(since.seconds(), seconds);
  return errors;
}

TEST(EarlyEnds, AnotherBuildIsRefusedForAll) {
  const auto errors = errors_beside(
      4, [](const WorkerPlan& plan) { FakeWorker(plan).introduce("Headrace 9.9"); }, 10);
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("worker 1 (127.0.0.1) runs Headrace 9.9, worker 0 runs Headrace"),
                                 HasSubstr("install one build"))));
}

TEST(EarlyEnds, TwoOfOneRankAreRefusedForAll) {
  std::vector<WorkerPlan> plans = plans_of(4);
  plans.back().rank = 1;
  const Stopwatch waited;
  EXPECT_THAT(run_workers(plans, kLong, [](Workers&) {}),
              Each(HasSubstr("two processes say that they are worker 1")));
  EXPECT_LT(waited.seconds(), 10);
}

TEST(EarlyEnds, AnotherCountIsRefusedForAll) {
  std::vector<WorkerPlan> plans = plans_of(4);
  plans[2].workers = 3;
  plans.pop_back();
  const Stopwatch waited;
  EXPECT_THAT(run_workers(plans, kLong, [](Workers&) {}),
              Each(HasSubstr("worker 2 counts 3 workers, worker 0 counts 4")));
  EXPECT_LT(waited.seconds(), 10);
}

TEST(EarlyEnds, ACompleteWorldRefusesAStrangerAlone) {
  const std::vector<WorkerPlan> plans = plans_of(2);
  std::promise<void> joined, refused;
  auto world = std::async(std::launch::async, [&] {
    return run_workers(plans, kLong, [&](Workers& workers) {
      std::vector<float> values(100, 1.0F);
      workers.all_reduce_sum(values);
      if (workers.rank() == 1) joined.set_value();
      if (workers.rank() == 1) refused.get_future().wait();
      workers.all_reduce_sum(values);
    });
  });
  joined.get_future().wait();
  EXPECT_THAT(run_workers({plans[1]}, kLong, [](Workers&) {}),
              ElementsAre(HasSubstr("two processes say that they are worker 1")));
  refused.set_value();
  EXPECT_THAT(world.get(), Each(IsEmpty()));
}

TEST(EarlyEnds, OneLostWhileOthersAreMissing) {
  const std::vector<std::string> errors = errors_beside(
      4,
      [](const WorkerPlan& plan) {
        const FakeWorker worker(plan);
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
      },
      1);
  EXPECT_THAT(errors, Each(HasSubstr("worker 1 was lost")));
}

TEST(EarlyEnds, OneLostAfterItsIntroduction) {
  const auto errors = errors_beside(
      3, [](const WorkerPlan& plan) { FakeWorker(plan).introduce(); }, 1);
  EXPECT_THAT(errors, Each(HasSubstr("worker 1 (fake, process 1) was lost, while this worker was in connecting")));
}

TEST(EarlyEnds, OneLostBeforeTheMesh) {
  const auto errors = errors_beside(
      3,
      [](const WorkerPlan& plan) {
        FakeWorker worker(plan);
        worker.introduce();
        worker.tell_address();
      },
      1);
  EXPECT_THAT(errors, Each(HasSubstr("worker 1 (fake, process 1) was lost, while this worker was in connecting")));
}

TEST(EarlyEnds, OneLostWhileOthersConnectToIt) {
  const auto errors = errors_beside(
      3,
      [](const WorkerPlan& plan) {
        FakeWorker worker(plan);
        worker.introduce();
        worker.tell_address();
        GlooMesh mesh(plan.rank, plan.workers, "127.0.0.1", 60);
        const auto leave = [&](std::string_view mine) -> std::vector<std::string> {
          worker.gather(mine);
          std::this_thread::sleep_for(std::chrono::milliseconds(300));
          throw std::runtime_error("it does not connect");
        };
        EXPECT_THROW(mesh.connect(leave), std::runtime_error);
      },
      1);
  EXPECT_THAT(errors, Each(HasSubstr("worker 1 (fake, process 1) was lost, while this worker was in ")));
}

}  // namespace
}  // namespace headrace::test

#include <omp.h>
#include <ctime>

#include "headrace/devices/cpu/cpu_backend.h"
#include "headrace/devices/cpu/openmp_waiting.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

std::vector<bool> decisions(const std::vector<double>& loads) {
  SleepDecision decision;
  std::vector<bool> sleeps;
  for (const double load : loads) sleeps.push_back(decision.update(load));
  return sleeps;
}

TEST(SleepDecision, SpinsOnAMachineOfItsOwn) {
  EXPECT_EQ(decisions({0, 0.1, 0.24, 0}), (std::vector<bool>{false, false, false, false}));
}

TEST(SleepDecision, SleepsAfterTwoMeasurementsOfLoad) {
  EXPECT_EQ(decisions({1, 1, 0.25}), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(decisions({1, 0, 1, 0, 1}), (std::vector<bool>(5, false)));
}

TEST(SleepDecision, SpinsAgainAfterFourWithout) {
  EXPECT_EQ(decisions({1, 1, 0, 0, 0, 1, 0, 0, 0, 0}),
            (std::vector<bool>{false, true, true, true, true, true, true, true, true, false}));
}

TEST(OpenMpWaiting, LeavesWhatTheEnvironmentSays) {
  for (const char* variable : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}) {
    if (std::getenv(variable) != nullptr) GTEST_SKIP() << variable << " is set";
  }
  EXPECT_NE(OpenMpWaiting::create(), nullptr);
  setenv("OMP_WAIT_POLICY", "active", 1);
  EXPECT_EQ(OpenMpWaiting::create(), nullptr);
  unsetenv("OMP_WAIT_POLICY");
}

TEST(OpenMpWaiting, HasNoThreadUntilMathematicsIsAskedFor) {
  const auto waiting = std::make_shared<OpenMpWaiting>();
  CpuDevice device("cpu:0", 2, waiting);
  device.input_kernels();
  EXPECT_FALSE(waiting->is_watching());
  device.kernels();
  EXPECT_TRUE(waiting->is_watching());
  device.kernels();
  EXPECT_TRUE(waiting->is_watching());
}

double process_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Processor time that a team of two takes for nothing, in pauses of 20 ms between parallel regions.
double seconds_of_a_pause() {
  constexpr int kPauses = 10;
  double used = 0;
  std::atomic<int> work{0};
  std::thread([&] {
    const double before = process_seconds();
    for (int i = 0; i < kPauses; ++i) {
#pragma omp parallel num_threads(2)
      work.fetch_add(1, std::memory_order_relaxed);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    used = process_seconds() - before;
  }).join();
  return used / kPauses;
}

TEST(OpenMpOversubscription, MakesWaitingThreadsSleep) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer does not see libgomp start and join threads";
#endif
  const double spinning = seconds_of_a_pause();
  const OpenMpOversubscription more_threads;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until its threads are there
  const double sleeping = seconds_of_a_pause();
  EXPECT_LT(sleeping, 0.001) << "spinning: " << spinning;
}

}  // namespace
}  // namespace headrace::test

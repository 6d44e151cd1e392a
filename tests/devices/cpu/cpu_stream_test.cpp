// The CPU's streams and collectives, and whom else the processor serves.
#include <omp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <ctime>

#include "headrace/devices/cpu/cpu_backend.h"
#include "headrace/devices/cpu/cpu_collective.h"
#include "headrace/devices/cpu/cpu_features.h"
#include "headrace/devices/cpu/cpu_stream.h"
#include "headrace/devices/cpu/openmp_waiting.h"
#include "headrace/devices/cpu/other_load.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(CpuStream, ItsWorkerHasTheDevicesOpenMpThreads) {
  for (const int threads : {1, 2}) {
    CpuDevice device("cpu:0", threads);
    CpuStream stream(device, threads);
    int seen = 0;
    stream.submit([&] { seen = omp_get_max_threads(); });
    stream.synchronize();
    EXPECT_EQ(seen, threads);
  }
}

TEST(CpuStream, SkippedRunsInPlaceOfWorkAfterAnError) {
  CpuDevice device("cpu:0");
  CpuStream stream(device, 1);
  int ran = 0;
  int skipped = 0;
  const auto submit = [&] { stream.submit([&] { ++ran; }, [&] { ++skipped; }); };
  submit();
  stream.submit([] { throw std::runtime_error("broken"); });
  submit();
  stream.begin_capture();
  submit();
  const auto work = stream.end_capture();
  stream.launch(*work);
  EXPECT_THROW(stream.synchronize(), std::runtime_error);
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(skipped, 2);
}

TEST(CpuStream, ItsOwnWorkMayNotSubmitOrWait) {
  CpuDevice device("cpu:0");
  CpuStream stream(device, 1);
  stream.submit([&] { stream.submit([] {}); });
  EXPECT_THROW(stream.synchronize(), DeviceError);
  stream.submit([&] { stream.synchronize(); });
  EXPECT_THROW(stream.synchronize(), DeviceError);
}

TEST(CpuStream, LetsGoOfWhatItsWorkHeld) {
  CpuDevice device("cpu:0");
  CpuStream stream(device, 1);
  auto held = std::make_shared<int>(1);
  stream.submit([held] { ++*held; });
  stream.synchronize();
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(*held, 2);
}

TEST(CpuStream, AnEmptyFunctionIsRefusedAtOnce) {
  CpuDevice device("cpu:0");
  CpuStream stream(device, 1);
  EXPECT_THROW(stream.submit({}), Error);
}

// Another backend's event must not be mistaken for one of ours.
struct ForeignEvent final : Event {
  bool ready() const override { return true; }
  void wait() const override {}
  std::optional<std::int64_t> ns_since(const Event&) const override { return std::nullopt; }
};

TEST(CpuStream, EventsOfOtherDevicesAreRefused) {
  CpuDevice device("cpu:0");
  CpuStream stream(device, 1);
  ForeignEvent event;
  EXPECT_THROW(stream.record(event), DeviceError);
  EXPECT_THROW(stream.wait(event), DeviceError);
  CapturedWork foreign;
  EXPECT_THROW(stream.launch(foreign), DeviceError);
}

TEST(CpuBarrier, NobodyLeavesBeforeAllHaveCome) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 2000;
  CpuBarrier barrier(kThreads);
  std::atomic<int> arrivals = 0;
  std::atomic<bool> early = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int round = 1; round <= kRounds; ++round) {
        ++arrivals;
        const bool met = barrier.wait();
        if (!met || arrivals < kThreads * round) early = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(early);
  EXPECT_EQ(arrivals, kThreads * kRounds);
}

TEST(CpuBarrier, CancellingReleasesAtAnyMoment) {
  for (int round = 0; round < 300; ++round) {
    CpuBarrier barrier(3);
    std::atomic<int> released = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        if (!barrier.wait()) ++released;
      });
    }
    if (round % 2 == 0) std::this_thread::yield();
    barrier.cancel("first");
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(released, 2);
    barrier.cancel("second");
    EXPECT_FALSE(barrier.wait());
    EXPECT_EQ(barrier.reason(), "first");
  }
}

// What the operating system says of the first processor in `field`, with a space at each end.
std::string listed(const char* field) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field)) return line.substr(line.find(':') + 1) + " ";
  }
  return {};
}

bool lists(const std::string& flags, const std::string& word) {
  return flags.find(" " + word + " ") != std::string::npos;
}

TEST(CpuFeatures, AgreeWithTheOperatingSystem) {
  const std::string all = listed("flags");
  if (all.empty()) GTEST_SKIP() << "/proc/cpuinfo lists no flags";
  EXPECT_EQ(has_avx2(), lists(all, "avx2") && lists(all, "fma"));
  EXPECT_EQ(has_avx512(),
            lists(all, "avx512f") && lists(all, "avx512bw") && lists(all, "avx512dq") && lists(all, "avx512vl"));
  EXPECT_EQ(has_avx512_bf16(), has_avx512() && lists(all, "avx512_bf16"));
  EXPECT_LE(has_amx_bf16(), lists(all, "amx_bf16")) << "the system may refuse what it lists, not the reverse";
}

TEST(CpuFeatures, Bf16IsFastWithAmxOrOnAmdsProcessors) {
  if (listed("vendor_id").empty()) GTEST_SKIP() << "/proc/cpuinfo names no vendor";
  const bool amd = lists(listed("vendor_id"), "AuthenticAMD");
  EXPECT_EQ(has_fast_bf16(), has_amx_bf16() || (amd && has_avx512_bf16()));
}

TEST(CpuFeatures, DescribeTheProcessor) {
  EXPECT_FALSE(cpu_model().empty());
  EXPECT_GE(cpu_cores(), 1);
}

constexpr const char* kProcStat =
    "cpu  700 70 7 1000 10 3 4 5 99 9\n"
    "cpu0 100 10 1 500 5 1 2 3 50 5\n"
    "cpu1 200 20 2 250 5 1 1 1 49 4\n"
    "cpu12 400 40 4 250 0 1 1 1 0 0\n"
    "intr 12345 0 0 0\n"
    "ctxt 99\n";

// User, nice, system, interrupts and what a hypervisor took; not idle nor waiting for disks, nor a guest's time,
// which is in the user's.
TEST(BusySeconds, AddsWhatAProcessorDid) {
  EXPECT_DOUBLE_EQ(busy_seconds(kProcStat, {0}, 100).value(), 1.17);
  EXPECT_DOUBLE_EQ(busy_seconds(kProcStat, {12}, 100).value(), 4.47);
  EXPECT_DOUBLE_EQ(busy_seconds(kProcStat, {0, 1, 12}, 1000).value(), 0.117 + 0.225 + 0.447);
}

TEST(BusySeconds, NothingWhereAProcessorIsMissing) {
  EXPECT_FALSE(busy_seconds(kProcStat, {0, 2}, 100));
  EXPECT_FALSE(busy_seconds(kProcStat, {}, 100));
  EXPECT_FALSE(busy_seconds("", {0}, 100));
  EXPECT_FALSE(busy_seconds("cpu0 1 2 3\n", {0}, 100));
  EXPECT_FALSE(busy_seconds("cpu0 a b c d e f g h\ncpu", {0}, 100));
}

TEST(OtherLoad, SeesABusyProcess) {
  if (!std::filesystem::exists("/proc/stat")) GTEST_SKIP() << "no /proc/stat";
  OtherLoad load;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::atomic<unsigned> turns{0};
    for (;;) turns.fetch_add(1);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const double seen = load.processors();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_GT(seen, 0.25);
}

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

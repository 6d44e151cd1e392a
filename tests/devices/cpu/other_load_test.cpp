#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "headrace/devices/cpu/other_load.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

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

}  // namespace
}  // namespace headrace::test

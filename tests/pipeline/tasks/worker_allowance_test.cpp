#include "headrace/pipeline/tasks/worker_allowance.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

std::unique_ptr<WorkerAllowance>& last_one() {
  static auto* const allowance = new std::unique_ptr<WorkerAllowance>;
  return *allowance;
}

// What is registered before any library begins runs at exit when oneTBB's own objects are gone.
void give_back(int, void*) { last_one().reset(); }
void register_first() { ::on_exit(give_back, nullptr); }
[[gnu::section(".preinit_array"), gnu::used]] void (*const registering)() = register_first;

[[noreturn]] void keep_one_to_the_end() {
  last_one() = std::make_unique<WorkerAllowance>(2);
  std::exit(0);
}

// As a task does that is the last to leave a loader or a scan while main() returns.
TEST(WorkerAllowance, MayBeGivenBackAfterOneTbbIsGone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(keep_one_to_the_end(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace headrace::test

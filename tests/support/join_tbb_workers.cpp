// Ends oneTBB's worker threads after a program's last test. GCC 12's LeakSanitizer looks a live thread up by its
// ID, which Linux reuses once 32,768 others were given out. It may find a thread that ended long ago, skip the
// live one's thread-local variables, and report what they own as leaked.
#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include <new>

namespace headrace::test {
namespace {

class JoinTbbWorkers final : public ::testing::Environment {
 public:
  void TearDown() override {
    tbb::task_scheduler_handle workers{tbb::attach{}};
    tbb::finalize(workers, std::nothrow);
  }
};

[[maybe_unused]] ::testing::Environment* const registered =
    ::testing::AddGlobalTestEnvironment(new JoinTbbWorkers);  // GoogleTest deletes it

}  // namespace
}  // namespace headrace::test

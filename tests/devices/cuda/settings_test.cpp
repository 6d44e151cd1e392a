#include "headrace/devices/cuda/settings.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

struct CollectiveTimeout : ::testing::Test {
  void SetUp() override { unsetenv("HEADRACE_COLLECTIVE_TIMEOUT"); }
  void TearDown() override { unsetenv("HEADRACE_COLLECTIVE_TIMEOUT"); }
};

TEST_F(CollectiveTimeout, IsThirtySecondsOrWhatTheEnvironmentSays) {
  EXPECT_EQ(collective_timeout().count(), 30);
  setenv("HEADRACE_COLLECTIVE_TIMEOUT", "", 1);
  EXPECT_EQ(collective_timeout().count(), 30);
  setenv("HEADRACE_COLLECTIVE_TIMEOUT", "600", 1);
  EXPECT_EQ(collective_timeout().count(), 600);
}

TEST_F(CollectiveTimeout, RefusesWhatIsNoNumberOfSeconds) {
  for (const char* bad : {"0", "-1", "soon", "1.5", "10s", "86401"}) {
    setenv("HEADRACE_COLLECTIVE_TIMEOUT", bad, 1);
    EXPECT_THROW(collective_timeout(), ConfigError) << bad;
  }
}

TEST(PollingTime, IsFiftyMicrosecondsOrWhatTheEnvironmentSays) {
  EXPECT_EQ(polling_time().count(), 50);
  setenv("HEADRACE_CUDA_POLL_US", "0", 1);
  EXPECT_EQ(polling_time().count(), 0);
  setenv("HEADRACE_CUDA_POLL_US", "never", 1);
  EXPECT_THROW(polling_time(), ConfigError);
  unsetenv("HEADRACE_CUDA_POLL_US");
}

}  // namespace
}  // namespace headrace

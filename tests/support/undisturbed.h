// Expectations about time, on a machine that other programs use too.
#pragma once

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace headrace::test {

// Runs `body` until its expectations hold, five times at most; only the last run's failures count. What is wrong
// fails each time; another program hardly spoils five runs in turn. Expectations of this thread only.
template <typename Body>
void undisturbed(Body body) {
  constexpr int kUncounted = 4;
  for (int run = 0; run < kUncounted; ++run) {
    testing::TestPartResultArray results;
    {
      const testing::ScopedFakeTestPartResultReporter reporter(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
      body();
    }
    if (results.size() == 0) return;
  }
  body();
}

}  // namespace headrace::test

// Expectations about time, on a machine that other programs use too.
#pragma once

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace headrace::test {

// Runs `body` until its expectations hold, five times at most; only the last run's failures count. Each run is
// told to take its time: 1, 2, 4, 8, 16 times as long as the first, so that what other programs take weighs ever
// less. What is wrong fails each time. Expectations of this thread only.
template <typename Body>
void undisturbed(Body body) {
  int slower = 1;
  for (constexpr int kLast = 16; slower < kLast; slower *= 2) {
    testing::TestPartResultArray results;
    {
      const testing::ScopedFakeTestPartResultReporter reporter(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
      body(slower);
    }
    if (results.size() == 0) return;
  }
  body(slower);
}

}  // namespace headrace::test

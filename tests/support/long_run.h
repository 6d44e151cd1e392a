// How much a randomised test does: a part in an ordinary run, every case that a guarantee counts where
// HEADRACE_LONG=1 is set (`tools/check long`, tests/README.md).
#pragma once

#include <gtest/gtest-spi.h>

#include "headrace/tests/support/test.h"

namespace headrace::test {

// Returns `all` in a long run, else `some`.
inline int long_or(int all, int some) {
  const char* const value = std::getenv("HEADRACE_LONG");
  return value != nullptr && std::string_view(value) == "1" ? all : some;
}

// Expectations about time, on a machine that other programs use too.

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

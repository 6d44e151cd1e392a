#include "headrace/devices/cuda/math/divisor.h"

#include <gtest/gtest.h>

namespace headrace::cuda {
namespace {

TEST(Divisor, QuotientsAreExactAroundEveryMultiple) {
  for (const std::int64_t divisor : {1LL, 2LL, 3LL, 5LL, 7LL, 15LL, 31LL, 32LL, 961LL, 65537LL, (1LL << 24) - 3}) {
    const Divisor by(divisor);
    const std::int64_t largest = (std::int64_t{1} << 62) / divisor;  // n d < 2^64 for all n below it
    for (const std::int64_t factor :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{12345}, largest / divisor}) {
      for (std::int64_t n = factor * divisor; n<(factor + 1) * divisor; n += divisor> 4 ? divisor / 4 : 1) {
        EXPECT_EQ(by.quotient(n), n / divisor) << n << " / " << divisor;
      }
      const std::int64_t below = (factor + 1) * divisor - 1;
      EXPECT_EQ(by.quotient(below), factor) << below << " / " << divisor;
    }
  }
}

}  // namespace
}  // namespace headrace::cuda

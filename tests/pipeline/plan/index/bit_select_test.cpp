#include "headrace/pipeline/plan/index/bit_select.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(BitSelect, FindsEveryMember) {
  for (const std::uint32_t one_in : {1U, 2U, 7U, 400U}) {
    for (const std::size_t words : {0U, 1U, 8U, 9U, 100U}) {
      Philox random({.seed = one_in, .record = words});
      std::vector<std::uint64_t> bits(words), members;
      for (std::uint64_t i = 0; i < words * 64; ++i) {
        if (random.below(one_in) != 0) continue;
        bits[i / 64] |= std::uint64_t{1} << (i % 64);
        members.push_back(i);
      }
      const BitSelect select(bits);
      ASSERT_EQ(select.count(), members.size());
      for (std::size_t n = 0; n < members.size(); ++n) ASSERT_EQ(select.select(n), members[n]);
    }
  }
}

}  // namespace
}  // namespace headrace::test

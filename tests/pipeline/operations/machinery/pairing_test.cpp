#include "headrace/pipeline/operations/machinery/pairing.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(Pairing, TakesEachExampleOnce) {
  for (const std::int64_t examples : {2, 3, 10, 31, 512}) {
    const Pairing pairing({.seed = 1, .epoch = 2, .step = 3}, 4, examples);
    std::set<std::int64_t> seen;
    for (std::int64_t i = 0; i < Pairing::pairs_of(examples); ++i) {
      const Pair pair = pairing[i];
      EXPECT_NE(pair.first, pair.second);
      for (const std::int64_t at : {pair.first, pair.second}) {
        EXPECT_GE(at, 0);
        EXPECT_LT(at, examples);
        EXPECT_TRUE(seen.insert(at).second) << at << " is in two pairs";
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), examples / 2 * 2);
  }
  EXPECT_EQ(Pairing::pairs_of(0), 0);
  EXPECT_EQ(Pairing::pairs_of(1), 0);
}

TEST(Pairing, IsAnotherForEveryKey) {
  const auto of = [](const BatchKey& key, std::uint16_t operation) {
    const Pairing pairing(key, operation, 64);
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < 32; ++i) {
      all.push_back(pairing[i].first * 64 + pairing[i].second);
      all.push_back(pairing.random(i).next_u32());
    }
    return all;
  };
  const std::set<std::vector<std::int64_t>> different = {of({.seed = 1}, 0), of({.seed = 2}, 0),
                                                         of({.seed = 1, .epoch = 1}, 0),
                                                         of({.seed = 1, .step = 1}, 0), of({.seed = 1}, 1)};
  EXPECT_EQ(different.size(), 5U);
  EXPECT_EQ(of({.seed = 1}, 0), of({.seed = 1}, 0));
}

}  // namespace
}  // namespace headrace::test

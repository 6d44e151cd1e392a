#include "headrace/pipeline/plan/index/mixing.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

std::vector<Share> shares_of(const Mixing& mixing, std::uint64_t pass) {
  MixedStretch stretch;
  std::vector<Share> shares;
  for (std::uint64_t i = 0; i < mixing.size(); ++i) shares.push_back(mixing.locate(pass, i, stretch));
  return shares;
}

std::vector<std::size_t> parts_of(const std::vector<Share>& shares) {
  std::vector<std::size_t> parts;
  for (const Share& share : shares) parts.push_back(share.part);
  return parts;
}

TEST(Mixing, GivesEveryPositionOfEachPartOnceAndInOrder) {
  const std::vector<std::vector<std::uint64_t>> cases{{1},       {64},        {65, 0},         {3, 5, 0, 1},
                                                      {1000, 1}, {333, 1, 7}, {500, 500, 501}, {1, 1, 1, 1, 9999}};
  for (const auto& counts : cases) {
    const Mixing mixing(counts, 5);
    EXPECT_EQ(mixing.size(), std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
    for (std::uint64_t pass : {0, 1, 7}) {
      std::vector<std::uint64_t> next(counts.size());
      for (const Share& share : shares_of(mixing, pass)) ASSERT_EQ(share.position, next[share.part]++);
      EXPECT_EQ(next, counts);
    }
  }
}

TEST(Mixing, IsTheSameInAnyOrderOfAsking) {
  const Mixing mixing({300, 41, 7}, 9);
  const auto expected = shares_of(mixing, 3);
  MixedStretch stretch;
  for (std::uint64_t i = 0; i < mixing.size(); ++i) {
    const std::uint64_t at = i * 101 % mixing.size();
    mixing.locate(i % 5, at / 2, stretch);
    const Share share = mixing.locate(3, at, stretch);
    ASSERT_EQ(share.part, expected[at].part);
    ASSERT_EQ(share.position, expected[at].position);
  }
}

TEST(Mixing, DependsOnKeyAndPass) {
  const auto of = [](std::uint64_t key, std::uint64_t pass) {
    return parts_of(shares_of(Mixing({50, 50}, key), pass));
  };
  EXPECT_EQ(of(1, 0), of(1, 0));
  EXPECT_NE(of(1, 0), of(1, 1));
  EXPECT_NE(of(1, 0), of(2, 0));
}

// Long stretches have the proportions of the whole; which part comes at one position is by chance.
TEST(Mixing, KeepsTheProportionsEverywhere) {
  constexpr std::uint64_t kFirst = 20'000, kSecond = 80'000;
  const Mixing mixing({kFirst, kSecond}, 3);
  const auto shares = shares_of(mixing, 0);
  for (std::size_t begin = 0; begin + 1000 <= shares.size(); begin += 777) {
    int first = 0;
    for (std::size_t i = begin; i < begin + 1000; ++i) first += shares[i].part == 0 ? 1 : 0;
    EXPECT_NEAR(first, 200, 25) << "from " << begin;
  }
  int at_start = 0;
  MixedStretch stretch;
  for (std::uint64_t pass = 0; pass < 1000; ++pass) at_start += mixing.locate(pass, 0, stretch).part == 0 ? 1 : 0;
  EXPECT_NEAR(at_start, 200, 5 * std::sqrt(1000 * 0.2 * 0.8));
}

}  // namespace
}  // namespace headrace::test

// Random numbers and permutations.
#include "headrace/devices/base/rng.h"
#include "headrace/devices/base/permutation.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

using Block = Philox::Block;

// The known answers published with Random123 for philox4x32-10.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(Philox::round10({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox::round10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox::round10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

Block first_block(const RandomKey& key) {
  Philox random(key);
  Block block{};
  for (auto& word : block) word = random.next_u32();
  return block;
}

TEST(Philox, LaysTheKeyOutInTheCounter) {
  const RandomKey key{.seed = 0x299f31d0a4093822, .epoch = 5, .record = 0x0000abcd12345678, .operation = 0x0102};
  EXPECT_EQ(first_block(key), Philox::round10({0, 0x12345678, 0xabcd0102, 5}, {0xa4093822, 0x299f31d0}));
}

TEST(Philox, EveryPartOfTheKeyMatters) {
  const RandomKey base{.seed = 1, .epoch = 2, .record = 3, .operation = 4};
  std::set<Block> blocks{first_block(base)};
  for (int bit = 0; bit < 64; ++bit) {
    RandomKey other = base;
    other.seed ^= std::uint64_t{1} << bit;
    blocks.insert(first_block(other));
    other = base;
    other.record ^= std::uint64_t{1} << (bit % 48);
    blocks.insert(first_block(other));
    other = base;
    other.epoch ^= 1U << (bit % 32);
    blocks.insert(first_block(other));
    other = base;
    other.operation = static_cast<std::uint16_t>(other.operation ^ (1U << (bit % 16)));
    blocks.insert(first_block(other));
  }
  EXPECT_EQ(blocks.size(), 1U + 64 + 48 + 32 + 16);
}

TEST(Philox, GoesOnToTheNextBlock) {
  Philox random(RandomKey{.seed = 9});
  for (int i = 0; i < 4; ++i) random.next_u32();
  const Block second = Philox::round10({1, 0, 0, 0}, {9, 0});
  for (const std::uint32_t wanted : second) EXPECT_EQ(random.next_u32(), wanted);
}

TEST(Philox, UniformStaysBelowOneAndHasItsMean) {
  Philox random(RandomKey{.seed = 3});
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const float value = random.uniform();
    ASSERT_GE(value, 0.0F);
    ASSERT_LT(value, 1.0F);
    sum += value;
  }
  EXPECT_NEAR(sum / 100'000, 0.5, 0.005);  // 5 standard deviations
}

TEST(Philox, BelowReachesEveryValueAboutEquallyOften) {
  Philox random(RandomKey{.seed = 4});
  std::vector<int> counts(10);
  for (int i = 0; i < 100'000; ++i) ++counts.at(random.below(10));
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
  EXPECT_EQ(random.below(1), 0U);
}

// Of 2^32 values for 3 * 2^30 numbers plain multiplication gives each third number two, the others one.
TEST(Philox, DrawsExactlyBelowABound) {
  Philox random({.seed = 12});
  std::array<int, 3> counts{};
  for (int i = 0; i < 90'000; ++i) ++counts.at(random.exactly_below(3U << 30) % 3);
  for (int count : counts) EXPECT_NEAR(count, 30'000, 900);
  EXPECT_EQ(random.exactly_below(1), 0U);
}

TEST(MixSeed, DependsOnBothAndOnTheirOrder) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t a = 0; a < 100; ++a) {
    for (std::uint64_t b = 0; b < 100; ++b) seeds.insert(mix_seed(a, b));
  }
  EXPECT_EQ(seeds.size(), 10'000U);
}

std::vector<std::uint64_t> all_of(std::uint64_t size, std::uint64_t key) {
  const Permutation permutation(size, key);
  std::vector<std::uint64_t> values;
  for (std::uint64_t i = 0; i < size; ++i) values.push_back(permutation(i));
  return values;
}

bool is_bijection(const std::vector<std::uint64_t>& values) {
  std::vector<bool> seen(values.size());
  for (std::uint64_t value : values) {
    if (value >= values.size() || seen[value]) return false;
    seen[value] = true;
  }
  return true;
}

TEST(Permutation, IsABijectionForEverySmallSize) {
  for (std::uint64_t size = 1; size <= 1000; ++size) EXPECT_TRUE(is_bijection(all_of(size, size * 31))) << size;
}

TEST(Permutation, IsABijectionForLargeSizes) {
  EXPECT_TRUE(is_bijection(all_of(50'000, 3)));
  EXPECT_TRUE(is_bijection(all_of((1 << 20) + 7, 4)));
}

TEST(Permutation, HasNoCollisionsInASampleOfABillion) {
  const Permutation permutation(1'000'000'000, 5);
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    const std::uint64_t value = permutation(i * 4999);
    EXPECT_LT(value, 1'000'000'000U);
    seen.insert(value);
  }
  EXPECT_EQ(seen.size(), 200'000U);
}

TEST(Permutation, IsAFunctionOfItsKey) {
  EXPECT_EQ(all_of(100, 1), all_of(100, 1));
  EXPECT_NE(all_of(100, 1), all_of(100, 2));
}

// Over many keys every index is about equally often at every position: chi-square with (n - 1)^2 degrees of
// freedom, six standard deviations.
TEST(Permutation, PutsEveryIndexAtEveryPosition) {
  for (std::uint64_t size : {2U, 3U, 5U, 10U, 16U, 31U}) {
    constexpr int kKeys = 20'000;
    std::vector<int> counts(size * size);
    for (int key = 0; key < kKeys; ++key) {
      const Permutation permutation(size, mix_seed(1, static_cast<std::uint64_t>(key)));
      for (std::uint64_t i = 0; i < size; ++i) ++counts[i * size + permutation(i)];
    }
    const double expected = static_cast<double>(kKeys) / static_cast<double>(size);
    double chi_square = 0;
    for (int count : counts) chi_square += (count - expected) * (count - expected) / expected;
    const double freedom = static_cast<double>((size - 1) * (size - 1));
    EXPECT_LT(chi_square, freedom + 6 * std::sqrt(2 * freedom)) << "size " << size;
  }
}

// Over many keys every order of a small set is about equally often: chi-square with N! - 1 degrees of freedom, six
// standard deviations. Odd orders are among them also where N is a power of two.
TEST(Permutation, MakesEveryOrderEquallyOften) {
  std::size_t orders = 1;
  for (std::uint64_t size = 2; size <= 7; ++size) {
    orders *= size;
    const int keys = static_cast<int>(orders) * 60;
    std::map<std::vector<std::uint64_t>, int> counts;
    for (int key = 0; key < keys; ++key) ++counts[all_of(size, mix_seed(7, static_cast<std::uint64_t>(key)))];
    EXPECT_EQ(counts.size(), orders) << "size " << size;
    double chi_square = 0;
    for (const auto& [order, count] : counts) chi_square += (count - 60.0) * (count - 60.0) / 60.0;
    const auto freedom = static_cast<double>(orders - 1);
    EXPECT_LT(chi_square, freedom + 6 * std::sqrt(2 * freedom)) << "size " << size;
  }
}

// On both sides of the change from the table to the network, and where the network begins to halve unevenly.
TEST(Permutation, IsABijectionAroundTheLargestTable) {
  for (std::uint64_t size = Permutation::kMaxTable - 2; size <= Permutation::kMaxTable + 3; ++size) {
    EXPECT_TRUE(is_bijection(all_of(size, 9))) << size;
  }
}

// Neighbours are not kept together more often than chance has it.
TEST(Permutation, SeparatesNeighbours) {
  const std::vector<std::uint64_t> values = all_of(50'000, 77);
  int close = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const auto distance = static_cast<std::int64_t>(values[i]) - static_cast<std::int64_t>(values[i - 1]);
    close += std::abs(distance) <= 50 ? 1 : 0;
  }
  EXPECT_NEAR(close, 100, 60);  // 100 of 50,000 differences lie within 50 by chance
}

}  // namespace
}  // namespace headrace::test

#include "headrace/devices/base/permutation.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

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

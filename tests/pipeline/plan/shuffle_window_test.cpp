#include "headrace/tests/pipeline/property.h"

namespace headrace::test {
namespace {

TEST(ShuffleWindow, ShufflesWithinEachWindow) {
  const auto epochs =
      values_of(Dataset::from(numbers(103)).shuffle_window({.size = 10, .seed = 2}).batch({.global_batch = 7}), 2);
  for (const auto& epoch : epochs) {
    ASSERT_EQ(epoch.size(), 103U);
    for (std::size_t first = 0; first < epoch.size(); first += 10) {
      std::vector<std::int64_t> window(
          epoch.begin() + static_cast<std::ptrdiff_t>(first),
          epoch.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(first + 10, 103)));
      std::ranges::sort(window);
      for (std::size_t i = 0; i < window.size(); ++i) EXPECT_EQ(window[i], static_cast<std::int64_t>(first + i));
    }
    EXPECT_FALSE(std::ranges::is_sorted(epoch));
  }
  EXPECT_NE(epochs[0], epochs[1]);
  const auto same = values_of(Dataset::from(numbers(103))
                                  .shuffle_window({.size = 10, .reshuffle_each_epoch = false})
                                  .batch({.global_batch = 7}),
                              2);
  EXPECT_EQ(same[0], same[1]);
}

TEST(ShuffleWindow, IsOneStream) {
  expect_one_stream(Dataset::from(numbers(58)).shuffle_window({.size = 9}).batch({.global_batch = 5}));
  expect_one_stream(Dataset::from(numbers(29))
                        .shuffle()
                        .repeat(2)
                        .shuffle_window({.size = 12})
                        .skip(3)
                        .batch({.global_batch = 5}));
  expect_contents(Dataset::from(numbers(58)).shuffle_window({.size = 100}).batch({.global_batch = 5}),
                  EpochContents::all(58), 3);
}

TEST(ShuffleWindow, RefusesAnEmptyWindow) {
  EXPECT_THROW(Dataset::from(numbers(5)).shuffle_window({.size = 0}), ConfigError);
}

}  // namespace
}  // namespace headrace::test

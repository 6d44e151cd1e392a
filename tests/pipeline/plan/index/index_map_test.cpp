// Stages as functions of positions, against the stage done literally on a list.
#include "headrace/pipeline/plan/index/index_map.h"
#include "headrace/pipeline/plan/index/bit_select.h"
#include "headrace/pipeline/plan/index/interleaving.h"
#include "headrace/pipeline/plan/index/mixing.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

// The last stage of a plan that `add` makes.
template <typename Add>
StagePtr last_stage(const Add& add) {
  return add(Dataset::from(std::make_shared<FakeSource>(1))).plan()->stage;
}
StagePtr take(std::uint64_t count) {
  return last_stage([&](const Dataset& data) { return data.take(count); });
}
StagePtr skip(std::uint64_t count) {
  return last_stage([&](const Dataset& data) { return data.skip(count); });
}
StagePtr shard(std::uint64_t count, std::uint64_t index) {
  return last_stage([&](const Dataset& data) { return data.shard(count, index); });
}
StagePtr repeat(std::int64_t times) {
  return last_stage([&](const Dataset& data) { return data.repeat(times); });
}
StagePtr shuffle(ShuffleOptions options) {
  return last_stage([&](const Dataset& data) { return data.shuffle(options); });
}
const StagePtr kShuffle = shuffle({.seed = 3});

std::vector<Located> located_in(const IndexMap& map, std::uint64_t epoch) {
  IndexCursor cursor(map);
  std::vector<Located> all;
  for (std::uint64_t i = 0; i < map.size(); ++i) all.push_back(cursor.locate(epoch, i));
  return all;
}

// A stage and what it does to a list.
struct Literal {
  StagePtr stage;
  std::uint64_t passes = 1;
  std::function<bool(std::uint64_t)> keeps = [](std::uint64_t) { return true; };
};
Literal literal_take(std::uint64_t count) {
  return {.stage = take(count), .keeps = [count](std::uint64_t i) { return i < count; }};
}
Literal literal_skip(std::uint64_t count) {
  return {.stage = skip(count), .keeps = [count](std::uint64_t i) { return i >= count; }};
}
Literal literal_shard(std::uint64_t count, std::uint64_t index) {
  return {.stage = shard(count, index), .keeps = [=](std::uint64_t i) { return i % count == index; }};
}
Literal literal_repeat(std::uint64_t times) {
  return {.stage = repeat(static_cast<std::int64_t>(times)), .passes = times};
}

// The stages done literally, on lists.
std::vector<Located> naive_epoch(std::uint64_t records, std::span<const Literal> stages, std::uint64_t pass) {
  std::vector<Located> list;
  if (stages.empty()) {
    for (std::uint64_t i = 0; i < records; ++i) list.push_back({.record = i, .pass = pass});
    return list;
  }
  const Literal& last = stages.back();
  for (std::uint64_t i = 0; i < last.passes; ++i) {
    const auto input = naive_epoch(records, stages.first(stages.size() - 1), pass * last.passes + i);
    for (std::uint64_t at = 0; at < input.size(); ++at) {
      if (last.keeps(at)) list.push_back(input[at]);
    }
  }
  return list;
}

std::vector<StagePtr> stages_of(std::span<const Literal> literals) {
  std::vector<StagePtr> stages;
  for (const Literal& one : literals) stages.push_back(one.stage);
  return stages;
}

TEST(IndexMap, EqualsTheStagesDoneOnLists) {
  const std::vector<Literal> choices{literal_take(7),       literal_take(100),   literal_skip(3),
                                     literal_skip(50),      literal_shard(3, 0), literal_shard(3, 2),
                                     literal_shard(20, 15), literal_repeat(2),   literal_repeat(3)};
  for (const Literal& a : choices) {
    for (const Literal& b : choices) {
      for (const Literal& c : choices) {
        const std::vector<Literal> stages{a, b, c};
        const IndexMap map(13, stages_of(stages), 1);
        for (std::uint64_t epoch : {0, 2}) {
          EXPECT_EQ(located_in(map, epoch), naive_epoch(13, stages, epoch))
              << a.stage->describe() << b.stage->describe() << c.stage->describe();
        }
      }
    }
  }
}

std::vector<Located> by_record(std::vector<Located> list) {
  std::sort(list.begin(), list.end(), [](const Located& a, const Located& b) {
    return std::pair(a.pass, a.record) < std::pair(b.pass, b.record);
  });
  return list;
}

TEST(IndexMap, ShufflesWhatStandsBeforeIt) {
  const std::vector<std::vector<Literal>> plain{{literal_skip(4)},
                                                {literal_take(20), literal_repeat(3)},
                                                {literal_shard(2, 1)},
                                                {literal_repeat(2), literal_skip(5)}};
  for (const std::vector<Literal>& literals : plain) {
    const auto expected = naive_epoch(29, literals, 1);
    std::vector<StagePtr> stages = stages_of(literals);
    stages.push_back(kShuffle);
    const auto shuffled = located_in(IndexMap(29, stages, 1), 1);
    EXPECT_NE(shuffled, expected);
    EXPECT_EQ(by_record(shuffled), by_record(expected));
  }
}

TEST(IndexMap, ShufflesEveryPassAnew) {
  const auto epoch = located_in(IndexMap(50, {kShuffle, repeat(2)}, 1), 0);
  ASSERT_EQ(epoch.size(), 100U);
  std::vector<std::uint64_t> first, second;
  for (std::size_t i = 0; i < 50; ++i) {
    first.push_back(epoch[i].record);
    second.push_back(epoch[50 + i].record);
    EXPECT_EQ(epoch[i].pass, 0U);
    EXPECT_EQ(epoch[50 + i].pass, 1U);
  }
  EXPECT_NE(first, second);
  // An epoch of two passes goes on where two epochs of one pass would be.
  const IndexMap single(50, {kShuffle}, 1);
  EXPECT_EQ(located_in(IndexMap(50, {kShuffle, repeat(2)}, 1), 1)[3], located_in(single, 2)[3]);
}

TEST(IndexMap, TakesOtherRecordsOfEachShuffledEpoch) {
  const IndexMap map(1000, {kShuffle, take(10)}, 1);
  std::set<std::uint64_t> seen;
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    std::set<std::uint64_t> within;
    for (const Located& located : located_in(map, epoch)) within.insert(located.record);
    EXPECT_EQ(within.size(), 10U);
    seen.insert(within.begin(), within.end());
  }
  EXPECT_GT(seen.size(), 40U);
}

TEST(IndexMap, DependsOnSeedEpochAndPlaceInTheChain) {
  const IndexMap map(100, {kShuffle}, 1);
  EXPECT_NE(located_in(map, 0), located_in(IndexMap(100, {kShuffle}, 2), 0));
  EXPECT_NE(located_in(map, 0), located_in(IndexMap(100, {shuffle({.seed = 4})}, 1), 0));
  EXPECT_NE(located_in(map, 0), located_in(map, 1));
  // Two shuffles with one seed do not undo each other.
  const auto twice = located_in(IndexMap(100, {kShuffle, kShuffle}, 1), 0);
  EXPECT_NE(twice, located_in(IndexMap(100, {}, 1), 0));
  EXPECT_NE(twice, located_in(map, 0));
}

TEST(IndexMap, CanKeepOneOrder) {
  const IndexMap map(100, {shuffle({.seed = 3, .reshuffle_each_epoch = false})}, 1);
  const auto records = [&](std::uint64_t epoch) {
    std::vector<std::uint64_t> list;
    for (const Located& located : located_in(map, epoch)) list.push_back(located.record);
    return list;
  };
  EXPECT_EQ(records(0), records(7));
  EXPECT_FALSE(std::is_sorted(records(0).begin(), records(0).end()));
}

TEST(IndexMap, MayBeEmpty) {
  EXPECT_EQ(IndexMap(0, {kShuffle, repeat(3)}, 1).size(), 0U);
  EXPECT_EQ(IndexMap(5, {skip(9)}, 1).size(), 0U);
  EXPECT_EQ(IndexMap(5, {shard(9, 7)}, 1).size(), 0U);
}

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

using Places = std::vector<std::pair<std::size_t, std::uint64_t>>;

// The turns taken literally.
Places naive_places(const std::vector<std::uint64_t>& sizes, std::uint64_t block) {
  Places places;
  std::vector<std::uint64_t> given(sizes.size());
  for (bool more = true; more;) {
    more = false;
    for (std::size_t part = 0; part < sizes.size(); ++part) {
      for (std::uint64_t i = 0; i < block && given[part] < sizes[part]; ++i)
        places.emplace_back(part, given[part]++);
      more = more || given[part] < sizes[part];
    }
  }
  return places;
}

TEST(Interleaving, EqualsTakingTurns) {
  const std::vector<std::vector<std::uint64_t>> cases{{},     {0},          {5},           {3, 3},
                                                      {7, 2}, {0, 4, 0, 9}, {10, 1, 5, 5}, {1, 2, 3, 4, 5, 6}};
  for (const auto& sizes : cases) {
    for (std::uint64_t block : {1, 2, 3, 5, 100}) {
      const Interleaving interleaving(sizes, block);
      const Places expected = naive_places(sizes, block);
      ASSERT_EQ(interleaving.size(), expected.size());
      for (std::uint64_t i = 0; i < expected.size(); ++i) {
        const Share share = interleaving.locate(i);
        ASSERT_EQ(std::pair(share.part, share.position), expected[i]) << "block " << block << ", position " << i;
      }
    }
  }
}

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

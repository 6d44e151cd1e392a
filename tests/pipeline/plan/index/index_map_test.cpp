#include "headrace/pipeline/plan/index/index_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace headrace {
namespace {

const ShuffleStage kShuffle{{.seed = 3}};

std::vector<Located> located_in(const IndexMap& map, std::uint64_t epoch) {
  IndexCursor cursor(map);
  std::vector<Located> all;
  for (std::uint64_t i = 0; i < map.size(); ++i) all.push_back(cursor.locate(epoch, i));
  return all;
}

// The stages done literally, on lists.
std::vector<Located> naive_epoch(std::uint64_t records, std::span<const Stage> stages, std::uint64_t pass) {
  std::vector<Located> list;
  if (stages.empty()) {
    for (std::uint64_t i = 0; i < records; ++i) list.push_back({.record = i, .pass = pass});
    return list;
  }
  const auto before = stages.first(stages.size() - 1);
  if (const auto* repeat = std::get_if<RepeatStage>(&stages.back())) {
    for (std::uint64_t i = 0; i < repeat->times; ++i) {
      const auto part = naive_epoch(records, before, pass * repeat->times + i);
      list.insert(list.end(), part.begin(), part.end());
    }
    return list;
  }
  const auto input = naive_epoch(records, before, pass);
  for (std::uint64_t i = 0; i < input.size(); ++i) {
    if (const auto* take = std::get_if<TakeStage>(&stages.back()); take != nullptr && i >= take->count) continue;
    if (const auto* skip = std::get_if<SkipStage>(&stages.back()); skip != nullptr && i < skip->count) continue;
    const auto* shard = std::get_if<ShardStage>(&stages.back());
    if (shard != nullptr && i % shard->count != shard->index) continue;
    list.push_back(input[i]);
  }
  return list;
}

TEST(IndexMap, EqualsTheStagesDoneOnLists) {
  const std::vector<Stage> choices{TakeStage{7},       TakeStage{100},   SkipStage{3},
                                   SkipStage{50},      ShardStage{3, 0}, ShardStage{3, 2},
                                   ShardStage{20, 15}, RepeatStage{2},   RepeatStage{3}};
  for (const Stage& a : choices) {
    for (const Stage& b : choices) {
      for (const Stage& c : choices) {
        const std::vector<Stage> stages{a, b, c};
        const IndexMap map(13, stages, 1);
        for (std::uint64_t epoch : {0, 2}) {
          EXPECT_EQ(located_in(map, epoch), naive_epoch(13, stages, epoch))
              << describe(a) << describe(b) << describe(c);
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
  const std::vector<std::vector<Stage>> plain{
      {SkipStage{4}}, {TakeStage{20}, RepeatStage{3}}, {ShardStage{2, 1}}, {RepeatStage{2}, SkipStage{5}}};
  for (std::vector<Stage> stages : plain) {
    const auto expected = naive_epoch(29, stages, 1);
    stages.emplace_back(kShuffle);
    const auto shuffled = located_in(IndexMap(29, stages, 1), 1);
    EXPECT_NE(shuffled, expected);
    EXPECT_EQ(by_record(shuffled), by_record(expected));
  }
}

TEST(IndexMap, ShufflesEveryPassAnew) {
  const auto epoch = located_in(IndexMap(50, {kShuffle, RepeatStage{2}}, 1), 0);
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
  EXPECT_EQ(located_in(IndexMap(50, {kShuffle, RepeatStage{2}}, 1), 1)[3], located_in(single, 2)[3]);
}

TEST(IndexMap, TakesOtherRecordsOfEachShuffledEpoch) {
  const IndexMap map(1000, {kShuffle, TakeStage{10}}, 1);
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
  EXPECT_NE(located_in(map, 0), located_in(IndexMap(100, {ShuffleStage{{.seed = 4}}}, 1), 0));
  EXPECT_NE(located_in(map, 0), located_in(map, 1));
  // Two shuffles with one seed do not undo each other.
  const auto twice = located_in(IndexMap(100, {kShuffle, kShuffle}, 1), 0);
  EXPECT_NE(twice, located_in(IndexMap(100, {}, 1), 0));
  EXPECT_NE(twice, located_in(map, 0));
}

TEST(IndexMap, CanKeepOneOrder) {
  const IndexMap map(100, {ShuffleStage{{.seed = 3, .reshuffle_each_epoch = false}}}, 1);
  const auto records = [&](std::uint64_t epoch) {
    std::vector<std::uint64_t> list;
    for (const Located& located : located_in(map, epoch)) list.push_back(located.record);
    return list;
  };
  EXPECT_EQ(records(0), records(7));
  EXPECT_FALSE(std::is_sorted(records(0).begin(), records(0).end()));
}

TEST(IndexMap, MayBeEmpty) {
  EXPECT_EQ(IndexMap(0, {kShuffle, RepeatStage{3}}, 1).size(), 0U);
  EXPECT_EQ(IndexMap(5, {SkipStage{9}}, 1).size(), 0U);
  EXPECT_EQ(IndexMap(5, {ShardStage{9, 7}}, 1).size(), 0U);
}

}  // namespace
}  // namespace headrace

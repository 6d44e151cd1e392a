#include "headrace/tools/runs/input_statistics.h"

#include <gtest/gtest.h>

namespace headrace::tools {
namespace {

LoaderStats stats_of_epoch(std::uint64_t examples, int threads) {
  return {.elapsed_ns = 1'000'000'000,
          .batches = 10,
          .examples = examples,
          .bytes = 100,
          .consumer_wait_ns = 250'000'000,
          .ready_batches = 2,
          .asked = 10,
          .ready_share = 0.5,
          .slots = 4,
          .cache = {.hits = 7, .misses = 3},
          .bad_records = 1,
          .stages = {{.name = "decode",
                      .kind = StageKind::kDecode,
                      .threads = threads,
                      .items = examples,
                      .busy_ns = 500'000'000},
                     {.name = "consumer", .kind = StageKind::kConsume, .items = examples, .busy_ns = 1'000'000}}};
}

TEST(InputStatistics, AddUpOverEpochs) {
  InputStatistics statistics;
  EXPECT_TRUE(statistics.to_json().is_null());
  statistics.end_epoch(stats_of_epoch(100, 2));
  statistics.end_epoch(stats_of_epoch(300, 2));
  const auto json = statistics.to_json();
  EXPECT_EQ(json["examples"], 400);
  EXPECT_EQ(json["batches"], 20);
  EXPECT_EQ(json["cache_hits"], 14);
  EXPECT_EQ(json["bad_records"], 2);
  EXPECT_DOUBLE_EQ(json["seconds"], 2);
  EXPECT_DOUBLE_EQ(json["consumer_wait_fraction"], 0.25);
  EXPECT_DOUBLE_EQ(json["ready_share"], 0.5);
  EXPECT_DOUBLE_EQ(json["examples_per_second"], 200);
  EXPECT_DOUBLE_EQ(json["stages"][0]["ns_per_item"], 2.5e6);
  EXPECT_DOUBLE_EQ(json["stages"][0]["occupancy"], 0.25);
  EXPECT_EQ(json["verdict"]["bottleneck"], "decode");
}

TEST(InputStatistics, HaveTheEpochUnderWay) {
  InputStatistics statistics;
  statistics.end_epoch(stats_of_epoch(100, 2));
  statistics.note(stats_of_epoch(50, 2));
  statistics.note(stats_of_epoch(60, 2));
  EXPECT_EQ(statistics.to_json()["examples"], 160) << "the later note replaces the earlier one";
  statistics.end_epoch(stats_of_epoch(70, 2));
  EXPECT_EQ(statistics.to_json()["examples"], 170);
}

TEST(InputStatistics, BeginAnewWithOtherThreads) {
  InputStatistics statistics;
  statistics.end_epoch(stats_of_epoch(100, 1));
  statistics.end_epoch(stats_of_epoch(300, 2));
  statistics.end_epoch({});  // an epoch of one step: nothing came after it
  const auto json = statistics.to_json();
  EXPECT_EQ(json["examples"], 300);
  EXPECT_EQ(json["stages"][0]["threads"], 2);
}

}  // namespace
}  // namespace headrace::tools

// A run's timeline, and the traces of its workers.
#include <nlohmann/json.hpp>

#include "headrace/tests/support/test.h"
#include "headrace/tools/runs/saturation_timeline.h"
#include "headrace/tools/runs/worker_run.h"

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

using test::TempFolder;

std::vector<nlohmann::json> lines_in(const std::filesystem::path& file) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(test::text_of(file));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

StepTimes times(std::int64_t elapsed_ns, std::int64_t stall_ns) {
  return {.elapsed_ns = elapsed_ns, .input_stall_ns = stall_ns};
}

TEST(SaturationTimeline, CoversASecondAtFirstAndMoreInLongRuns) {
  EXPECT_EQ(sample_seconds(0), 1);
  EXPECT_EQ(sample_seconds(400), 1);
  double elapsed = 0;
  int samples = 0;
  for (; elapsed < 365 * 86'400.0; ++samples) elapsed += sample_seconds(elapsed);
  EXPECT_GT(samples, 5'000);
  EXPECT_LT(samples, 7'000) << "a year";
}

// Epochs shorter than a sample share one: sums, not means of means.
TEST(SaturationTimeline, AddsUpShortEpochs) {
  const TempFolder folder;
  SaturationTimeline timeline(folder / "timeline.jsonl");
  timeline.begin_training(1);
  for (int epoch = 0; epoch < 3; ++epoch) {
    timeline.end_epoch({.epoch = epoch,
                        .global_step = 10U * static_cast<unsigned>(epoch + 1),
                        .seconds = 0.1,
                        .examples_per_second = 1000,
                        .local_replicas = {times(100'000'000, epoch * 10'000'000), times(100'000'000, 0)}});
  }
  timeline.finish();
  const auto lines = lines_in(folder / "timeline.jsonl");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["epoch"], 3);
  EXPECT_EQ(lines[0]["step"], 30);
  EXPECT_NEAR(lines[0]["examples_per_second"].get<double>(), 1000, 1e-6);
  EXPECT_NEAR(lines[0]["input_stall_fraction"].get<double>(), 0.05, 1e-9);
  EXPECT_EQ(lines[0]["begin_seconds"], 0);
}

// Reports count from the start of the epoch: a sample is of what came since the one before.
TEST(SaturationTimeline, TellsSamplesOfAnEpochApart) {
  const TempFolder folder;
  SaturationTimeline timeline(folder / "timeline.jsonl");
  timeline.begin_training(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(1010));
  timeline.step({.global_step = 1,
                 .seconds = 1,
                 .examples_per_second = 100,
                 .local_replicas = {times(1'000'000'000, 500'000'000)}});
  timeline.step({.global_step = 2,
                 .seconds = 2,
                 .examples_per_second = 150,
                 .local_replicas = {times(2'000'000'000, 600'000'000)}});
  timeline.finish();
  const auto lines = lines_in(folder / "timeline.jsonl");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_NEAR(lines[0]["input_stall_fraction"].get<double>(), 0.5, 1e-9);
  EXPECT_NEAR(lines[1]["input_stall_fraction"].get<double>(), 0.1, 1e-9);
  EXPECT_NEAR(lines[1]["examples_per_second"].get<double>(), 200, 1e-6);
  EXPECT_EQ(lines[1]["begin_seconds"], lines[0]["end_seconds"]);
}

TEST(SaturationTimeline, NumbersTrainings) {
  const TempFolder folder;
  SaturationTimeline timeline(folder / "timeline.jsonl");
  for (int training = 1; training <= 2; ++training) {
    timeline.begin_training(training);
    timeline.end_epoch({.seconds = 0.1, .examples_per_second = 10, .local_replicas = {times(1000, 0)}});
  }
  timeline.finish();
  const auto lines = lines_in(folder / "timeline.jsonl");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0]["training"], 1);
  EXPECT_EQ(lines[1]["training"], 2);
}

std::string trace_of(const char* name, std::uint64_t begin_ns) {
  Trace trace(4);
  trace.ring("loader").add({.name = name, .begin_ns = begin_ns, .end_ns = begin_ns + 500, .batch = 1, .items = 2});
  return trace.to_json();
}

// Worker 1's clock is 7 ms ahead: its span began 2 us after worker 0's.
TEST(WorkerTraces, AreOnTheChiefsClock) {
  const auto merged = nlohmann::json::parse(
      merge_traces({trace_of("read", 1'000'000), trace_of("decode", 8'002'000)}, {0, 7'000'000}, {"a", "b"}));
  std::map<std::string, nlohmann::json> events;
  for (const nlohmann::json& event : merged["traceEvents"]) {
    if (event["ph"] == "X") events[event["name"]] = event;
    if (event["name"] == "process_name" && event["pid"] == 2) {
      EXPECT_EQ(event["args"]["name"], "b");
    }
  }
  EXPECT_EQ(events["read"]["pid"], 1);
  EXPECT_DOUBLE_EQ(events["read"]["ts"], 0);
  EXPECT_EQ(events["decode"]["pid"], 2);
  EXPECT_DOUBLE_EQ(events["decode"]["ts"], 2);
  EXPECT_DOUBLE_EQ(events["decode"]["dur"], 0.5);
  EXPECT_EQ(merged["otherData"]["dropped"], 0);
}

}  // namespace
}  // namespace headrace::tools

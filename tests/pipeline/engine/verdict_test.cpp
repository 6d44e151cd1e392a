// What is concluded from counters made up by hand; real runs are judged in explain_test.cpp.
#include "headrace/pipeline/stats.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

constexpr std::uint64_t kExamples = 1000;

// A second in which 1000 examples were delivered; costs are nanoseconds of a stage's threads for each of them.
struct Costs {
  std::uint64_t read = 0, decode = 0, operate = 0, copy = 0, consumer = 0;
  int readers = 4, threads = 2, slots = 3;
};

LoaderStats stats_of(const Costs& costs) {
  LoaderStats stats{.elapsed_ns = 1'000'000'000, .examples = kExamples, .slots = costs.slots};
  const auto add = [&](const char* name, StageKind kind, int threads, std::uint64_t cost) {
    stats.stages.push_back(
        {.name = name, .kind = kind, .threads = threads, .items = kExamples, .busy_ns = cost * kExamples});
  };
  add("assemble", StageKind::kAssemble, 1, 10);
  add("read", StageKind::kRead, costs.readers, costs.read);
  add("decode", StageKind::kDecode, costs.threads, costs.decode);
  add("flip(0.5)", StageKind::kOperate, costs.threads, costs.operate);
  if (costs.copy > 0) add("copy", StageKind::kCopy, 1, costs.copy);
  add("consumer", StageKind::kConsume, 1, costs.consumer);
  return stats;
}

double rate_with(const Verdict& verdict, const std::string& what) {
  for (const WhatIf& what_if : verdict.what_ifs) {
    if (what_if.what.find(what) != std::string::npos) return what_if.images_per_second;
  }
  ADD_FAILURE() << "nothing is said about " << what;
  return -1;
}

TEST(Verdict, NamesASlowDisk) {
  const Verdict verdict =
      judge(stats_of({.read = 4'000'000, .decode = 300'000, .operate = 100'000, .consumer = 50'000}));
  EXPECT_EQ(verdict.bottleneck, "read");
  EXPECT_EQ(verdict.kind, "disk");
  EXPECT_NEAR(verdict.ceiling_images_per_second, 1000, 1e-6);
  EXPECT_NEAR(verdict.measured_images_per_second, 1000, 1e-6);
  EXPECT_NEAR(rate_with(verdict, "one more core"), 1000, 1e-6);
  EXPECT_NEAR(rate_with(verdict, "twice the readers"), 2000, 1e-6);
  EXPECT_NEAR(rate_with(verdict, "cache"), 20'000, 1e-6);  // then the consumer: both operate 20,000 a second
}

TEST(Verdict, NamesTheDearestStepOfTheComputeThreads) {
  const Costs costs{.read = 100'000, .decode = 1'500'000, .operate = 500'000, .consumer = 50'000};
  const Verdict verdict = judge(stats_of(costs));
  EXPECT_EQ(verdict.bottleneck, "decode");
  EXPECT_EQ(verdict.kind, "CPU");
  EXPECT_NEAR(verdict.ceiling_images_per_second, 1000, 1e-6);  // 2 threads, 2 ms an example
  EXPECT_NEAR(rate_with(verdict, "one more core"), 1500, 1e-6);
  EXPECT_NEAR(rate_with(verdict, "twice the cores"), 2000, 1e-6);
  EXPECT_NEAR(rate_with(verdict, "cache"), 4000, 1e-6);
  EXPECT_EQ(verdict.what_ifs.at(3).bottleneck, "flip(0.5)");  // nothing is decoded any more
  EXPECT_NEAR(rate_with(verdict, "consumer"), 1000, 1e-6);

  LoaderStats photographs = stats_of(costs);  // 2 MB of pixels each take .5 ms to read, as long as operating does
  photographs.stages.at(2).decoded_bytes = 2'000'000 * kExamples;
  EXPECT_NEAR(rate_with(judge(photographs), "cache"), 2000, 1e-6);

  Costs operating = costs;
  std::swap(operating.decode, operating.operate);
  EXPECT_EQ(judge(stats_of(operating)).bottleneck, "flip(0.5)");
}

TEST(Verdict, NamesTheConsumerWhereTheInputKeepsUp) {
  const Verdict verdict =
      judge(stats_of({.read = 100'000, .decode = 100'000, .operate = 100'000, .consumer = 1'000'000}));
  EXPECT_EQ(verdict.bottleneck, "consumer");
  EXPECT_EQ(verdict.kind, "consumer");
  EXPECT_NEAR(verdict.ceiling_images_per_second, 1000, 1e-6);
  EXPECT_NEAR(rate_with(verdict, "one more core"), 1000, 1e-6);
  EXPECT_NEAR(rate_with(verdict, "a consumer that takes no time"), 10'000, 1e-6);
}

// It waits for its copies, which look as if it was busy.
TEST(Verdict, BlamesTheCopyAndNotTheConsumerThatWaitsForIt) {
  const Verdict verdict = judge(stats_of({.read = 100'000, .copy = 1'000'000, .consumer = 1'020'000}));
  EXPECT_EQ(verdict.bottleneck, "copy");
  EXPECT_EQ(verdict.kind, "copy");
}

TEST(Verdict, ASingleSlotMakesEngineAndConsumerTakeTurns) {
  const Costs costs{.decode = 2'000'000, .consumer = 1'000'000, .slots = 1};
  LoaderStats stats = stats_of(costs);
  stats.elapsed_ns = 4'000'000'000;
  EXPECT_NEAR(judge(stats).ceiling_images_per_second, 500, 1e-6);
  stats.elapsed_ns = 1'000'000'000;
  EXPECT_NEAR(judge(stats).ceiling_images_per_second, 1000, 1e-6) << "as was measured";
}

TEST(Verdict, SaysHowMuchFasterInWordsThatMeanSomething) {
  const Verdict verdict{.ceiling_images_per_second = 100};
  const auto of = [&](double rate) {
    return verdict.sentence({.what = "x", .images_per_second = rate, .bottleneck = "flip"});
  };
  EXPECT_EQ(of(100), "with x: 100 images/s (no faster), bound by flip");
  EXPECT_EQ(of(150), "with x: 150 images/s (+50 %), bound by flip");
  EXPECT_EQ(of(560), "with x: 560 images/s (x 5.6), bound by flip");
  EXPECT_EQ(of(22'300), "with x: 22300 images/s (more than x 100: it is no longer the limit), bound by flip");
}

TEST(Verdict, CountsWhatACacheHitDoesNotCost) {
  LoaderStats stats = stats_of({.read = 400'000, .decode = 1'500'000, .operate = 100'000});
  for (StageStats& stage : stats.stages) {
    if (stage.kind != StageKind::kRead && stage.kind != StageKind::kDecode) continue;
    stage.items /= 10;  // nine in ten were hits
    stage.busy_ns /= 10;
  }
  EXPECT_NEAR(judge(stats).ceiling_images_per_second, 2e9 / 250'000, 1e-6);
}

TEST(Verdict, SpeaksInSentencesWithNumbers) {
  const Verdict verdict = judge(stats_of({.read = 4'000'000, .decode = 1'000'000, .consumer = 50'000}));
  EXPECT_EQ(verdict.sentence(), "input-bound at read: disk; ceiling 1000 images/s, measured 1000");
  ASSERT_FALSE(verdict.what_ifs.empty());
  for (const WhatIf& what_if : verdict.what_ifs) {
    EXPECT_THAT(verdict.sentence(what_if), HasSubstr(" images/s (")) << what_if.what;
  }
  EXPECT_EQ(verdict.sentence(verdict.what_ifs[2]),
            "with twice the readers: 2000 images/s (+100 %), bound by read");
}

TEST(Verdict, ComparesWhatWasTriedWithWhatItWasTriedBeside) {
  const Verdict verdict = judge(stats_of({.read = 4'000'000, .decode = 1'000'000, .consumer = 50'000}));
  EXPECT_EQ(
      verdict.sentence({.what = "a cache", .images_per_second = 4500, .bottleneck = "flip", .instead_of = 900}),
      "with a cache: 4500 images/s (5.0 times the 900 without it, in turn), bound by flip");
}

TEST(Verdict, SaysWhereNoStageIsTheCulprit) {
  const Verdict verdict = judge(stats_of({.read = 100'000, .decode = 500'000, .consumer = 100'000}));
  EXPECT_NEAR(verdict.ceiling_images_per_second, 4000, 1e-6);
  EXPECT_THAT(verdict.sentence(), HasSubstr("measured 1000: no stage is at work for more than 25 % of the time"));
}

TEST(Verdict, SaysNothingWhereNothingWasDelivered) {
  const Verdict verdict = judge(LoaderStats{});
  EXPECT_EQ(verdict.bottleneck, "");
  EXPECT_TRUE(verdict.what_ifs.empty());
  EXPECT_THAT(verdict.sentence(), HasSubstr("nothing was delivered"));
}

}  // namespace
}  // namespace headrace::test

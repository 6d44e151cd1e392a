// What the command takes of the memory, and that it asks before it takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "headrace/tests/pipeline/sources/image_fixture.h"
#include "headrace/tests/support/blank_png.h"
#include "headrace/tests/support/temp_folder.h"
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = 1 << 20;

TEST(Memory, ARingIsNoLargerThanItsStream) {
  const TempFolder folder;
  for (const auto& [name, bytes] : make_image_files()) folder.write("set/" + name, bytes);
  const std::vector<std::string> options = {"--pipeline", "jpeg-train-float", "--data", (folder / "set").string()};
  std::vector<std::string> digest = options;
  digest.insert(digest.begin(), "digest");
  const CommandResult few = headrace(digest), many = headrace(digest, {"--prefetch", "1000"});
  EXPECT_EQ(many.status, 0) << many.errors;
  EXPECT_EQ(many.output, few.output) << "no change of bits";
  EXPECT_LT(many.peak_memory_bytes, few.peak_memory_bytes + 64 * kMiB);
  std::vector<std::string> explain = options;
  explain.insert(explain.begin(), "explain");
  const CommandResult plan = headrace(explain, {"--prefetch", "1000"});
  EXPECT_THAT(plan.output, HasSubstr("prefetch: 0, 0 instead of 1000: the run has 1 batch\n"));
  const CommandResult run = headrace(explain, {"--prefetch", "1000", "--epochs", "3", "--seconds", "0.1"});
  EXPECT_THAT(run.output, HasSubstr("prefetch: 2, 2 instead of 1000: the run has 3 batches\n"));
}

TEST(Memory, ExplainSaysWhatABudgetLeavesOfTheRing) {
  const CommandResult plan = headrace({"explain", "--pipeline", "trivial", "--prefetch", "50", "--global-batch",
                                       "1000", "--memory-budget", "100K"});
  EXPECT_EQ(plan.status, 0) << plan.errors;
  EXPECT_THAT(plan.output, HasSubstr(" instead of 50: each batch takes "));
  EXPECT_THAT(plan.output, HasSubstr(" of --memory-budget"));
}

class BudgetTest : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(BudgetTest, IsAskedBeforeAnImageIsDecoded) {
  constexpr int kSide = 9000;  // 243 MB of pixels in a quarter of a megabyte
  const TempFolder folder;
  const auto [pipeline, kind] = std::pair(GetParam()[0], GetParam()[1]);
  const Bytes image = encode_blank_png(kSide, kSide, {.interlaced = kind == "interlaced"});
  for (const std::string name : {"train/cat/0.png", "train/dog/1.png", "test/cat/0.png", "test/dog/1.png"})
    folder.write("set/" + name, image);
  std::vector<std::string> digest = {
      "digest",          "--pipeline", pipeline,    "--data", (folder / "set").string(),
      "--memory-budget", "32M",        "--threads", "1"};
  if (kind == "cached") digest.insert(digest.end(), {"--cache", "memory"});
  const CommandResult result = headrace(digest);
  EXPECT_EQ(result.status, 1) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("bytes of --memory-budget are taken"));
  EXPECT_THAT(result.errors, HasSubstr("hint: raise --memory-budget to "));
  EXPECT_LT(result.peak_memory_bytes, 150 * kMiB) << "an image takes 232 MiB";
}

INSTANTIATE_TEST_SUITE_P(Of, BudgetTest,
                         ::testing::Values(std::vector<std::string>{"jpeg-train", "plain"},
                                           std::vector<std::string>{"jpeg-eval", "plain"},
                                           std::vector<std::string>{"jpeg-eval", "interlaced"},
                                           std::vector<std::string>{"jpeg-eval", "cached"}),
                         [](const auto& info) {
                           std::string name = info.param[0] + "_" + info.param[1];
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(Memory, WhereThereIsNoneTheMessageSaysForWhat) {
  const CommandResult result = run_command({"sh", "-c",
                                            "ulimit -v 1500000; exec " HEADRACE_BINARY
                                            " digest --pipeline trivial --global-batch 400000000"});
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.errors, ::testing::Not(HasSubstr("bad_alloc")));
  EXPECT_THAT(result.errors, HasSubstr("batch"));
  EXPECT_THAT(result.errors, HasSubstr("hint: "));
}

}  // namespace
}  // namespace headrace::test

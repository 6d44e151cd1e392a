// What the command takes of the memory, and that it asks before it takes.
#include <unistd.h>

#include "headrace/tests/pipeline/sources/images/image_fixture.h"
#include "headrace/tests/support/plain_images.h"
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

struct Measured {
  CommandResult result;
  std::uint64_t peak_bytes = 0;  // resident
};

// The command, started by a small process: what the system counts of a child begins with the memory of its parent.
Measured measured(std::vector<std::string> arguments) {
  const TempFolder folder;
  const std::string peak = (folder / "peak").string();
  arguments.insert(arguments.begin(),
                   {"python3", "-c",
                    "import resource, subprocess, sys\n"
                    "status = subprocess.run(sys.argv[2:]).returncode\n"
                    "open(sys.argv[1], 'w').write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))\n"
                    "sys.exit(status)",
                    peak, HEADRACE_BINARY});
  Measured run{.result = run_command(arguments)};
  std::uint64_t kib = 0;
  std::ifstream(peak) >> kib;
  EXPECT_GT(kib, 0U) << run.result.errors;
  run.peak_bytes = kib * 1024;
  return run;
}

TEST(Memory, ARingIsNoLargerThanItsStream) {
  const TempFolder folder;
  for (const auto& [name, bytes] : make_image_files()) folder.write("set/" + name, bytes);
  const std::vector<std::string> options = {"--pipeline", "jpeg-train-float", "--data", (folder / "set").string()};
  std::vector<std::string> digest = options;
  digest.insert(digest.begin(), "digest");
  const Measured few = measured(digest);
  digest.insert(digest.end(), {"--prefetch", "1000"});
  const Measured many = measured(digest);
  EXPECT_EQ(many.result.status, 0) << many.result.errors;
  EXPECT_EQ(many.result.output, few.result.output) << "no change of bits";
  EXPECT_LT(many.peak_bytes, few.peak_bytes + 64 * kMiB);
  std::vector<std::string> explain = options;
  explain.insert(explain.begin(), "explain");
  const CommandResult plan = headrace(explain, {"--prefetch", "1000"});
  EXPECT_THAT(plan.output, HasSubstr("prefetch: 0, 0 instead of 1000: the run has 1 batch\n"));
  const CommandResult run = headrace(explain, {"--prefetch", "1000", "--epochs", "3"});
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
  const auto [result, peak_bytes] = measured(digest);
  EXPECT_EQ(result.status, 1) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("bytes of --memory-budget are taken"));
  EXPECT_THAT(result.errors, HasSubstr("hint: raise --memory-budget to "));
  EXPECT_LT(peak_bytes, 150 * kMiB) << "an image takes 232 MiB";
}

INSTANTIATE_TEST_SUITE_P(Of, BudgetTest,
                         ::testing::Values(std::vector<std::string>{"jpeg-train", "plain"},
                                           std::vector<std::string>{"jpeg-eval", "plain"},
                                           std::vector<std::string>{"jpeg-eval", "interlaced"},
                                           std::vector<std::string>{"jpeg-eval", "cached"}),
                         [](const auto& chosen) {
                           std::string name = chosen.param[0] + "_" + chosen.param[1];
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(Memory, WhereThereIsNoneTheMessageSaysForWhat) {
  int failed = 0;
  for (const char* kib : {"60000", "80000", "100000", "120000", "140000"}) {
    const CommandResult result = run_command({"sh", "-c",
                                              "ulimit -v " + std::string(kib) + "; exec " HEADRACE_BINARY +
                                                  " digest --pipeline trivial --global-batch 1048576"});
    if (result.status == 0 || result.status == 127) continue;  // 127: not even its libraries could be loaded
    ++failed;
    EXPECT_EQ(result.status, 1) << result.errors;
    EXPECT_THAT(result.errors, Not(HasSubstr("bad_alloc")));
    EXPECT_THAT(result.errors, AnyOf(HasSubstr("no memory left for "), HasSubstr("cannot allocate "),
                                     HasSubstr("cannot start a thread for ")));
    EXPECT_THAT(result.errors, HasSubstr("hint: "));
  }
  EXPECT_GT(failed, 0) << "none of the limits was too low";
}

// The command with so many threads, as another user where this is root: nothing limits root's threads. It runs in
// a folder that all may read.
class Threads : public ::testing::Test {
 protected:
  Threads() {
    std::filesystem::copy_file(HEADRACE_BINARY, program_);
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  }

  CommandResult limited(const std::string& limit, const std::string& arguments) const {
    const std::string user = is_root_ ? "setpriv --reuid=65531 --clear-groups " : "";
    return run_command({"bash", "-c",
                        "cd /tmp; timeout 20 " + user + "bash -c 'ulimit -u " + limit + " && exec " +
                            program_.string() + " " + arguments + "'"});
  }

  TempFolder folder_;
  std::filesystem::path program_ = folder_ / "headrace";
  bool is_root_ = ::geteuid() == 0;
};

TEST_F(Threads, WhereThereAreNoneTheMessageSaysForWhat) {
  int failed = 0;
  for (const char* limit : {"1", "2"}) {
    const CommandResult result = limited(limit, "digest --pipeline trivial");
    if (result.status != 1) continue;  // so many threads of the user's are there that nothing could be run
    ++failed;
    EXPECT_THAT(result.errors, HasSubstr("cannot start a thread for "));
    EXPECT_THAT(result.errors, HasSubstr("hint: raise the limit on threads"));
  }
  if (is_root_) {
    EXPECT_GT(failed, 0);
  }
}

// Where oneTBB is refused a thread, calls of it wait for ever: about every sixth run of this kind did.
TEST_F(Threads, ARefusalBesideOneTbbEndsTheCommand) {
  for (int i = 0; i < 12; ++i) {
    const CommandResult result = limited("3", "bench input --pipeline trivial --seconds 0.1");
    EXPECT_NE(result.status, 124) << "it waits for ever";
  }
}

}  // namespace
}  // namespace headrace::test

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "headrace/devices/base/file_lock.h"
#include "headrace/devices/cuda/math/plan_store.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::cuda {
namespace {

using Candidates = std::vector<PlanCandidate>;

PlanCandidate timed(std::vector<float> milliseconds) {
  return {.workspace_bytes = 1 << 20, .milliseconds = std::move(milliseconds)};
}

TEST(PlanChoice, WithoutTimesThePreferredOneIsTaken) {
  EXPECT_EQ(choose_plan(Candidates(1)), 0U);
  EXPECT_EQ(choose_plan(Candidates(5)), 0U);
}

TEST(PlanChoice, TheFastestByMedianIsTaken) {
  EXPECT_EQ(choose_plan(Candidates{timed({3}), timed({1}), timed({2})}), 1U);
  EXPECT_EQ(choose_plan(Candidates{timed({2, 2, 2}), timed({0.1F, 9, 9}), timed({1, 1, 50})}), 2U);
}

TEST(PlanChoice, WhatIsNotClearlyFasterDoesNotDisplaceThePreferredOne) {
  EXPECT_EQ(choose_plan(Candidates{timed({1.01F}), timed({1})}), 0U);
  EXPECT_EQ(choose_plan(Candidates{timed({1.1F}), timed({1.01F}), timed({1})}), 1U);
  EXPECT_EQ(choose_plan(Candidates{timed({1.03F}), timed({1})}), 1U);
}

TEST(PlanChoice, OneThatDidNotRunIsNotTaken) {
  EXPECT_EQ(choose_plan(Candidates{timed({}), timed({5}), timed({})}), 1U);
}

TEST(PlanChoice, TheMedianIsTheMiddleOfTheTimes) {
  EXPECT_EQ(median_time(timed({})), std::nullopt);
  EXPECT_EQ(median_time(timed({5, 1, 2})), 2.0F);
  EXPECT_EQ(median_time(timed({4})), 4.0F);
}

TEST(PlanChoice, IsDescribedInWords) {
  EXPECT_EQ(describe_choice(Candidates{timed({})}, 0), "proposal 1 of 1, not timed, workspace 1.0 MiB");
  EXPECT_EQ(describe_choice(Candidates{timed({0.48F}), timed({0.4124F})}, 1),
            "proposal 2 of 2, 0.412 ms, the first takes 0.480 ms, workspace 1.0 MiB");
  EXPECT_EQ(describe_choice(Candidates{timed({0.48F}), timed({0.5F})}, 0),
            "proposal 1 of 2, 0.480 ms, workspace 1.0 MiB");
  EXPECT_EQ(describe_choice(Candidates{timed({}), timed({1})}, 1),
            "proposal 2 of 2, 1.000 ms, the first did not run, workspace 1.0 MiB");
}

const PlanTarget kTarget{.gpu = "NVIDIA H100 80GB HBM3",
                         .compute_capability = "9.0",
                         .multiprocessors = 132,
                         .library = "cuDNN 9.19.0"};
const ChosenPlans kPlans{{{.determinism = Determinism::kTuned, .text = "forward (2, 3)"}, "eng38_k2=3"},
                         {{.determinism = Determinism::kFastest, .text = "forward (2, 3)"}, "eng1"}};

TEST(PlanFile, ComesBackAsItWas) {
  const PlanFile file = parse_plan_file(plan_file_text(kTarget, kPlans));
  EXPECT_EQ(file.trouble, "");
  EXPECT_EQ(file.target, kTarget);
  EXPECT_EQ(file.plans, kPlans);
}

TEST(PlanFile, HasTheBytesOfItsFormat) {
  const std::string text = plan_file_text(kTarget, kPlans);
  const std::string body =
      "headrace-plans\t1\ngpu\tNVIDIA H100 80GB HBM3\ncompute_capability\t9.0\nmultiprocessors\t132\n"
      "library\tcuDNN 9.19.0\ntuned\teng38_k2=3\tforward (2, 3)\nfastest\teng1\tforward (2, 3)\nchecksum\t";
  ASSERT_EQ(text.substr(0, body.size()), body);
  EXPECT_EQ(text.size(), body.size() + 17);
}

TEST(PlanFile, AnyByteThatIsChangedOrMissingIsFound) {
  const std::string text = plan_file_text(kTarget, kPlans);
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_NE(parse_plan_file(damaged).trouble, "") << at;
    EXPECT_TRUE(parse_plan_file(damaged).plans.empty()) << at;
    EXPECT_NE(parse_plan_file(text.substr(0, at)).trouble, "") << at;
  }
  EXPECT_NE(parse_plan_file(text + "\n").trouble, "");
}

TEST(PlanFile, OtherFilesAreTold) {
  EXPECT_EQ(parse_plan_file("").trouble, "it is no file of plans, or of another version");
  EXPECT_EQ(parse_plan_file("headrace-plans\t2\n").trouble, "it is no file of plans, or of another version");
}

TEST(PlanFile, GpusAndVersionsHaveFilesOfTheirOwn) {
  EXPECT_EQ(plan_file_path("f", kTarget), "f/NVIDIA_H100_80GB_HBM3_sm_9.0_132_cuDNN_9.19.0.plans");
  PlanTarget other = kTarget;
  other.multiprocessors = 114;
  EXPECT_NE(plan_file_path("f", other), plan_file_path("f", kTarget));
  other = kTarget;
  other.library = "cuDNN 9.20.0";
  EXPECT_NE(plan_file_path("f", other), plan_file_path("f", kTarget));
  other = kTarget;
  other.gpu = "../../up";
  EXPECT_EQ(plan_file_path("f", other).parent_path(), "f");
}

TEST(PlanFile, NoFileIsNoTroubleAndAFolderIs) {
  const test::TempFolder folder;
  EXPECT_EQ(read_plan_file(folder / "none").trouble, "");
  EXPECT_NE(read_plan_file(folder.path()).trouble, "");
}

}  // namespace

// The rules of the choice, with plans and a timer that are made up.

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const PlanTarget kGpu{
    .gpu = "Some GPU", .compute_capability = "9.0", .multiprocessors = 132, .library = "cuDNN 9.19.0"};
const PlanTarget kOtherGpu{
    .gpu = "Some GPU", .compute_capability = "8.0", .multiprocessors = 108, .library = "cuDNN 9.19.0"};
const PlanProblem kProblem{.determinism = Determinism::kTuned, .text = "forward"};
const PlanProblem kFastestProblem{.determinism = Determinism::kFastest, .text = "forward"};

// Plans with the times that a measurement would find.
class MadeUpOffer final : public PlanOffer {
 public:
  explicit MadeUpOffer(std::vector<PlanCandidate> plans) : plans_(std::move(plans)) {}

  bool has(const std::string& plan) override {
    return std::ranges::find(plans_, plan, &PlanCandidate::name) != plans_.end();
  }
  std::string first() override { return plans_.empty() ? "" : plans_.front().name; }
  std::vector<PlanCandidate> measure() override {
    ++measurements;
    return plans_;
  }

  int measurements = 0;

 private:
  std::vector<PlanCandidate> plans_;
};

PlanCandidate plan(std::string name, std::vector<float> milliseconds) {
  return {.name = std::move(name), .milliseconds = std::move(milliseconds)};
}
MadeUpOffer b_is_fastest() { return MadeUpOffer({plan("a", {3, 3, 9}), plan("b", {1, 1, 8}), plan("c", {2})}); }
MadeUpOffer c_is_fastest() { return MadeUpOffer({plan("a", {3}), plan("b", {2}), plan("c", {1})}); }

class PlanStores : public ::testing::Test {
 protected:
  // As a process has it.
  PlanStore store() { return store_in(folder_.path()); }
  PlanStore store_in(const std::filesystem::path& folder) {
    return {folder, [this](const std::string& remark) { remarks_.push_back(remark); },
            std::chrono::milliseconds(20)};
  }
  std::string settle(PlanOffer&& offer, const PlanTarget& target = kGpu, const PlanProblem& problem = kProblem) {
    return store().settle(target, problem, offer).plan;
  }
  std::string text() const {
    std::ifstream file(plan_file_path(folder_.path(), kGpu));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  test::TempFolder folder_;
  std::vector<std::string> remarks_;
};

TEST_F(PlanStores, TheFastestByMedianIsKeptForLaterProcesses) {
  EXPECT_EQ(settle(b_is_fastest()), "b");
  MadeUpOffer later = c_is_fastest();
  EXPECT_EQ(settle(std::move(later)), "b") << "though another one would be faster now";
  EXPECT_EQ(later.measurements, 0);
  EXPECT_THAT(remarks_, IsEmpty());
}

TEST_F(PlanStores, ReplicasOfAProcessChooseAlike) {
  PlanStore one = store();
  MadeUpOffer first = b_is_fastest(), second = c_is_fastest();
  EXPECT_EQ(one.settle(kGpu, kProblem, first).plan, "b");
  std::filesystem::remove_all(folder_.path());
  EXPECT_EQ(one.settle(kGpu, kProblem, second).plan, "b") << "whatever became of the file";
  EXPECT_EQ(second.measurements, 0);
}

TEST_F(PlanStores, TheKeyIsGpuVersionWayAndProblem) {
  EXPECT_EQ(settle(b_is_fastest()), "b");
  EXPECT_EQ(settle(c_is_fastest(), kOtherGpu), "c");
  PlanTarget newer = kGpu;
  newer.library = "cuDNN 9.20.0";
  EXPECT_EQ(settle(c_is_fastest(), newer), "c");
  EXPECT_EQ(settle(c_is_fastest(), kGpu, kFastestProblem), "c");
  EXPECT_EQ(settle(c_is_fastest(), kGpu, {.determinism = Determinism::kTuned, .text = "backward"}), "c");
  EXPECT_EQ(settle(c_is_fastest()), "b") << "what was kept first is still there";
}

TEST_F(PlanStores, WhatWasRemovedIsMeasuredAnew) {
  EXPECT_EQ(settle(b_is_fastest()), "b");
  std::filesystem::remove(plan_file_path(folder_.path(), kGpu));
  EXPECT_EQ(settle(c_is_fastest()), "c");
}

TEST_F(PlanStores, APlanThatIsNoLongerOfferedIsChosenAnew) {
  EXPECT_EQ(settle(b_is_fastest()), "b");
  EXPECT_EQ(settle(MadeUpOffer({plan("a", {2}), plan("c", {1})})), "c");
  EXPECT_THAT(remarks_, ElementsAre(HasSubstr("does not offer the plan b")));
  EXPECT_EQ(settle(b_is_fastest()), "c");
}

TEST_F(PlanStores, ADamagedFileIsSaidAndReplaced) {
  EXPECT_EQ(settle(b_is_fastest()), "b");
  const std::string whole = text();
  test::TempFolder::patch(plan_file_path(folder_.path(), kGpu), whole.find("\tb\t") + 1, std::byte{'a'});
  EXPECT_EQ(settle(c_is_fastest()), "c");
  EXPECT_THAT(remarks_, ElementsAre(HasSubstr("its checksum is wrong; plans are measured anew")));
  EXPECT_EQ(settle(b_is_fastest()), "c");
}

TEST_F(PlanStores, AnotherGpusFileIsSaidAndReplaced) {
  settle(b_is_fastest(), kOtherGpu);
  std::filesystem::rename(plan_file_path(folder_.path(), kOtherGpu), plan_file_path(folder_.path(), kGpu));
  EXPECT_EQ(settle(c_is_fastest()), "c");
  EXPECT_THAT(remarks_, ElementsAre(HasSubstr("its plans are those of Some GPU, sm_80, 108 multiprocessors")));
  EXPECT_EQ(parse_plan_file(text()).target, kGpu);
  EXPECT_EQ(parse_plan_file(text()).plans.size(), 1U);
}

TEST_F(PlanStores, WhatCannotBeKeptIsTheFirstSoThatBitsRepeat) {
  const auto folder = folder_.write("a file", std::string_view("not a folder"));
  PlanStore store = store_in(folder);
  MadeUpOffer offer = b_is_fastest();
  EXPECT_EQ(store.settle(kGpu, kProblem, offer).plan, "a");
  EXPECT_EQ(offer.measurements, 0);
  EXPECT_EQ(store.settle(kGpu, {.determinism = Determinism::kTuned, .text = "backward"}, offer).plan, "a");
  EXPECT_THAT(remarks_, ElementsAre(HasSubstr("HEADRACE_CUDA_PLAN_FOLDER"))) << "said once";
  EXPECT_EQ(store.settle(kGpu, kFastestProblem, offer).plan, "b") << "which promises no bits";
  EXPECT_EQ(store_in("").settle(kGpu, kProblem, offer).plan, "a");
  EXPECT_THAT(remarks_.back(), HasSubstr("neither HOME nor XDG_CACHE_HOME is set"));
}

TEST_F(PlanStores, AFileThatCannotBeReplacedKeepsNothing) {
  std::filesystem::create_directories(plan_file_path(folder_.path(), kGpu));
  PlanStore one = store();
  MadeUpOffer offer = b_is_fastest();
  EXPECT_EQ(one.settle(kGpu, kProblem, offer).plan, "a");
  EXPECT_EQ(one.settle(kGpu, {.determinism = Determinism::kTuned, .text = "backward"}, offer).plan, "a");
  EXPECT_EQ(offer.measurements, 1) << "nothing is timed in vain again";
}

TEST_F(PlanStores, ALockThatAnotherHoldsIsWaitedForButNotForever) {
  const FolderLock other(folder_.path(), std::chrono::milliseconds(0));
  ASSERT_TRUE(other.held());
  EXPECT_EQ(settle(b_is_fastest()), "a");
  EXPECT_THAT(remarks_, ElementsAre(HasSubstr("another process holds the lock")));
}

TEST_F(PlanStores, WithoutTimesThereIsNoChoiceToKeep) {
  EXPECT_EQ(settle(MadeUpOffer({plan("a", {}), plan("b", {})})), "a");
  EXPECT_THAT(remarks_, ElementsAre(HasSubstr("no convolution plan could be timed")));
  EXPECT_EQ(text(), "");
  EXPECT_EQ(settle(b_is_fastest()), "b");
}

TEST_F(PlanStores, NoPlanIsNoChoice) {
  EXPECT_EQ(settle(MadeUpOffer({})), "");
  EXPECT_EQ(text(), "");
}

// Each would choose another plan: all must take that of the first.
TEST_F(PlanStores, ProcessesThatStartTogetherChooseAlike) {
  constexpr int kProcesses = 8;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::vector<PlanCandidate> plans;
      for (int p = 0; p < kProcesses; ++p) plans.push_back(plan("p" + std::to_string(p), {p == i ? 1.0F : 2.0F}));
      MadeUpOffer offer(plans);
      PlanStore own(folder_.path(), [](const std::string&) {});
      const std::string chosen = own.settle(kGpu, kProblem, offer).plan;
      _exit(std::stoi(chosen.substr(1)));
    }
    children.push_back(child);
  }
  std::vector<int> chosen;
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    chosen.push_back(WEXITSTATUS(status));
  }
  EXPECT_THAT(chosen, ::testing::Each(chosen.front()));
  EXPECT_EQ(parse_plan_file(text()).plans.at(kProblem), "p" + std::to_string(chosen.front()));
}

TEST_F(PlanStores, ThreadsWithOneStoreChooseAlike) {
  PlanStore one = store();
  std::vector<std::string> chosen(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    threads.emplace_back([&, i] {
      MadeUpOffer offer = i % 2 == 0 ? b_is_fastest() : c_is_fastest();
      chosen[i] = one.settle(kGpu, kProblem, offer).plan;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(chosen, ::testing::Each(chosen.front()));
}

TEST_F(PlanStores, SayWhatIsKeptAndHowToForgetIt) {
  EXPECT_EQ(store().describe().version, "none kept yet");
  settle(b_is_fastest());
  const Finding finding = store().describe();
  EXPECT_TRUE(finding.found);
  EXPECT_EQ(finding.version, "1 for Some GPU, sm_90, 132 multiprocessors, cuDNN 9.19.0");
  EXPECT_EQ(finding.hint, "remove " + folder_.path().string() + " to have them measured anew");
  EXPECT_FALSE(store_in("").describe().found);
  EXPECT_EQ(store_in(folder_ / "none").describe().version, "none kept yet");
}

TEST(PlanFolder, IsTheUsersCacheUnlessOneIsNamed) {
  setenv("HEADRACE_CUDA_PLAN_FOLDER", "/named", 1);
  setenv("XDG_CACHE_HOME", "/cache", 1);
  setenv("HOME", "/home/user", 1);
  EXPECT_EQ(plan_folder(), "/named");
  unsetenv("HEADRACE_CUDA_PLAN_FOLDER");
  EXPECT_EQ(plan_folder(), "/cache/headrace/cuda_plans");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(plan_folder(), "/home/user/.cache/headrace/cuda_plans");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(plan_folder(), "");
}

}  // namespace
}  // namespace headrace::cuda

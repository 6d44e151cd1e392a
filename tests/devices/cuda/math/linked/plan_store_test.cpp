// The rules of the choice, with plans and a timer that are made up.
#include "headrace/devices/cuda/math/plan_store.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "headrace/devices/base/file_lock.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::cuda {
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

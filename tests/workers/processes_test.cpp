// Worlds of real processes over each transport: what they compute, and how they end if one is killed or stopped.
#include <signal.h>

#include "headrace/devices/base/clock.h"
#include "headrace/tests/workers/world_fixture.h"
#include "headrace/tests/workers/world_of_processes.h"

namespace headrace::test {
namespace {

using ::testing::Eq;

constexpr double kPatience = 40;  // for what takes a moment on an idle machine
// A second on an idle machine (tests/cluster measures it); well before the limits of calls where that matters.
constexpr double kSoon = 5;

// As root, and more processes than processors, as in a container.
const std::vector<std::string> kMpirun{HEADRACE_MPIRUN, "--allow-run-as-root", "--oversubscribe"};

class TransportTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (by_mpi() && std::string(HEADRACE_MPIRUN).empty()) GTEST_SKIP() << "no MPI module, or no mpirun";
  }

  static bool by_mpi() { return GetParam() == "mpi"; }

  std::vector<std::string> common() const {
    return {"ASAN_OPTIONS=detect_leaks=0",  // MPI's own
            "HEADRACE_TRANSPORT=" + GetParam(), "HEADRACE_WORKERS_MODULE=" HEADRACE_WORKERS_MODULE,
            "HEADRACE_WORKERS_DUMP=" + folder_.path().string()};
  }

  // Starts a world of `workers` processes, after any earlier one; `launcher` has options of mpirun.
  void start(int workers, const std::vector<std::string>& mode, const std::vector<std::string>& launcher = {}) {
    children_.clear();
    folder_.clear();
    std::vector<std::string> program{HEADRACE_WORLD_PROCESS, mode[0], folder_.path()};
    program.insert(program.end(), mode.begin() + 1, mode.end());
    if (!by_mpi()) return start_each(workers, program);
    std::vector<std::string> words = kMpirun;
    words.insert(words.end(), launcher.begin(), launcher.end());
    words.insert(words.end(), {"-n", std::to_string(workers)});
    words.insert(words.end(), program.begin(), program.end());
    children_.push_back(std::make_unique<ChildProcess>(common(), words));
  }

  void start_each(int workers, const std::vector<std::string>& program) {
    const std::string coordinator = free_coordinator();
    for (int rank = 0; rank < workers; ++rank) {
      std::vector<std::string> variables = common();
      variables.push_back("RANK=" + std::to_string(rank));
      variables.push_back("WORLD_SIZE=" + std::to_string(workers));
      variables.push_back("HEADRACE_COORDINATOR=" + coordinator);
      children_.push_back(std::make_unique<ChildProcess>(variables, program));
    }
  }

  // Returns the number of the worker's process, once the world sums.
  pid_t await_ready(int rank) const {
    const std::string number = folder_.await(std::to_string(rank) + ".ready", kPatience);
    return number.empty() ? -1 : std::stoi(number);
  }

  // Returns how the worker ended, in its own words.
  std::string await_end(int rank) const { return folder_.await(std::to_string(rank) + ".end", kPatience); }

  // Returns the processes by rank, once all of them sum.
  std::vector<pid_t> await_all(int workers) const {
    std::vector<pid_t> processes;
    for (int rank = 0; rank < workers; ++rank) processes.push_back(await_ready(rank));
    return processes;
  }

  ScratchFolder folder_;
  std::vector<std::unique_ptr<ChildProcess>> children_;
};

using Transports = TransportTest;
using TransportFailures = TransportTest;
using LauncherFailures = TransportTest;

TEST_P(Transports, SumAsOneTreeOverRanks) {
  for (const int workers : {2, 3, 5}) {
    start(workers, {"suite"});
    for (int rank = 0; rank < workers; ++rank) {
      EXPECT_THAT(await_end(rank), HasSubstr(GetParam() + ": ")) << workers << " workers";
    }
    for (const auto& child : children_) EXPECT_EQ(child->wait(kPatience), 0);
  }
}

// The error of a survivor, which names the file with its calls.
void expect_calls_in_file(const std::string& error, int rank, const ScratchFolder& folder) {
  const std::string name = "headrace-calls-worker-" + std::to_string(rank) + "-";
  EXPECT_THAT(error, HasSubstr("calls are in " + (folder.path() / name).string()));
  for (const std::string& file : folder.names()) {
    if (file.starts_with(name)) {
      EXPECT_THAT(folder.await(file, 0),
                  AllOf(HasSubstr(" all-reduce "), HasSubstr(" done "), HasSubstr("step 2")));
    }
  }
}

TEST_P(TransportFailures, OneThatIsKilledIsNamedWithinASecond) {
  for (const int victim : {0, 1, 2}) {
    const std::string values = victim == 1 ? "1000000" : "20000";
    start(3, {"loop", "30", values}, {"--enable-recovery"});
    const std::vector<pid_t> processes = await_all(3);
    ASSERT_THAT(processes, Not(Contains(-1)));
    ::kill(processes[static_cast<std::size_t>(victim)], SIGKILL);
    const Stopwatch since;
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == victim) continue;
      const std::string error = await_end(rank);
      EXPECT_LT(since.seconds(), kSoon) << "worker " << rank;
      EXPECT_THAT(error, AllOf(HasSubstr("worker " + std::to_string(victim) + " ("), HasSubstr("was lost"),
                               HasSubstr("in all-reduce ")));
      expect_calls_in_file(error, rank, folder_);
      if (by_mpi()) continue;  // mpirun takes leave of its processes when it likes
      EXPECT_EQ(children_[static_cast<std::size_t>(rank)]->wait(kPatience), 75);
      EXPECT_LT(since.seconds(), kSoon) << "worker " << rank;
    }
  }
}

TEST_P(TransportFailures, OneThatIsStoppedIsNamedAtTheDeadline) {
  for (const int victim : {0, 2}) {
    start(3, {"loop", "2", "20000"}, {"--enable-recovery"});
    const std::vector<pid_t> processes = await_all(3);
    ASSERT_THAT(processes, Not(Contains(-1)));
    ::kill(processes[static_cast<std::size_t>(victim)], SIGSTOP);
    const Stopwatch since;
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == victim) continue;
      EXPECT_THAT(await_end(rank), AllOf(HasSubstr("worker " + std::to_string(victim) + " ("),
                                         AnyOf(HasSubstr("is late"), HasSubstr("does not answer"))));
      EXPECT_LT(since.seconds(), 2 + kSoon) << "worker " << rank;
      if (by_mpi()) continue;
      EXPECT_EQ(children_[static_cast<std::size_t>(rank)]->wait(kPatience), 75);
      EXPECT_LT(since.seconds(), 2 + kSoon) << "worker " << rank;
    }
    ::kill(processes[static_cast<std::size_t>(victim)], SIGKILL);
  }
}

// mpirun terminates the others when one is killed; they still say why.
TEST_P(LauncherFailures, SurvivorsSpeakBeforeTheirLauncherEndsThem) {
  start(3, {"loop", "30", "20000"});
  const std::vector<pid_t> processes = await_all(3);
  ASSERT_THAT(processes, Not(Contains(-1)));
  ::kill(processes[1], SIGKILL);
  for (const int rank : {0, 2}) EXPECT_THAT(await_end(rank), HasSubstr("worker 1 ("));
  EXPECT_THAT(children_[0]->wait(kPatience), Not(AnyOf(Eq(0), Eq(-1))));
}

INSTANTIATE_TEST_SUITE_P(By, Transports, ::testing::Values("gloo", "mpi"),
                         [](const auto& each) { return each.param; });
INSTANTIATE_TEST_SUITE_P(By, LauncherFailures, ::testing::Values("mpi"),
                         [](const auto& each) { return each.param; });
INSTANTIATE_TEST_SUITE_P(By, TransportFailures, ::testing::Values("gloo", "mpi"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace headrace::test

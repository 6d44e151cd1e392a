// `headrace doctor --cluster`, as launchers start it.
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "headrace/tests/support/command.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

// Variables of one process, as RANK=1.
using Variables = std::vector<std::string>;

CommandResult diagnose(const Variables& variables, const std::vector<std::string>& options = {}) {
  std::vector<std::string> words{"/usr/bin/env"};
  words.insert(words.end(), variables.begin(), variables.end());
  words.insert(words.end(), {HEADRACE_BINARY, "doctor", "--cluster"});
  words.insert(words.end(), options.begin(), options.end());
  return run_command(words);
}

std::string port(int number) { return std::to_string(20'000 + (getpid() * 41 + number) % 20'000); }

bool has_module() {
  return std::filesystem::exists(
      std::filesystem::path(HEADRACE_BINARY).replace_filename("libheadrace_workers.so"));
}

// What each of two processes prints as JSON; they run at a time.
std::vector<nlohmann::json> meet(const Variables& first, const Variables& second) {
  std::vector<CommandResult> results(2);
  std::thread other([&] { results[1] = diagnose(second, {"--json", "-", "--wait", "30"}); });
  results[0] = diagnose(first, {"--json", "-", "--wait", "30"});
  other.join();
  std::vector<nlohmann::json> lines;
  for (const CommandResult& result : results) {
    EXPECT_EQ(result.status, 0) << result.errors;
    lines.push_back(nlohmann::json::parse(result.output, nullptr, false));
  }
  return lines;
}

void expect_a_world_of_two(const std::string& launcher, const Variables& first, const Variables& second) {
  SCOPED_TRACE(launcher);
  const std::vector<nlohmann::json> lines = meet(first, second);
  for (int rank = 0; rank < 2; ++rank) {
    const nlohmann::json& line = lines[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(line.is_object());
    EXPECT_EQ(line["launcher"], launcher);
    EXPECT_EQ(line["world"], 2);
    EXPECT_EQ(line["rank"], rank);
    EXPECT_EQ(line["chief"], rank == 0);
    EXPECT_EQ(line["transport"], "gloo");
    EXPECT_EQ(line["hosts"].size(), 1);
  }
}

TEST(ClusterDoctor, MeetsTheOthersHoweverTheyWereStarted) {
  if (!has_module()) GTEST_SKIP() << "built without gRPC or Gloo";
  const auto torchrun = [](int rank) {
    return Variables{"RANK=" + std::to_string(rank), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1",
                     "MASTER_PORT=" + port(0)};
  };
  expect_a_world_of_two("torchrun", torchrun(0), torchrun(1));
  const auto tensorflow = [](int index) {
    return Variables{R"(TF_CONFIG={"cluster": {"worker": ["127.0.0.1:)" + port(2) +
                     R"(", "127.0.0.1:1"]}, "task": )" + R"({"type": "worker", "index": )" +
                     std::to_string(index) + "}}"};
  };
  expect_a_world_of_two("TensorFlow", tensorflow(0), tensorflow(1));
  const auto mpi = [](int rank) {
    return Variables{"OMPI_COMM_WORLD_RANK=" + std::to_string(rank), "OMPI_COMM_WORLD_SIZE=2",
                     "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=" + std::to_string(getpid())};
  };
  expect_a_world_of_two("Open MPI", mpi(0), mpi(1));
  const auto slurm = [](int rank) {
    return Variables{"SLURM_JOB_ID=" + std::to_string(getpid()), "SLURM_STEP_ID=0",
                     "SLURM_PROCID=" + std::to_string(rank), "SLURM_STEP_NUM_TASKS=2",
                     "SLURM_STEP_NODELIST=localhost"};
  };
  expect_a_world_of_two("Slurm", slurm(0), slurm(1));
  const auto kubernetes = [](int index) {
    return Variables{"JOB_COMPLETION_INDEX=" + std::to_string(index), "JOB_COMPLETIONS=2",
                     "HEADRACE_COORDINATOR=127.0.0.1:" + port(4)};
  };
  expect_a_world_of_two("Kubernetes", kubernetes(0), kubernetes(1));
}

TEST(ClusterDoctor, NamesWhoIsMissing) {
  if (!has_module()) GTEST_SKIP() << "built without gRPC or Gloo";
  const Variables first{"RANK=0", "WORLD_SIZE=3", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port(6)};
  const CommandResult result = diagnose(first, {"--wait", "0.5"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, AllOf(HasSubstr("there are no worker 1, worker 2"), HasSubstr("hint: ")));
  EXPECT_THAT(result.output, HasSubstr("MASTER_ADDR, MASTER_PORT + 1"));
}

TEST(ClusterDoctor, SaysWhatCarriesTheValuesAndWhy) {
  const Variables mpi{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "PMIX_RANK=1",
                      "HEADRACE_COORDINATOR=a:1"};
  EXPECT_THAT(diagnose(mpi, {"--wait", "0"}).output,
              ContainsRegex("transport +mpi or gloo +Open MPI starts MPI processes: PMIX_RANK=1"));
  Variables wrong = mpi;
  wrong.emplace_back("HEADRACE_TRANSPORT=rdma");
  const CommandResult refused = diagnose(wrong, {"--wait", "0"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.errors, HasSubstr("HEADRACE_TRANSPORT is 'rdma': it must be auto, gloo or mpi"));
}

TEST(ClusterDoctor, SaysWhetherThereIsASecret) {
  const Variables open{"RANK=1", "WORLD_SIZE=2", "HEADRACE_COORDINATOR=a:1"};
  Variables guarded = open;
  guarded.emplace_back("HEADRACE_WORLD_SECRET=correct horse battery staple");
  for (const Variables& variables : {open, guarded}) {
    const CommandResult people = diagnose(variables, {"--wait", "0"});
    const CommandResult json = diagnose(variables, {"--wait", "0", "--json", "-"});
    const bool secret = variables.size() > open.size();
    EXPECT_THAT(people.output, ContainsRegex(secret ? "secret +set +HEADRACE_WORLD_SECRET" : "secret +none"));
    EXPECT_EQ(nlohmann::json::parse(json.output)["secret"], secret);
    EXPECT_THAT(people.output + people.errors + json.output + json.errors, Not(HasSubstr("horse")));
  }
}

TEST(ClusterDoctor, MeetsOverMpi) {
  const std::string mpirun = "/usr/bin/mpirun";
  const std::filesystem::path module =
      std::filesystem::path(HEADRACE_BINARY).replace_filename("libheadrace_mpi.so");
  if (!std::filesystem::exists(module) || !std::filesystem::exists(mpirun)) {
    GTEST_SKIP() << "no MPI module, or no " << mpirun;
  }
  const CommandResult result = run_command({mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "2",
                                            HEADRACE_BINARY, "doctor", "--cluster", "--wait", "30"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, ContainsRegex("agreed +mpi +all workers can use it: "));
}

TEST(ClusterDoctor, OnlyReadsWithoutWaiting) {
  const Variables second{"RANK=1", "WORLD_SIZE=3", "MASTER_ADDR=node-a", "MASTER_PORT=29500"};
  const CommandResult result = diagnose(second, {"--wait", "0"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, AllOf(HasSubstr("node-a:29501"), HasSubstr("worker 0")));
  EXPECT_THAT(diagnose({}).output, HasSubstr("no launcher says that there are others"));
}

}  // namespace
}  // namespace headrace::test

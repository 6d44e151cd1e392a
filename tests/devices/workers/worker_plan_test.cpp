#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/workers.h"

namespace headrace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using LaunchVariables = std::map<std::string, std::string>;

WorkerPlan plan_of(const LaunchVariables& variables) {
  return plan_workers([&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string plan_complaint(const LaunchVariables& variables) {
  try {
    plan_of(variables);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

// "coordinator = node-a:1 (HEADRACE_COORDINATOR)"
std::string fact_of(const WorkerPlan& plan, const std::string& name) {
  for (const WorkerFact& fact : plan.facts) {
    if (fact.name == name) return fact.value + " (" + fact.from + ")";
  }
  return {};
}

TEST(WorkerPlan, IsOfOneWorkerWithoutALauncher) {
  const WorkerPlan plan = plan_of({});
  EXPECT_TRUE(plan.alone());
  EXPECT_TRUE(plan.is_chief());
  EXPECT_THAT(plan.coordinator, IsEmpty());
}

TEST(WorkerPlan, ReadsTheLaunchVariablesOfTorchrun) {
  const WorkerPlan plan = plan_of({{"RANK", "3"},
                                   {"WORLD_SIZE", "4"},
                                   {"LOCAL_RANK", "1"},
                                   {"LOCAL_WORLD_SIZE", "2"},
                                   {"MASTER_ADDR", "node-a"},
                                   {"MASTER_PORT", "29500"}});
  EXPECT_EQ(plan.rank, 3);
  EXPECT_EQ(plan.workers, 4);
  EXPECT_EQ(plan.local_rank, 1);
  EXPECT_EQ(plan.local_workers, 2);
  EXPECT_FALSE(plan.is_chief());
  EXPECT_EQ(fact_of(plan, "coordinator"), "node-a:29501 (MASTER_ADDR, MASTER_PORT + 1)");
}

TEST(WorkerPlan, ReadsTfConfigWithItsChiefFirst) {
  const WorkerPlan plan = plan_of({{"TF_CONFIG", R"({"cluster": {"worker": ["b:2", "c:3"], "chief": ["a:1"]},
                                                     "task": {"type": "worker", "index": 1}})"}});
  EXPECT_EQ(plan.rank, 2);
  EXPECT_THAT(plan.addresses, ElementsAre("a:1", "b:2", "c:3"));
  EXPECT_EQ(fact_of(plan, "coordinator"), "a:1 (TF_CONFIG's first address)");
}

TEST(WorkerPlan, AnswersParameterServersWithWhatToUse) {
  EXPECT_THAT(plan_complaint({{"TF_CONFIG", R"({"cluster": {"worker": ["b:2"], "ps": ["a:1"]},
                                                 "task": {"type": "worker", "index": 0}})"}}),
              AllOf(HasSubstr("parameter server is not provided"), HasSubstr("multi-worker mirrored")));
}

TEST(WorkerPlan, FindsTheFirstHostOfSlurmsCompressedList) {
  const auto coordinator_in = [](const std::string& nodes, const std::string& step) {
    return plan_of({{"SLURM_JOB_ID", "77"},
                    {"SLURM_STEP_ID", step},
                    {"SLURM_PROCID", "1"},
                    {"SLURM_STEP_NUM_TASKS", "2"},
                    {"SLURM_STEP_NODELIST", nodes}})
        .coordinator;
  };
  for (const auto& [nodes, first] : std::vector<std::pair<std::string, std::string>>{
           {"gpu[03-07,9],login", "gpu03:"}, {"n1,n2", "n1:"}, {"host", "host:"}, {"r[7,9]-ib", "r7-ib:"}}) {
    EXPECT_THAT(coordinator_in(nodes, "0"), ::testing::StartsWith(first));
  }
  EXPECT_NE(coordinator_in("n1", "0"), coordinator_in("n1", "1"));  // two steps run side by side
}

TEST(WorkerPlan, FindsWorkersOfMpiOnOneHost) {
  LaunchVariables variables{{"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                            {"PMIX_NAMESPACE", "1234.1"}};
  EXPECT_THAT(plan_of(variables).coordinator, ::testing::StartsWith("127.0.0.1:"));
  variables["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";
  EXPECT_THAT(plan_complaint(variables),
              AllOf(HasSubstr("does not say where worker 0 is"), HasSubstr("HEADRACE_COORDINATOR=HOST:PORT")));
}

TEST(WorkerPlan, TakesACoordinatorForEveryLauncher) {
  const LaunchVariables started{{"JOB_COMPLETION_INDEX", "1"}, {"JOB_COMPLETIONS", "3"}};
  EXPECT_THAT(plan_complaint(started), HasSubstr("Kubernetes does not say where worker 0 is"));
  LaunchVariables named = started;
  named["HEADRACE_COORDINATOR"] = "job-0.headrace:29500";
  EXPECT_EQ(fact_of(plan_of(named), "coordinator"), "job-0.headrace:29500 (HEADRACE_COORDINATOR)");
  for (const char* wrong : {"node-a", ":1", "node-a:", "node-a:0", "node-a:65536", "node-a:1x"}) {
    named["HEADRACE_COORDINATOR"] = wrong;
    EXPECT_THAT(plan_complaint(named), HasSubstr("it must be HOST:PORT")) << wrong;
  }
}

TEST(WorkerPlan, SaysWhatALauncherLacks) {
  EXPECT_THAT(plan_complaint({{"JOB_COMPLETION_INDEX", "1"}}), HasSubstr("JOB_COMPLETIONS"));
  EXPECT_THAT(plan_complaint({{"WORLD_SIZE", "2"}}), HasSubstr("RANK"));
}

LaunchVariables with(LaunchVariables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

TEST(WorkerPlan, TakesMpiWhereItsLauncherStartedMpiProcesses) {
  const LaunchVariables torchrun{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"HEADRACE_COORDINATOR", "a:1"}};
  const LaunchVariables bare{
      {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"HEADRACE_COORDINATOR", "a:1"}};
  const LaunchVariables mpirun = with(bare, "PMIX_RANK", "1");
  EXPECT_EQ(fact_of(plan_of(torchrun), "transport"), "gloo (torchrun starts no MPI processes)");
  EXPECT_EQ(fact_of(plan_of(mpirun), "transport"), "mpi or gloo (Open MPI starts MPI processes: PMIX_RANK=1)");
  EXPECT_THAT(fact_of(plan_of(bare), "transport"), HasSubstr("gloo (Open MPI started no MPI processes: none of"));
  EXPECT_EQ(plan_of(with(mpirun, "HEADRACE_TRANSPORT", "auto")).transport, WorkerTransportKind::kMpiOrGloo);
  EXPECT_EQ(fact_of(plan_of(with(mpirun, "HEADRACE_TRANSPORT", "mpi")), "transport"), "mpi (HEADRACE_TRANSPORT)");
  EXPECT_EQ(fact_of(plan_of(with(mpirun, "HEADRACE_TRANSPORT", "gloo")), "transport"),
            "gloo (HEADRACE_TRANSPORT)");
}

TEST(WorkerPlan, RefusesATransportThatCannotBe) {
  EXPECT_THAT(plan_complaint({{"HEADRACE_TRANSPORT", "tcp"}}),
              HasSubstr("HEADRACE_TRANSPORT is 'tcp': it must be auto, gloo or mpi"));
  EXPECT_THAT(
      plan_complaint(
          {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"HEADRACE_COORDINATOR", "a:1"}, {"HEADRACE_TRANSPORT", "mpi"}}),
      AllOf(HasSubstr("HEADRACE_TRANSPORT=mpi, but torchrun started no MPI processes"),
            HasSubstr("start them with mpirun")));
}

}  // namespace
}  // namespace headrace

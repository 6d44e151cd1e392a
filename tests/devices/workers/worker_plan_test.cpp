// Who a worker is, and where.
#include "headrace/devices/workers.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

using LaunchVariables = std::map<std::string, std::string>;

WorkerPlan plan_of(const LaunchVariables& variables) {
  return plan_workers([&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string plan_complaint(const LaunchVariables& variables) {
  return message_of([&] { plan_of(variables); });
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
    EXPECT_THAT(coordinator_in(nodes, "0"), StartsWith(first));
  }
  EXPECT_NE(coordinator_in("n1", "0"), coordinator_in("n1", "1"));  // two steps run side by side
}

TEST(WorkerPlan, FindsWorkersOfMpiOnOneHost) {
  LaunchVariables variables{{"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                            {"PMIX_NAMESPACE", "1234.1"}};
  EXPECT_THAT(plan_of(variables).coordinator, StartsWith("127.0.0.1:"));
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
  for (const auto& [why, hosts] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"it must be HOST:PORT",
            {"node-a", ":1", "node-a:", "node-a:0", "node-a:65536", "node-a:1x", "http://node-a:1"}},
           {"an IPv6 address must be in brackets", {"::1", "fd00::5:29500", "1:2:3", "fe80::1%eth0:29500"}},
           {"what is in brackets must be an IPv6 address", {"[node-a]:1", "[10.0.0.5]:1", "[::1:1", "[::1"}},
           {"the name of a host has letters", {"node a:1", "node/a:1", "-a:1", "a..b:1", "user@node:1", ".a:1"}},
           {"an IPv4 address has four numbers", {"10.0.0:1", "10.0.0.256:1", "1:1"}},
       }) {
    for (const std::string& wrong : hosts) {
      named["HEADRACE_COORDINATOR"] = wrong;
      EXPECT_THAT(plan_complaint(named), HasSubstr(why)) << wrong;
    }
  }
  for (const char* right : {"node_a.b:1", "10.0.0.5:29500", "[::1]:1", "[fe80::1%eth0]:29500"}) {
    named["HEADRACE_COORDINATOR"] = right;
    EXPECT_EQ(plan_complaint(named), "") << right;
  }
  const auto torchrun = [](const char* host, const char* port) {
    return LaunchVariables{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", host}, {"MASTER_PORT", port}};
  };
  EXPECT_EQ(plan_of(torchrun("fd00::5", "1")).coordinator, "[fd00::5]:2");
  EXPECT_THAT(plan_complaint(torchrun("tcp://a", "1")), HasSubstr("MASTER_ADDR, MASTER_PORT + 1 is 'tcp://a:2'"));
  EXPECT_THAT(plan_complaint(torchrun("a", "1x")), HasSubstr("MASTER_PORT is '1x'"));
  EXPECT_THAT(plan_complaint({{"TF_CONFIG", R"({"cluster": {"worker": ["a:1", "grpc://b:2"]},
                                                "task": {"type": "worker", "index": 0}})"}}),
              HasSubstr("an address of TF_CONFIG's worker is 'grpc://b:2'"));
}

TEST(WorkerPlan, AnEvaluatorIsNoWorker) {
  for (const char* workers : {R"("a:1")", R"("a:1", "b:1")"}) {
    const std::string cluster =
        R"({"cluster": {"worker": [)" + std::string(workers) + R"(], "evaluator": ["c:1"]}, )";
    EXPECT_THAT(plan_complaint({{"TF_CONFIG", cluster + R"("task": {"type": "evaluator", "index": 0}})"}}),
                AllOf(HasSubstr("this process is TF_CONFIG's evaluator"), Not(HasSubstr("RANK"))));
  }
}

TEST(WorkerPlan, SaysWhatDoesNotFitOnAHost) {
  const LaunchVariables torchrun{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"HEADRACE_COORDINATOR", "a:1"}};
  for (const auto& [rank, size] :
       std::vector<std::pair<const char*, const char*>>{{"2", "2"}, {"0", "3"}, {"2", ""}}) {
    LaunchVariables odd = torchrun;
    odd["LOCAL_RANK"] = rank;
    odd["LOCAL_WORLD_SIZE"] = size;
    EXPECT_THAT(plan_complaint(odd), HasSubstr("LOCAL_RANK=")) << rank << " of " << size;
  }
}

TEST(WorkerPlan, TellsWhatGuardsTheWorldButNotTheSecret) {
  LaunchVariables variables{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"HEADRACE_COORDINATOR", "a:1"}};
  EXPECT_EQ(fact_of(plan_of(variables), "secret"), "none (no variable names one)");
  variables["HEADRACE_WORLD_SECRET"] = "correct horse battery staple";
  variables["HEADRACE_WORLD_LISTEN"] = "10.0.0.5";
  const WorkerPlan plan = plan_of(variables);
  EXPECT_EQ(fact_of(plan, "secret"), "set (HEADRACE_WORLD_SECRET)");
  EXPECT_EQ(fact_of(plan, "listens at"), "10.0.0.5 (HEADRACE_WORLD_LISTEN)");
  for (const WorkerFact& fact : plan.facts) EXPECT_THAT(fact.value + fact.from, Not(HasSubstr("horse")));
  variables["HEADRACE_WORLD_SECRET_FILE"] = "secret";
  EXPECT_THAT(plan_complaint(variables), AllOf(HasSubstr("are both set"), Not(HasSubstr("horse"))));
  variables.erase("HEADRACE_WORLD_SECRET");
  variables["HEADRACE_WORLD_TLS_CA"] = "ca.pem";
  EXPECT_THAT(plan_complaint(variables),
              HasSubstr("HEADRACE_WORLD_TLS_CA without HEADRACE_WORLD_TLS_CERTIFICATE, HEADRACE_WORLD_TLS_KEY"));
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

WorkerPlan place_of(const std::map<std::string, std::string>& variables) {
  return place_worker([&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(WorkerPlace, NeedsNoAddress) {
  const WorkerPlan place = place_of({{"JOB_COMPLETION_INDEX", "2"}, {"JOB_COMPLETIONS", "3"}});
  EXPECT_EQ(place.rank, 2);
  EXPECT_EQ(place.workers, 3);
  EXPECT_EQ(place.local_rank, -1);
  EXPECT_THAT(place.coordinator, IsEmpty());
}

TEST(WorkerPlace, IsWithinTheHostToo) {
  const WorkerPlan place = place_of(
      {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}, {"MASTER_PORT", "x"}});
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_workers, 4);
}

TEST(WorkerPlace, IsThatOfOneWithoutALauncher) { EXPECT_TRUE(place_of({}).alone()); }

TEST(WorkerPlace, IsRefusedWhereAVariableIsMissing) {
  EXPECT_THROW(place_of({{"JOB_COMPLETION_INDEX", "2"}}), ConfigError);
}

TEST(DevicesOfWorker, AreThoseThatAProcessAloneNames) {
  EXPECT_EQ(devices_of_worker("auto", nullptr), "auto");
  EXPECT_EQ(devices_of_worker("cpu:4", nullptr), "cpu:4");
}

}  // namespace
}  // namespace headrace::test

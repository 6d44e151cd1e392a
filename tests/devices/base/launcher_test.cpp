#include "headrace/devices/base/launcher.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

using Variables = std::map<std::string, std::string>;

Environment environment_of(const Variables& variables) {
  return [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

// "rank 2 of 4 workers (torchrun: RANK=2, WORLD_SIZE=4)"; empty for a process that runs alone.
std::string place_in(const Variables& variables) {
  const auto process = launched_process(environment_of(variables));
  return process ? process->to_string() : "";
}

std::string complaint_about(const Variables& variables) {
  try {
    launched_process(environment_of(variables));
  } catch (const ConfigError& error) {
    return error.message();
  }
  return {};
}

TEST(Launcher, OneProcessIsAlone) {
  for (const Variables& alone :
       {Variables{},
        {{"WORLD_SIZE", "1"}, {"RANK", "0"}},
        {{"WORLD_SIZE", ""}, {"RANK", ""}},
        {{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"PMIX_RANK", "0"}},
        {{"MV2_COMM_WORLD_SIZE", "1"}, {"MV2_COMM_WORLD_RANK", "0"}},
        {{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}},
        {{"SLURM_NTASKS", "1"}, {"SLURM_PROCID", "0"}, {"PMIX_RANK", "0"}},
        {{"JOB_COMPLETION_INDEX", "0"}, {"JOB_COMPLETIONS", "1"}},
        {{"TF_CONFIG", ""}},
        {{"TF_CONFIG", "{}"}},
        {{"TF_CONFIG", R"({"environment": "cloud"})"}, {"MASTER_ADDR", "set by a program of PyTorch"}},
        {{"WORLD_SIZE", "1"}, {"RANK", "0"}, {"JOB_COMPLETION_INDEX", "0"}, {"JOB_COMPLETIONS", "1"}},
        {{"TF_CONFIG", R"({"cluster": {"worker": ["a:1"]},
                                                    "task": {"type": "worker", "index": 0}})"}}}) {
    EXPECT_EQ(place_in(alone), "");
  }
}

struct Row {
  Variables variables;
  std::string place;
};

TEST(Launcher, EachRowOfTheTableIsSeen) {
  const std::vector<Row> rows{
      {{{"RANK", "2"}, {"WORLD_SIZE", "4"}}, "rank 2 of 4 workers (torchrun: RANK=2, WORLD_SIZE=4)"},
      {{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}},
       "rank 1 of 2 workers (Open MPI: OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE=2)"},
      {{{"MV2_COMM_WORLD_RANK", "0"}, {"MV2_COMM_WORLD_SIZE", "3"}},
       "rank 0 of 3 workers (MVAPICH2: MV2_COMM_WORLD_RANK=0, MV2_COMM_WORLD_SIZE=3)"},
      {{{"PMI_RANK", "7"}, {"PMI_SIZE", "8"}}, "rank 7 of 8 workers (MPI: PMI_RANK=7, PMI_SIZE=8)"},
      {{{"PMIX_RANK", "3"}}, "rank 3 of an unknown number of workers (PMIx: PMIX_RANK=3)"},
      {{{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "16"}},
       "rank 5 of 16 workers (Slurm: SLURM_PROCID=5, SLURM_NTASKS=16)"},
      {{{"SLURM_PROCID", "1"}, {"SLURM_NPROCS", "2"}},
       "rank 1 of 2 workers (Slurm: SLURM_PROCID=1, SLURM_NPROCS=2)"},
      {{{"JOB_COMPLETION_INDEX", "1"}, {"JOB_COMPLETIONS", "4"}},
       "rank 1 of 4 workers (Kubernetes: JOB_COMPLETION_INDEX=1, JOB_COMPLETIONS=4)"},
      {{{"JOB_COMPLETION_INDEX", "0"}},
       "rank 0 of an unknown number of workers (Kubernetes: JOB_COMPLETION_INDEX=0)"},
      {{{"TF_CONFIG", R"({"cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"]},
                          "task": {"type": "worker", "index": 1}})"}},
       R"(rank 2 of 3 workers (TensorFlow: TF_CONFIG with task {"index":1,"type":"worker"}))"},
  };
  for (const Row& row : rows) EXPECT_EQ(place_in(row.variables), row.place);
}

TEST(Launcher, ASizeAloneIsEnough) {
  for (const char* size : {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS",
                           "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS", "JOB_COMPLETIONS"}) {
    EXPECT_THAT(place_in({{size, "2"}}),
                AllOf(StartsWith("one of 2 workers ("), HasSubstr(std::string(size) + "=2")));
  }
  EXPECT_EQ(place_in({{"TF_CONFIG", R"({"cluster": {"worker": ["b:1"], "ps": ["c:1"]}})"}}),
            "one of 2 workers (TensorFlow: TF_CONFIG with no task)");
}

TEST(Launcher, AnAllocationOfSlurmIsNoWorker) {
  const Variables salloc{{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}, {"SLURM_NPROCS", "4"}};
  EXPECT_EQ(place_in(salloc), "");
  Variables script = salloc;  // sbatch sets the first task's number, too
  script["SLURM_PROCID"] = "0";
  EXPECT_EQ(place_in(script), "");

  Variables step = script;
  step["SLURM_STEP_ID"] = "0";
  EXPECT_EQ(place_in(step), "rank 0 of 4 workers (Slurm: SLURM_PROCID=0, SLURM_NTASKS=4)");
  step["SLURM_STEP_NUM_TASKS"] = "2";
  EXPECT_EQ(place_in(step), "rank 0 of 2 workers (Slurm: SLURM_PROCID=0, SLURM_STEP_NUM_TASKS=2)");
  step["SLURM_STEP_NUM_TASKS"] = "1";  // srun --pty of one shell
  EXPECT_EQ(place_in(step), "");
}

TEST(Launcher, OneThatCountsSpeaksForThoseThatDoNot) {
  EXPECT_EQ(place_in({{"PMIX_RANK", "1"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}),
            "rank 1 of 2 workers (PMIx: PMIX_RANK=1, SLURM_NTASKS=2)");
  EXPECT_EQ(place_in({{"RANK", "1"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}),
            "rank 1 of 2 workers (Slurm: SLURM_PROCID=1, SLURM_NTASKS=2)");
  EXPECT_EQ(place_in({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}),
            "rank 5 of 8 workers (torchrun: RANK=5, WORLD_SIZE=8)")
      << "torchrun, which srun started on each node";
  EXPECT_EQ(place_in({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}),
            "rank 5 of 8 workers (torchrun: RANK=5, WORLD_SIZE=8)");
  EXPECT_EQ(place_in({{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "4"},
                      {"SLURM_PROCID", "1"},
                      {"SLURM_NTASKS", "2"}}),
            "rank 1 of 4 workers (Open MPI: OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE=4)")
      << "mpirun, which places ranks as it likes";
}

TEST(Launcher, TwoThatContradictEachOtherAreRefused) {
  const Variables by_hand{{"RANK", "0"}, {"WORLD_SIZE", "2"}};
  const auto beside = [&](Variables others) {
    others.insert(by_hand.begin(), by_hand.end());
    return complaint_about(others);
  };
  EXPECT_EQ(beside({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}),
            "torchrun and Slurm contradict each other: RANK=0, WORLD_SIZE=2; SLURM_PROCID=1, SLURM_NTASKS=2");
  for (const Variables& others : std::vector<Variables>{
           {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}},
           {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "3"}},
           {{"JOB_COMPLETION_INDEX", "2"}, {"JOB_COMPLETIONS", "4"}},
           {{"TF_CONFIG",
             R"({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}})"}}}) {
    EXPECT_THAT(beside(others), HasSubstr("contradict each other")) << others.begin()->first;
  }
  EXPECT_THAT(complaint_about({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}),
              HasSubstr("contradict"));
  EXPECT_EQ(beside({{"TORCHELASTIC_RUN_ID", "7"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}), "")
      << "torchrun numbers nodes as they come";
}

// Of a world of which nothing says that this process is one.
TEST(Launcher, HalfALaunchIsRefused) {
  const auto complaint = [](const Variables& variables) -> std::string {
    try {
      refuse_half_a_launch(environment_of(variables));
    } catch (const ConfigError& error) {
      return error.message();
    }
    return {};
  };
  EXPECT_EQ(
      complaint({{"MASTER_ADDR", "a"}}),
      "MASTER_ADDR=a is set, but neither RANK nor WORLD_SIZE: which worker this is, of how many, is not said");
  for (const char* name : {"MASTER_PORT", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                           "MPI_LOCALRANKID", "SLURM_STEP_ID", "SLURM_LOCALID", "HEADRACE_COORDINATOR"}) {
    EXPECT_THAT(complaint({{name, "1"}}), StartsWith(std::string(name) + "=1 is set, but neither ")) << name;
    EXPECT_EQ(complaint({{name, "1"}, {"RANK", "0"}, {"WORLD_SIZE", "1"}}), "") << name;
  }
  EXPECT_EQ(complaint({{"MASTER_ADDR", "a"}, {"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}}), "")
      << "a script of sbatch, which starts the tasks";
  EXPECT_EQ(complaint({}), "");
}

TEST(Launcher, WhatCannotBeReadNamesTheVariable) {
  EXPECT_EQ(complaint_about({{"WORLD_SIZE", "four"}}),
            "WORLD_SIZE is 'four': it must be a whole number of at least 1");
  EXPECT_EQ(complaint_about({{"RANK", "abc"}, {"WORLD_SIZE", "4"}}),
            "RANK is 'abc': it must be a whole number from 0 to 3, as WORLD_SIZE=4");
  EXPECT_EQ(complaint_about({{"JOB_COMPLETION_INDEX", "-1"}}),
            "JOB_COMPLETION_INDEX is '-1': it must be a whole number of at least 0");
  EXPECT_THAT(complaint_about({{"JOB_COMPLETION_INDEX", "4"}, {"JOB_COMPLETIONS", "4"}}),
              StartsWith("JOB_COMPLETION_INDEX is '4'"));
  EXPECT_THAT(complaint_about({{"RANK", "1"}, {"WORLD_SIZE", "1"}}), StartsWith("RANK is '1'"));
  for (const char* odd : {"0", "-1", "2x", "99999999999999999999"}) {
    EXPECT_THAT(complaint_about({{"MV2_COMM_WORLD_SIZE", odd}}), StartsWith("MV2_COMM_WORLD_SIZE is '")) << odd;
  }
  for (const char* odd : {"worker", "[1]", R"({"cluster": 3})", R"({"cluster": {"worker": "a:1"}})",
                          R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}})",
                          R"({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}})",
                          R"({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker"}})",
                          R"({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": "0"}})",
                          R"({"cluster": {"worker": ["a:1", 2]}, "task": {"type": "worker", "index": 0}})",
                          R"({"cluster": {}})", R"({"task": {"type": "worker", "index": 1}})"}) {
    EXPECT_THAT(complaint_about({{"TF_CONFIG", odd}}), StartsWith("TF_CONFIG is '")) << odd;
  }
  // Each of which would count no workers, or not this one, and train alone.
  for (const auto& [odd, said, meant] : std::vector<std::array<std::string, 3>>{
           {R"({"cluster": {"wroker": ["a:1", "b:1"]}, "task": {"type": "wroker", "index": 0}})",
            R"(its cluster has jobs "wroker")", "worker"},
           {R"({"Cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}})",
            R"(it has "Cluster")", "cluster"},
           {R"({"cluster": {"worker": ["a:1", "b:1"]}, "tasks": {"type": "worker", "index": 0}})",
            R"(it has "tasks")", "task"},
           {R"({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"Type": "worker", "index": 0}})",
            R"(its task has "Type")", "type"},
           {R"({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "workers", "index": 0}})",
            "its task is workers 0", "worker"}}) {
    EXPECT_THAT(complaint_about({{"TF_CONFIG", odd}}),
                AllOf(HasSubstr(said), HasSubstr("did you mean '" + meant + "'?")));
  }
  EXPECT_EQ(place_in({{"TF_CONFIG", R"({"cluster": {"worker": ["a:1"], "evaluator": ["b:1"]}})"}}), "");
}

TEST(Launcher, ARefusalSaysWhatToDo) {
  const ConfigError error = error_of<ConfigError>([&] {
    refuse_to_run_beside_others(environment_of({{"JOB_COMPLETION_INDEX", "2"}}), "pass --standalone");
  });
  EXPECT_EQ(error.message(),
            "this process is rank 2 of an unknown number of workers (Kubernetes: JOB_COMPLETION_INDEX=2), and "
            "would do the same work as the others, alone beside them");
  EXPECT_EQ(error.hint(),
            "start one process, set JOB_COMPLETIONS=1 where it is the only one, or pass --standalone");
  EXPECT_NO_THROW(refuse_to_run_beside_others(environment_of({{"WORLD_SIZE", "1"}}), "pass --standalone"));
}

}  // namespace
}  // namespace headrace::test

// The command as a process that a launcher started as one of several.
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

using LaunchVariables = std::vector<std::string>;

const std::string kTwoWorkers =
    R"(TF_CONFIG={"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}})";

CommandResult launched(const LaunchVariables& variables, const LaunchVariables& arguments) {
  LaunchVariables command{"/usr/bin/env"};
  command.insert(command.end(), variables.begin(), variables.end());
  command.emplace_back(HEADRACE_BINARY);
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_command(command);
}

LaunchVariables with(LaunchVariables arguments, const LaunchVariables& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

const LaunchVariables kDigest{"digest", "--pipeline", "trivial", "--devices", "cpu"};

// Commands that would do alone what the other workers do, too.
std::vector<LaunchVariables> refusing_commands() {
  return {kDigest,
          {"ledger", "--pipeline", "trivial", "--check"},
          {"bench", "input", "--pipeline", "trivial"},
          {"explain", "--pipeline", "trivial"},
          {"convert", "--data", "nowhere", "--to", "nowhere-else"}};
}

TEST(Launched, EachCommandRefusesToRunBesideOthers) {
  for (const LaunchVariables& command : refusing_commands()) {
    const CommandResult result = launched({kTwoWorkers}, command);
    EXPECT_EQ(result.status, 2) << command[0] << result.errors;
    EXPECT_EQ(result.output, "");
    EXPECT_THAT(result.errors,
                StartsWith(R"(headrace: this process is rank 1 of 2 workers (TensorFlow: TF_CONFIG with task )"));
    EXPECT_THAT(result.errors, HasSubstr("\n  hint: start one process, or "));
    EXPECT_THAT(result.errors, HasSubstr("pass --standalone where each is to run alone\n"));
  }
}

TEST(Launched, EachLauncherIsSeen) {
  const std::vector<LaunchVariables> environments{{"JOB_COMPLETION_INDEX=0"},
                                                  {"JOB_COMPLETION_INDEX=1", "JOB_COMPLETIONS=2"},
                                                  {"SLURM_NPROCS=2", "SLURM_PROCID=0"},
                                                  {"MV2_COMM_WORLD_SIZE=2", "MV2_COMM_WORLD_RANK=0"},
                                                  {"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=0"},
                                                  {"PMI_SIZE=2", "PMI_RANK=0"},
                                                  {"PMIX_RANK=0"},
                                                  {"WORLD_SIZE=2", "RANK=0"}};
  for (const LaunchVariables& variables : environments) {
    const CommandResult result = launched(variables, kDigest);
    EXPECT_EQ(result.status, 2) << variables[0];
    EXPECT_THAT(result.errors, HasSubstr(variables[0]));
  }
  EXPECT_EQ(launched({"WORLD_SIZE=1", "RANK=0"}, kDigest).status, 0) << "one worker is alone";
  const CommandResult wrong = launched({"WORLD_SIZE=2", "RANK=abc"}, kDigest);
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.errors, StartsWith("headrace: RANK is 'abc'"));
}

TEST(Launched, StandaloneRunsAsWithoutALauncher) {
  const CommandResult alone = run_command(with({HEADRACE_BINARY}, kDigest));
  const CommandResult meant = launched({kTwoWorkers}, with(kDigest, {"--standalone"}));
  EXPECT_EQ(meant.status, 0) << meant.errors;
  EXPECT_EQ(meant.output, alone.output);
  for (const LaunchVariables& command : refusing_commands()) {
    EXPECT_THAT(launched({"WORLD_SIZE=x"}, with(command, {"--standalone", "--help"})).errors, "") << command[0];
  }
  for (const char* command : {"evaluate", "predict"}) {
    const CommandResult result =
        launched({kTwoWorkers}, {command, "--record", "nowhere", "--data", "nowhere", "--standalone"});
    EXPECT_EQ(result.status, 1) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("nowhere"));
  }
}

TEST(Launched, APartOfTheWorldIsNotAlone) {
  const CommandResult part = launched({kTwoWorkers}, with(kDigest, {"--world", "2", "--first", "1"}));
  EXPECT_EQ(part.status, 0) << part.errors;
  EXPECT_THAT(launched({kTwoWorkers}, kDigest).errors,
              HasSubstr("give --world and --first, or pass --standalone"));
}

TEST(Launched, WhatOnlyLooksRunsBesideOthers) {
  const TempFolder folder;
  for (const LaunchVariables& command :
       {LaunchVariables{"doctor"}, LaunchVariables{"cache", "inspect", folder.path().string()},
        LaunchVariables{"cache", "verify", folder.path().string()}}) {
    EXPECT_EQ(launched({kTwoWorkers}, command).status, 0) << command[0];
    EXPECT_EQ(launched({kTwoWorkers}, with(command, {"--standalone"})).status, 0) << command[0];
  }
  const CommandResult report = launched({kTwoWorkers}, {"report", folder.path().string(), "--standalone"});
  EXPECT_THAT(report.errors, Not(HasSubstr("worker")));
}

TEST(Launched, WrongUsageIsSaidFirst) {
  EXPECT_THAT(launched({kTwoWorkers}, with(kDigest, {"--seed", "x"})).errors, StartsWith("headrace: --seed x"));
}

}  // namespace
}  // namespace headrace::test

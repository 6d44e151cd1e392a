// A training as several workers.
#include "headrace/tests/pipeline/sources/arrays/idx_fixture.h"
#include "headrace/tests/support/command.h"
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

// The command for a part of the replicas.

CommandResult run_headrace(const std::string& arguments) {
  std::vector<std::string> words{HEADRACE_BINARY};
  std::istringstream in(arguments);
  for (std::string word; in >> word;) words.push_back(word);
  return run_command(words);
}

// Images of 0 and 1, and where they are.
struct FiftyImages {
  FiftyImages() {
    folder.write("train-images-idx3-ubyte", make_idx({50, 28, 28}));
    folder.write("train-labels-idx1-ubyte", make_idx({50}));
  }
  std::string options() const {
    return " --pipeline mnist-train --global-batch 12 --data " + folder.path().string() + " ";
  }
  TempFolder folder;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Of shares, of some replicas.
std::vector<std::string> lines_of_replicas(const std::string& text, int first, int count) {
  std::vector<std::string> kept;
  for (const std::string& line : lines_of(text)) {
    for (int r = first; r < first + count; ++r) {
      if (line.find(" replica " + std::to_string(r) + " ") != std::string::npos) kept.push_back(line);
    }
  }
  return kept;
}

TEST(WorldOptions, DigestPrintsTheLinesOfItsReplicasEqualToTheWholes) {
  const FiftyImages images;
  const std::string all = "digest --epochs 2" + images.options();
  const CommandResult whole = run_headrace(all + "--replicas 8 --per-replica");
  ASSERT_EQ(whole.status, 0) << whole.errors;
  EXPECT_THAT(whole.output, HasSubstr(" examples 12 ")) << "the batches are there, too";
  const CommandResult plain = run_headrace(all + "--replicas 8");
  EXPECT_EQ(lines_of(whole.output).back(), lines_of(plain.output).back());
  for (const int first : {0, 3, 6}) {
    const CommandResult part = run_headrace(all + "--world 8 --replicas 2 --first " + std::to_string(first));
    ASSERT_EQ(part.status, 0) << part.errors;
    std::vector<std::string> shares = lines_of(part.output);
    shares.pop_back();  // the digest of the part
    EXPECT_THAT(shares, ElementsAreArray(lines_of_replicas(whole.output, first, 2)));
  }
}

TEST(WorldOptions, LedgersOfPartsAddUp) {
  const FiftyImages images;
  const std::string all = "ledger" + images.options();
  const CommandResult whole = run_headrace(all + "--replicas 5");
  std::vector<std::string> parts;
  for (const auto& [first, count] : {std::pair(0, 2), std::pair(2, 3)}) {
    const CommandResult part =
        run_headrace(all + "--world 5 --replicas " + std::to_string(count) + " --first " + std::to_string(first));
    ASSERT_EQ(part.status, 0) << part.errors;
    const std::vector<std::string> lines = lines_of(part.output);
    parts.insert(parts.end(), lines.begin(), lines.end());
  }
  std::vector<std::string> expected = lines_of(whole.output);
  std::ranges::sort(expected);
  std::ranges::sort(parts);
  EXPECT_EQ(parts, expected);
}

TEST(WorldOptions, WhatCannotBeIsRefused) {
  const CommandResult outside = run_headrace("digest --pipeline trivial --world 4 --first 3 --replicas 2");
  EXPECT_EQ(outside.status, 2);
  EXPECT_THAT(outside.errors, HasSubstr("replicas 3 to 4 are not within a world of 4"));
  const CommandResult check = run_headrace("ledger --pipeline trivial --world 4 --replicas 2 --check");
  EXPECT_EQ(check.status, 2);
  EXPECT_THAT(check.errors, HasSubstr("--world"));
}

using LaunchVariables = std::vector<std::string>;

// The command as a process that a launcher started as one of several.

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

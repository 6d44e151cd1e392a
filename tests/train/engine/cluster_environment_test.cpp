#include "headrace/train/engine/cluster_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

using Variables = std::map<std::string, std::string>;

Environment environment_of(const Variables& variables) {
  return [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

std::string refusal_of_environment(const Variables& variables) {
  try {
    refuse_to_train_alone(environment_of(variables));
  } catch (const ConfigError& error) {
    return error.message();
  }
  return {};
}

TEST(ClusterEnvironment, OneProcessIsNoCluster) {
  for (const Variables& alone : {Variables{},
                                 {{"WORLD_SIZE", "1"}, {"RANK", "0"}},
                                 {{"SLURM_NTASKS", "1"}},
                                 {{"OMPI_COMM_WORLD_SIZE", "1"}},
                                 {{"WORLD_SIZE", ""}},
                                 {{"TF_CONFIG", ""}},
                                 {{"TF_CONFIG", "{}"}},
                                 {{"TF_CONFIG", R"({"cluster": {"worker": ["a:1"]}, "task": {"index": 0}})"}}}) {
    EXPECT_EQ(refusal_of_environment(alone), "");
  }
}

TEST(ClusterEnvironment, EachLauncherOfSeveralIsNamed) {
  constexpr const char* kRest = ", and training over several workers is not supported yet: it would train alone";
  const auto text = [&](const std::string& who) { return "this process is one of " + who + kRest; };
  EXPECT_EQ(refusal_of_environment({{"WORLD_SIZE", "4"}, {"RANK", "2"}}),
            text("4 workers (WORLD_SIZE, of torchrun)"));
  EXPECT_EQ(refusal_of_environment({{"OMPI_COMM_WORLD_SIZE", "2"}}),
            text("2 workers (OMPI_COMM_WORLD_SIZE, of mpirun)"));
  EXPECT_EQ(refusal_of_environment({{"PMI_SIZE", "8"}}), text("8 workers (PMI_SIZE, of mpiexec)"));
  EXPECT_EQ(refusal_of_environment({{"SLURM_NTASKS", "16"}}), text("16 workers (SLURM_NTASKS, of Slurm)"));
  EXPECT_EQ(
      refusal_of_environment({{"TF_CONFIG", R"({"cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"]}})"}}),
      text("3 workers (TF_CONFIG)"));
  EXPECT_EQ(refusal_of_environment({{"TF_CONFIG", R"({"cluster": {"worker": ["b:1"], "ps": ["c:1"]}})"}}),
            text("2 workers (TF_CONFIG)"));
  EXPECT_EQ(refusal_of_environment({{"WORLD_SIZE", "1"}, {"SLURM_NTASKS", "2"}}),
            text("2 workers (SLURM_NTASKS, of Slurm)"));
}

TEST(ClusterEnvironment, WhatCannotBeReadIsNoSingleProcess) {
  EXPECT_EQ(refusal_of_environment({{"WORLD_SIZE", "four"}}),
            "WORLD_SIZE is 'four', which says nothing about the workers of this run");
  for (const char* odd : {"0", "-1", "2x", "99999999999999999999"})
    EXPECT_NE(refusal_of_environment({{"SLURM_NTASKS", odd}}), "") << odd;
  for (const char* odd : {"worker", "[1]", R"({"cluster": 3})", R"({"cluster": {"worker": "a:1"}})"}) {
    EXPECT_THAT(refusal_of_environment({{"TF_CONFIG", odd}}), ::testing::StartsWith("TF_CONFIG is '")) << odd;
  }
}

}  // namespace
}  // namespace headrace

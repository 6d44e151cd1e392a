// Commands that several processes run together, started in each of the ways that are known.
#include <nlohmann/json.hpp>

#include "headrace/tests/support/free_coordinator.h"
#include "headrace/tests/tools/headrace_command.h"
#include "headrace/tests/tools/recipes/small_data.h"
#include "headrace/tests/tools/report/page_reader.h"

namespace headrace::test {
namespace {

using Arguments = std::vector<std::string>;

// The variables of a worker, as a launcher sets them.
struct Launcher {
  const char* name;
  Arguments (*variables)(int rank, int workers, const std::string& coordinator);
};

std::ostream& operator<<(std::ostream& stream, const Launcher& launcher) { return stream << launcher.name; }

Arguments torchrun(int rank, int workers, const std::string& coordinator) {
  const int port = std::stoi(coordinator.substr(coordinator.rfind(':') + 1));
  return {"RANK=" + std::to_string(rank),
          "WORLD_SIZE=" + std::to_string(workers),
          "LOCAL_RANK=" + std::to_string(rank),
          "LOCAL_WORLD_SIZE=" + std::to_string(workers),
          "MASTER_ADDR=127.0.0.1",
          "MASTER_PORT=" + std::to_string(port - 1)};
}

Arguments tensorflow(int rank, int workers, const std::string& coordinator) {
  nlohmann::json config{{"task", {{"type", "worker"}, {"index", rank}}}};
  for (int i = 0; i < workers; ++i) {
    config["cluster"]["worker"].push_back(i == 0 ? coordinator : "127.0.0.1:" + std::to_string(i));
  }
  return {"TF_CONFIG=" + config.dump()};
}

Arguments mpirun(int rank, int workers, const std::string& coordinator) {
  return {"OMPI_COMM_WORLD_RANK=" + std::to_string(rank), "OMPI_COMM_WORLD_SIZE=" + std::to_string(workers),
          "HEADRACE_COORDINATOR=" + coordinator, "HEADRACE_TRANSPORT=gloo"};
}

Arguments srun(int rank, int workers, const std::string& coordinator) {
  return {"SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_PROCID=" + std::to_string(rank),
          "SLURM_STEP_NUM_TASKS=" + std::to_string(workers), "HEADRACE_COORDINATOR=" + coordinator};
}

Arguments kubernetes(int rank, int workers, const std::string& coordinator) {
  return {"JOB_COMPLETION_INDEX=" + std::to_string(rank), "JOB_COMPLETIONS=" + std::to_string(workers),
          "HEADRACE_COORDINATOR=" + coordinator};
}

class WorkerCommands {
 public:
  WorkerCommands(const Launcher& launcher, int workers, const TempFolder& folder, const Arguments& arguments) {
    const std::string coordinator = free_coordinator();
    for (int rank = 0; rank < workers; ++rank) {
      started_.push_back(std::make_unique<RunningCommand>(arguments, folder / ("output-" + std::to_string(rank)),
                                                          launcher.variables(rank, workers, coordinator)));
    }
  }

  RunningCommand& operator[](std::size_t rank) { return *started_.at(rank); }
  std::vector<int> wait() {
    std::vector<int> statuses;
    for (const auto& one : started_) statuses.push_back(one->wait());
    return statuses;
  }

 private:
  std::vector<std::unique_ptr<RunningCommand>> started_;
};

std::string weights_in(const std::string& output) {
  const std::size_t at = output.find("\"weights_sha256\":\"");
  return at == std::string::npos ? "none in: " + output : output.substr(at + 18, 64);
}

Arguments train_small(const TempFolder& data, const std::string& devices, const Arguments& more) {
  Arguments arguments{
      "train",   "--recipe", "cifar10-cnn", "--data", data.path().string(), "--verbose", "0", "--json", "-",
      "--cache", "none",     "--devices",   devices,  "--global-batch",     "9"};
  if (std::ranges::find(more, "--epochs") == more.end()) arguments.insert(arguments.end(), {"--epochs", "2"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

class LaunchedWorkers : public ::testing::TestWithParam<Launcher> {};

TEST_P(LaunchedWorkers, TwoWorkersTrainAsTwoReplicasDo) {
  const TempFolder data, outputs;
  write_cifar(data);
  WorkerCommands workers(GetParam(), 2, outputs, train_small(data, "cpu:1", {}));
  EXPECT_THAT(workers.wait(), Each(0)) << workers[0].output() << workers[1].output();
  EXPECT_EQ(workers[1].output(), "");
  EXPECT_EQ(weights_in(workers[0].output()), weights_in(headrace(train_small(data, "cpu:2", {})).output));
}

const Launcher kLaunchers[] = {{"torchrun", torchrun},
                               {"TfConfig", tensorflow},
                               {"mpirun", mpirun},
                               {"srun", srun},
                               {"Kubernetes", kubernetes}};

INSTANTIATE_TEST_SUITE_P(Ways, LaunchedWorkers, ::testing::ValuesIn(kLaunchers),
                         [](const auto& each) { return std::string(each.param.name); });

// The worker is killed somewhere in the first epoch, and the whole run started again.
void expect_to_survive_the_loss_of(std::size_t lost) {
  const TempFolder data, outputs, checkpoints;
  write_cifar(data, 100, 20);
  const Arguments saved{"--checkpoint-dir", checkpoints.path().string(), "--checkpoint-every", "5", "--resume"};
  WorkerCommands first(kLaunchers[0], 2, outputs, train_small(data, "cpu:1", saved));
  ASSERT_TRUE(first[0].wait_until([&] { return !std::filesystem::is_empty(checkpoints.path()); }));
  first[lost].send(SIGKILL);
  const Stopwatch since;
  const std::vector<int> statuses = first.wait();
  EXPECT_LT(since.seconds(), 10);  // a second, unless other work takes the cores
  EXPECT_EQ(statuses[lost], 128 + SIGKILL);
  EXPECT_EQ(statuses[1 - lost], 75) << first[1 - lost].output();
  EXPECT_THAT(first[1 - lost].output(), HasSubstr("worker " + std::to_string(lost) + " ("));
  EXPECT_THAT(first[1 - lost].output(), HasSubstr("was lost"));

  WorkerCommands second(kLaunchers[0], 2, outputs, train_small(data, "cpu:1", saved));
  EXPECT_THAT(second.wait(), Each(0)) << second[0].output() << second[1].output();
  EXPECT_EQ(weights_in(second[0].output()), weights_in(headrace(train_small(data, "cpu:2", {})).output));
}

TEST(LaunchedFailures, TheLossOfTheChiefIsSurvived) { expect_to_survive_the_loss_of(0); }
TEST(LaunchedFailures, TheLossOfAnotherIsSurvived) { expect_to_survive_the_loss_of(1); }

TEST(LaunchedFailures, AWorkerWithOtherDataIsRefused) {
  const TempFolder data, other, outputs;
  write_cifar(data);
  write_cifar(other, 12);
  const std::string coordinator = free_coordinator();
  RunningCommand first(train_small(data, "cpu:1", {}), outputs / "0", torchrun(0, 2, coordinator));
  RunningCommand second(train_small(other, "cpu:1", {}), outputs / "1", torchrun(1, 2, coordinator));
  EXPECT_EQ(first.wait(), 1);
  EXPECT_EQ(second.wait(), 1);
  EXPECT_THAT(first.output(), HasSubstr("the workers differ in their data: "));
}

// Options that only worker 1 has, and what is said of them.
TEST(LaunchedFailures, AnOptionOfOneWorkerIsNamed) {
  const TempFolder data, outputs;
  write_cifar(data);
  const std::string file = (outputs / "file").string(), folder = (outputs / "folder").string();
  const std::vector<std::pair<Arguments, std::string>> rows{
      {{"--debug-nan"}, "--debug-nan: given of worker 1, not given of worker 0"},
      {{"--record", file}, "--record: given of worker 1"},
      {{"--checkpoint-dir", folder}, "--checkpoint-dir: given of worker 1"},
      {{"--trace", file}, "--trace: given of worker 1"},
      {{"--mirror-check-every", "5"}, "--mirror-check-every: 0 of worker 0, 5 of worker 1"},
      {{"--runs", "2"}, "--runs: 2 of worker 1"},
      {{"--average-decay", "0.9"}, "--average-decay: 0.9 of worker 1"},
      {{"--epochs", "3"}, "--epochs: 2 of worker 0, 3 of worker 1"},
      {{"--precision", "bf16"}, "--precision: auto of worker 0, bf16 of worker 1"}};
  for (const auto& [more, said] : rows) {
    const std::string coordinator = free_coordinator();
    RunningCommand first(train_small(data, "cpu:1", {}), outputs / "0", torchrun(0, 2, coordinator));
    RunningCommand second(train_small(data, "cpu:1", more), outputs / "1", torchrun(1, 2, coordinator));
    EXPECT_EQ(first.wait(), 1) << more[0];
    EXPECT_EQ(second.wait(), 1) << more[0];
    for (const RunningCommand* each : {&first, &second}) {
      EXPECT_THAT(each->output(), HasSubstr("the workers differ in their " + said));
    }
  }
  EXPECT_FALSE(std::filesystem::exists(file) || std::filesystem::exists(folder));
}

TEST(LaunchedFailures, AnotherCommandIsNamed) {
  const TempFolder data, outputs;
  write_cifar(data);
  const std::string record = (outputs / "record").string(), coordinator = free_coordinator();
  ASSERT_EQ(headrace(train_small(data, "cpu:1", {"--record", record})).status, 0);
  RunningCommand first(train_small(data, "cpu:1", {}), outputs / "0", torchrun(0, 2, coordinator));
  RunningCommand second({"evaluate", "--record", record, "--data", data.path().string()}, outputs / "1",
                        torchrun(1, 2, coordinator));
  EXPECT_EQ(first.wait(), 1);
  EXPECT_EQ(second.wait(), 1);
  EXPECT_THAT(second.output(),
              HasSubstr("all-gather (headrace train) of worker 0, all-gather (headrace evaluate) of "
                        "worker 1"));
}

// What only the chief uses.
TEST(LaunchedFailures, WhatMayDifferIsNotCompared) {
  const TempFolder data, outputs;
  write_cifar(data);
  const std::string coordinator = free_coordinator();
  Arguments chiefs = train_small(
      data, "cpu:1",
      {"--run-dir", (outputs / "run").string(), "--csv", (outputs / "log.csv").string(), "--threads", "1"});
  Arguments others = train_small(data, "cpu:1", {"--prefetch", "3", "--worker-call-timeout", "50"});
  std::erase(others, "--json");
  std::erase(others, "-");
  RunningCommand first(chiefs, outputs / "0", torchrun(0, 2, coordinator));
  RunningCommand second(others, outputs / "1", torchrun(1, 2, coordinator));
  EXPECT_EQ(first.wait(), 0) << first.output();
  EXPECT_EQ(second.wait(), 0) << second.output();
}

TEST(LaunchedFailures, ASecretKeepsOthersOut) {
  const TempFolder data, outputs;
  write_cifar(data);
  const std::string coordinator = free_coordinator();
  const auto with_secret = [&](int rank, const std::string& secret) {
    Arguments variables = torchrun(rank, 2, coordinator);
    variables.push_back("HEADRACE_WORLD_SECRET=" + secret);
    return variables;
  };
  const Arguments train = train_small(data, "cpu:1", {"--worker-start-timeout", "3"});
  RunningCommand first(train, outputs / "0", with_secret(0, "correct horse battery staple"));
  RunningCommand second(train, outputs / "1", with_secret(1, "another horse battery staple"));
  EXPECT_EQ(first.wait(), 75);
  EXPECT_EQ(second.wait(), 1);
  EXPECT_THAT(second.output(), HasSubstr("worker 0 has another secret than this worker"));
  for (const RunningCommand* each : {&first, &second}) EXPECT_THAT(each->output(), Not(HasSubstr("horse")));
}

TEST(LaunchedFailures, AMissingWorkerIsNamed) {
  const TempFolder data, outputs;
  write_cifar(data);
  RunningCommand alone(train_small(data, "cpu:1", {"--worker-start-timeout", "1"}), outputs / "0",
                       tensorflow(0, 2, free_coordinator()));
  EXPECT_EQ(alone.wait(), 75);
  EXPECT_THAT(alone.output(), HasSubstr("there is no worker 1 (expected at 127.0.0.1:1)"));
}

// Each worker is asked to stop, or one alone.
TEST(LaunchedFailures, OneThatIsToldToStopStopsAll) {
  const TempFolder data, outputs, checkpoints;
  write_cifar(data, 100, 20);
  WorkerCommands workers(kLaunchers[0], 2, outputs,
                         train_small(data, "cpu:1",
                                     {"--checkpoint-dir", checkpoints.path().string(), "--epochs", "500",
                                      "--checkpoint-every", "5"}));
  // A checkpoint is there after both have trained, and so listen to signals.
  ASSERT_TRUE(workers[0].wait_until([&] {
    return std::ranges::any_of(std::filesystem::directory_iterator(checkpoints.path()),
                               [](const auto& entry) { return entry.path().extension() == ".safetensors"; });
  }));
  workers[1].send(SIGTERM);
  const std::vector<int> statuses = workers.wait();
  EXPECT_EQ(statuses[0], 75) << workers[0].output();
  EXPECT_EQ(statuses[1], 128 + SIGTERM) << workers[1].output();
  EXPECT_THAT(workers[0].output(), HasSubstr("holds the run: go on with --resume"));
}

TEST(LaunchedRecords, AreEvaluatedAndPredictedTogether) {
  const TempFolder data, outputs;
  write_cifar(data);
  const std::string record = (outputs / "record").string();
  ASSERT_EQ(headrace(train_small(data, "cpu:1", {"--record", record})).status, 0);
  for (const char* command : {"evaluate", "predict"}) {
    const Arguments arguments{command, "--record", record, "--data", data.path().string(), "--json", "-"};
    Arguments alone = arguments, shared = arguments;
    alone.insert(alone.end(), {"--devices", "cpu:2"});
    shared.insert(shared.end(), {"--devices", "cpu:1"});
    WorkerCommands workers(kLaunchers[0], 2, outputs, shared);
    EXPECT_THAT(workers.wait(), Each(0)) << workers[0].output() << workers[1].output();
    const auto without_time = [](const std::string& text) { return text.substr(0, text.find(",\"seconds\"")); };
    const std::string chief =
        with_reading_apart({.status = 0, .output = "", .errors = workers[0].output()}).errors;  // both streams
    EXPECT_EQ(without_time(chief), without_time(headrace(alone).output));
    EXPECT_EQ(workers[1].output(), "");
  }
}

TEST(LaunchedRecords, AReportHasARowForEachWorker) {
  const TempFolder data, outputs;
  write_cifar(data);
  const std::string run = (outputs / "run").string(), page = (outputs / "page.html").string();
  WorkerCommands workers(kLaunchers[0], 2, outputs, train_small(data, "cpu:1", {"--run-dir", run}));
  EXPECT_THAT(workers.wait(), Each(0)) << workers[0].output() << workers[1].output();
  ASSERT_EQ(headrace({"report", run, "--out", page}).status, 0);
  const nlohmann::json workers_shown = read_page(page)["epochs"].back()["workers"];
  ASSERT_EQ(workers_shown.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(workers_shown[i]["worker"], i);
    EXPECT_TRUE(workers_shown[i].contains("sync_wait_fraction"));
  }
}

}  // namespace
}  // namespace headrace::test

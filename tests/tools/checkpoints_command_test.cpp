// `headrace train` killed, stopped and resumed: the result is that of the run that was left alone. And records
// that other commands read.
#include "headrace/tests/support/long_run.h"
#include "headrace/tests/tools/headrace_command.h"
#include "headrace/tests/tools/recipes/small_data.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/records/record.h"

namespace headrace::test {
namespace {

// Of the command, by the three tests of killed trainings together.
int wanted_kills() { return long_or(100, 6); }

std::vector<nlohmann::json> json_lines_of(const std::filesystem::path& file) {
  const std::vector<std::byte> bytes = read_whole_file(file);
  std::istringstream text(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

// What does not depend on the clock.
nlohmann::json computed_lines(const std::filesystem::path& file) {
  nlohmann::json lines = nlohmann::json::array();
  for (const nlohmann::json& line : json_lines_of(file)) {
    nlohmann::json kept;
    for (const char* key : {"epoch", "steps", "loss", "accuracy", "val_loss", "val_accuracy", "test_loss",
                            "test_accuracy", "weights_sha256"}) {
      if (line.contains(key)) kept[key] = line[key];
    }
    lines.push_back(kept);
  }
  return lines;
}

struct KilledRuns {
  TempFolder data, work;
  std::vector<std::string> command;

  explicit KilledRuns(const std::vector<std::string>& more) {
    write_cifar(data);
    command = {"train",          "--recipe", "cifar10-cnn", "--data", data.path().string(),
               "--global-batch", "9",        "--seed",      "3"};
    command.insert(command.end(), more.begin(), more.end());
  }
  std::filesystem::path checkpoints() const { return work / "checkpoints"; }
  std::vector<std::string> with(const std::vector<std::string>& more) const {
    std::vector<std::string> all = command;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  nlohmann::json undisturbed() const {
    const auto file = work / "undisturbed";
    RunningCommand run(with({"--devices", "cpu:2", "--json", file.string()}), work / "undisturbed.txt");
    EXPECT_EQ(run.wait(), 0) << run.output();
    return computed_lines(file);
  }
};

// On one of these numbers of replicas after the other. Killed at random moments, every second one after a
// checkpoint was made, so that the runs get on.
void kill_and_resume(const KilledRuns& runs, int kills, std::uint64_t seed,
                     const std::vector<std::string>& devices = {"cpu:2"}) {
  const nlohmann::json wanted = runs.undisturbed();
  Philox random({.seed = seed});
  const auto json = runs.work / "resumed";
  std::size_t started = 0;
  const auto resuming = [&] {
    return runs.with({"--devices", devices[started++ % devices.size()], "--checkpoint-dir",
                      runs.checkpoints().string(), "--checkpoint-every", "1", "--checkpoint-best", "val_loss",
                      "--resume", "--json", json.string()});
  };
  int killed = 0;
  while (killed < kills) {
    std::filesystem::remove_all(runs.checkpoints());
    bool ended = false;
    while (!ended && killed < kills) {
      RunningCommand run(resuming(), runs.work / "run.txt");
      const auto before = newest_checkpoint(runs.checkpoints());
      const Stopwatch watch;
      while (!run.ended() && killed % 2 == 1 && newest_checkpoint(runs.checkpoints()) == before &&
             watch.seconds() < 60) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random.below(killed % 2 == 1 ? 60'000 : 400'000)));
      ended = run.ended();
      if (!ended) run.send(SIGKILL);
      const int status = run.wait();
      ASSERT_TRUE(status == 0 || status == 137) << run.output();
      killed += status == 137 ? 1 : 0;
    }
    RunningCommand last(resuming(), runs.work / "run.txt");
    ASSERT_EQ(last.wait(), 0) << last.output();
    ASSERT_EQ(computed_lines(json), wanted) << "after " << killed << " kills: " << last.output();
  }
}

TEST(KilledTraining, ResumesToTheSameResult) {
  kill_and_resume(KilledRuns({"--epochs", "3"}), (wanted_kills() + 2) / 3, 1);
}

TEST(KilledTraining, ResumesWhileBatchesAccumulate) {
  kill_and_resume(KilledRuns({"--epochs", "3", "--accumulate", "2", "--steps-per-epoch", "4"}),
                  (wanted_kills() + 1) / 3, 2);
}

// The same bits whatever devices each part of the training had.
TEST(KilledTraining, ResumesOnOtherNumbersOfReplicas) {
  kill_and_resume(KilledRuns({"--epochs", "3", "--deterministic", "--accumulate", "2"}), wanted_kills() / 3, 3,
                  {"cpu:1", "cpu:4", "cpu:2"});
}

void stop_and_resume(int signal, int status, const std::string& said) {
  const KilledRuns runs({"--epochs", "12"});
  const nlohmann::json wanted = runs.undisturbed();
  const auto json = runs.work / "resumed";
  const std::vector<std::string> resuming =
      runs.with({"--devices", "cpu:2", "--checkpoint-dir", runs.checkpoints().string(), "--resume", "--json",
                 json.string()});
  RunningCommand run(resuming, runs.work / "run.txt");
  const Stopwatch watch;
  while (!run.ended() && !newest_checkpoint(runs.checkpoints()) && watch.seconds() < 60) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  run.send(signal);
  EXPECT_EQ(run.wait(), status) << run.output();
  const auto newest = newest_checkpoint(runs.checkpoints());
  ASSERT_TRUE(newest);
  EXPECT_THAT(run.output(), HasSubstr("headrace: " + said + " after step "));
  EXPECT_THAT(run.output(), HasSubstr("; " + newest->string() + " holds the run: go on with --resume\n"));
  EXPECT_THAT(run.output(), HasSubstr("Creating a new model"));
  RunningCommand again(resuming, runs.work / "run.txt");
  ASSERT_EQ(again.wait(), 0) << again.output();
  EXPECT_THAT(again.output(), HasSubstr("Restoring from " + newest->string()));
  EXPECT_EQ(computed_lines(json), wanted);
}

TEST(StoppedTraining, OnSigtermLeavesACheckpoint) { stop_and_resume(SIGTERM, 143, "terminated"); }
TEST(StoppedTraining, OnSighupLeavesACheckpoint) { stop_and_resume(SIGHUP, 129, "hung up"); }
TEST(StoppedTraining, OnTheFirstInterruptLeavesACheckpoint) { stop_and_resume(SIGINT, 130, "interrupted"); }

// JSON has the digits of a double.
TEST(BestCheckpoint, IsChosenByTheModeThatIsGiven) {
  const KilledRuns runs({"--epochs", "4", "--devices", "cpu:1"});
  for (const std::string mode : {"", "auto", "min", "max"}) {
    const std::filesystem::path folder = runs.work / ("best" + mode);
    std::vector<std::string> options{
        "--checkpoint-dir", folder.string(), "--checkpoint-best", "loss", "--verbose", "0"};
    if (!mode.empty()) options.insert(options.end(), {"--checkpoint-best-mode", mode});
    std::vector<double> losses;
    for (const nlohmann::json& line : json_of(runs.with(options))) {
      if (line.contains("epoch")) losses.push_back(line["loss"].get<double>());
    }
    ASSERT_EQ(losses.size(), 4U);
    const double wanted = mode == "max" ? std::ranges::max(losses) : std::ranges::min(losses);
    EXPECT_EQ(Record(folder / "best.safetensors").training()->position.best, wanted) << mode;
    EXPECT_LT(std::ranges::min(losses), std::ranges::max(losses));
  }
  const CommandResult wrong = headrace(
      runs.with({"--checkpoint-dir", "x", "--checkpoint-best", "loss", "--checkpoint-best-mode", "most"}));
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.errors, HasSubstr("--checkpoint-best-mode"));
  EXPECT_THAT(wrong.errors, HasSubstr("auto, min or max"));
  EXPECT_EQ(headrace(runs.with({"--checkpoint-dir", "x", "--checkpoint-best-mode", "max"})).status, 2);
}

TEST(RecordCommands, KnowTheModelFromTheRecordAlone) {
  const KilledRuns runs({"--epochs", "2"});
  const auto record = runs.work / "record.safetensors";
  const nlohmann::json trained =
      json_of(runs.with({"--devices", "cpu:2", "--record", record.string(), "--verbose", "0"})).back();
  const std::vector<std::string> data{"--record", record.string(), "--data", runs.data.path().string()};
  std::vector<std::string> evaluate{"evaluate"}, predict{"predict"};
  evaluate.insert(evaluate.end(), data.begin(), data.end());
  predict.insert(predict.end(), data.begin(), data.end());
  evaluate.insert(evaluate.end(), {"--devices", "cpu:2"});
  const nlohmann::json found = json_of(evaluate).back();
  EXPECT_EQ(found["loss"], trained["test_loss"]);
  EXPECT_EQ(found["accuracy"], trained["test_accuracy"]);
  EXPECT_EQ(found["examples"], 10);
  const std::vector<nlohmann::json> predictions = json_of(predict);
  EXPECT_EQ(predictions.size(), 10U);
  EXPECT_EQ(predictions.front()["values"].size(), 10U);

  std::filesystem::resize_file(record, std::filesystem::file_size(record) - 10);
  const CommandResult damaged = headrace(evaluate);
  EXPECT_EQ(damaged.status, 1);
  EXPECT_THAT(damaged.errors, HasSubstr(record.string()));
  EXPECT_THAT(damaged.errors, HasSubstr("is cut short within tensor"));
}

}  // namespace
}  // namespace headrace::test
